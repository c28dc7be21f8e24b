#include "base/file/directory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/file/file.h"
#include "base/file/remove_directory.h"
#include "base/file/test_directory.h"

namespace plumbline {

namespace {

TEST(RemoveDirectory, GoesNoDeeper) {
  const testing::TestDirectory root;
  EXPECT_TRUE(RemoveDirectory(root.Path("none")));
  ASSERT_TRUE(MakeDirectories(root.Path("a/b")));
  ASSERT_TRUE(WriteFileAtomically(root.Path("a/b/file"), "x", false));
  EXPECT_FALSE(RemoveDirectory(root.Path("a")));
  EXPECT_EQ(KindOf(root.Path("a/b/file")), PathKind::kFile);
  EXPECT_TRUE(RemoveDirectory(root.Path("a/b")));
  EXPECT_TRUE(RemoveDirectory(root.Path("a")));
  EXPECT_EQ(KindOf(root.Path("a")), PathKind::kMissing);
}

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

namespace fs = std::filesystem;
using testing::TestDirectory;

Directory Opened(const std::string& path) {
  auto directory = Directory::Open(path);
  EXPECT_TRUE(directory) << directory.error().message();
  return *std::move(directory);
}

TEST(Directory, MakeInsideRefusesWhatIsNoDirectory) {
  const TestDirectory dir;
  fs::create_directory(dir.Path("real"));
  fs::create_symlink("real", dir.Path("link"));
  ASSERT_TRUE(WriteFileAtomically(dir.Path("file"), "", false));
  const Directory directory = Opened(dir.path());
  for (const char* name : {"new", "new", "real"}) EXPECT_TRUE(directory.MakeInside(name));
  for (const char* name : {"link", "file"}) {
    const auto inside = directory.MakeInside(name);
    ASSERT_FALSE(inside);
    EXPECT_EQ(inside.error().code(), ErrorCode::kIo);
    EXPECT_NE(inside.error().message().find(dir.Path(name)), std::string::npos);
  }
}

TEST(Directory, OpenUnlinkedRefusesALinkAsLastComponentOnly) {
  const TestDirectory dir;
  fs::create_directories(dir.Path("real/inner"));
  fs::create_symlink("real", dir.Path("link"));
  fs::create_symlink("nothing", dir.Path("dangling"));
  ASSERT_TRUE(WriteFileAtomically(dir.Path("file"), "", false));
  for (const char* name : {"real", "real/", "real/.", "link/inner", "link/inner/", "."}) {
    const auto directory = Directory::OpenUnlinked(dir.Path(name));
    ASSERT_TRUE(directory) << name;
    EXPECT_TRUE(directory->CheckPlace()) << name;
    EXPECT_EQ(directory->path(), dir.Path(name));
  }
  for (const char* name : {"link", "link/", "link//", "link/.", "link/./", "dangling", "file"}) {
    const auto directory = Directory::OpenUnlinked(dir.Path(name));
    ASSERT_FALSE(directory) << name;
    EXPECT_EQ(directory.error().code(), ErrorCode::kIo) << name;
    EXPECT_NE(directory.error().message().find("symbolic link"), std::string::npos) << name;
  }
  EXPECT_EQ(Directory::OpenUnlinked(dir.Path("missing")).error().code(), ErrorCode::kNotFound);
}

TEST(Directory, FilesLandInTheDirectoryThatWasOpened) {
  const TestDirectory dir;
  fs::create_directory(dir.Path("other"));
  const Directory directory = *Opened(dir.path()).MakeInside("one");
  EXPECT_TRUE(directory.CheckPlace());
  fs::rename(dir.Path("one"), dir.Path("moved"));
  EXPECT_EQ(directory.CheckPlace().error().code(), ErrorCode::kIo);
  fs::create_symlink("other", dir.Path("one"));
  EXPECT_EQ(directory.CheckPlace().error().code(), ErrorCode::kIo);
  ASSERT_TRUE(WriteFileAtomically(directory, "a", "text", true));
  EXPECT_EQ(ReadFile(dir.Path("moved/a")).value_or(""), "text");
  EXPECT_TRUE(fs::is_empty(dir.Path("other")));
  // A link to the same directory is the same place.
  fs::remove(dir.Path("one"));
  fs::create_symlink("moved", dir.Path("one"));
  EXPECT_TRUE(directory.CheckPlace());
  fs::remove_all(dir.Path("moved"));
  EXPECT_EQ(directory.CheckPlace().error().code(), ErrorCode::kNotFound);
  EXPECT_FALSE(WriteFileAtomically(directory, "b", "text", false));
}

TEST(Directory, PlaceIsKnownAfterAChangeOfTheWorkingDirectory) {
  const TestDirectory dir;
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  fs::create_directory("a");
  const Directory directory = Opened("a");
  fs::current_path("/");
  EXPECT_TRUE(directory.CheckPlace());
  EXPECT_EQ(directory.List()->size(), 0U);
  fs::current_path(before);
}

TEST(Directory, BytesFreedAreThoseOfAFileWithOneName) {
  const TestDirectory dir;
  const Directory directory = Opened(dir.path());
  EXPECT_EQ(directory.BytesFreedBy("a"), 0U);
  ASSERT_TRUE(WriteFileAtomically(directory, "a", "12345", false));
  EXPECT_EQ(directory.BytesFreedBy("a"), 5U);
  ASSERT_TRUE(directory.Link("a", "b"));
  EXPECT_EQ(directory.BytesFreedBy("a"), 0U);
  EXPECT_FALSE(directory.Link("a", "b"));
  ASSERT_TRUE(directory.Remove("b"));
  ASSERT_TRUE(directory.Remove("b"));
  EXPECT_EQ(directory.BytesFreedBy("a"), 5U);
  fs::create_symlink("a", dir.Path("c"));
  EXPECT_EQ(directory.BytesFreedBy("c"), 0U);
  EXPECT_EQ(directory.KindOf("c"), PathKind::kOther);
}

TEST(Directory, SpaceIsThatOfTheFileSystem) {
  const TestDirectory dir;
  const auto space = Opened(dir.path()).SpaceLeft();
  const fs::space_info truth = fs::space(dir.path());
  ASSERT_TRUE(space);
  EXPECT_EQ(space->total_bytes, truth.capacity);
  EXPECT_LE(space->free_bytes, truth.capacity);
}

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
