#include "base/directory_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/test_directory.h"

namespace plumbline {
namespace {

TEST(DirectoryNames, GivesEveryNameOnce) {
  const testing::TestDirectory root;
  constexpr int kFiles = 2000;  // several blocks
  for (int i = 0; i < kFiles; ++i) {
    std::ofstream(root.Path("a name of some length, as kernels have it " + std::to_string(i)));
  }
  std::filesystem::create_directory(root.Path("directory"));
  Result<DirectoryNames> listed = DirectoryNames::Open(root.path());
  ASSERT_TRUE(listed);
  std::vector<std::string> names;
  std::vector<NameBlock> blocks;
  for (;;) {
    Result<NameBlock> block = listed->Next();
    ASSERT_TRUE(block) << block.error().message();
    if (block->empty()) break;
    blocks.push_back(*std::move(block));
  }
  EXPECT_GT(blocks.size(), 1U);
  for (const NameBlock& block : blocks) {
    for (const ListedName& one : block.names()) {
      EXPECT_EQ(one.name.data()[one.name.size()], '\0');
      EXPECT_EQ(one.is_regular, one.name != "directory");
      names.emplace_back(one.name);
    }
  }
  std::ranges::sort(names);
  EXPECT_EQ(names, *ListDirectory(root.path()));
}

TEST(DirectoryNames, AnEmptyDirectoryHasNone) {
  const testing::TestDirectory root;
  EXPECT_TRUE(DirectoryNames::Open(root.path())->Next()->empty());
}

TEST(DirectoryNames, OnlyDirectoriesAreListed) {
  const testing::TestDirectory root;
  std::ofstream(root.Path("file"));
  EXPECT_EQ(DirectoryNames::Open(root.Path("file")).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(DirectoryNames::Open(root.Path("none")).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline
