#include "base/list_entries.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/test_directory.h"

namespace plumbline {
namespace {

TEST(ListEntries, SaysWhatLinksLeadTo) {
  const testing::TestDirectory root;
  ASSERT_TRUE(WriteFileAtomically(root.Path("b"), "x", false));
  ASSERT_TRUE(MakeDirectories(root.Path("a")));
  std::filesystem::create_symlink("b", root.Path("to_file"));
  std::filesystem::create_symlink("a", root.Path("to_folder"));
  std::filesystem::create_symlink("none", root.Path("to_none"));
  const auto entries = ListEntries(root.path());
  ASSERT_TRUE(entries);
  std::vector<std::string> names;
  std::vector<PathKind> kinds;
  for (const DirectoryEntry& entry : *entries) {
    names.push_back(entry.name);
    kinds.push_back(entry.kind);
  }
  EXPECT_EQ(names, *ListDirectory(root.path()));
  EXPECT_EQ(kinds, (std::vector<PathKind>{PathKind::kDirectory, PathKind::kFile, PathKind::kFile,
                                          PathKind::kDirectory, PathKind::kMissing}));
  EXPECT_EQ(ListEntries(root.Path("none")).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline
