#include "pipeline/operators/operator_trees.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/test_directory.h"

namespace plumbline::pipeline {
namespace {

using testing::TestDirectory;

void AddDump(const TestDirectory& directory, const std::string& below) {
  ASSERT_TRUE(MakeDirectories(directory.Path(below)));
  ASSERT_TRUE(
      WriteFileAtomically(directory.Path(below + "/Add.a.1.1.1612439563338021"), "", false));
}

TEST(OperatorTrees, PairsByPathsWithoutTimes) {
  const TestDirectory target, golden;
  for (const char* below : {"20260101000000/0/m", "20260101000000/1"}) AddDump(target, below);
  for (const char* below : {"20260202000000/0/m", "20260202000000/2"}) AddDump(golden, below);
  const auto trees = FindOperatorTrees(target.path(), golden.path());
  ASSERT_TRUE(trees) << trees.error().message();
  ASSERT_EQ(trees->pairs.size(), 3U);
  EXPECT_EQ(trees->pairs[0].name, "0/m");
  EXPECT_EQ(trees->pairs[0].target, target.Path("20260101000000/0/m"));
  EXPECT_EQ(trees->pairs[0].golden, golden.Path("20260202000000/0/m"));
  EXPECT_EQ(trees->pairs[1].name, "1");
  EXPECT_EQ(trees->pairs[1].golden, "");
  EXPECT_EQ(trees->pairs[2].name, "2");
  EXPECT_EQ(trees->pairs[2].target, "");
}

TEST(OperatorTrees, OneDirectoryOnEachSideIsAPair) {
  const TestDirectory target, golden;
  AddDump(target, "a/b");
  AddDump(golden, "c");
  const auto trees = FindOperatorTrees(target.path(), golden.path());
  ASSERT_TRUE(trees);
  ASSERT_EQ(trees->pairs.size(), 1U);
  EXPECT_EQ(trees->pairs[0].target, target.Path("a/b"));
  EXPECT_EQ(trees->pairs[0].golden, golden.Path("c"));
}

TEST(OperatorTrees, LinksThatLeadBackAreNotFollowed) {
  const TestDirectory target, golden;
  for (const TestDirectory* one : {&target, &golden}) {
    AddDump(*one, "0");
    AddDump(*one, "1");
    for (const char* link : {"0/up", "1/up", "1/also_up"}) {
      ASSERT_EQ(::symlink("..", one->Path(link).c_str()), 0);
    }
  }
  const auto trees = FindOperatorTrees(target.path(), golden.path());
  ASSERT_TRUE(trees) << trees.error().message();
  ASSERT_EQ(trees->pairs.size(), 2U);
  EXPECT_EQ(trees->pairs[0].name, "0");
  EXPECT_EQ(trees->pairs[1].name, "1");
}

// Whatever else the other side is: it is compared as that, if it can be.
TEST(OperatorTrees, WithoutDumpsOnASideThereAreNone) {
  const TestDirectory target, golden, recording;
  AddDump(target, "a");
  ASSERT_TRUE(WriteFileAtomically(recording.Path("dump.json"), "{}", false));
  AddDump(recording, "below");  // files of a framework's recording are none of these
  for (const std::string& other :
       {golden.path(), recording.path(), golden.Path("missing"), recording.Path("dump.json")}) {
    const auto one = FindOperatorTrees(target.path(), other);
    const auto two = FindOperatorTrees(other, target.path());
    ASSERT_TRUE(one && two) << other;
    EXPECT_TRUE(one->pairs.empty() && two->pairs.empty()) << other;
    EXPECT_EQ(one->one_sided, target.path());
    EXPECT_EQ(two->one_sided, target.path());
    EXPECT_EQ(FindOperatorTrees(other, other)->one_sided, "");
  }
}

}  // namespace
}  // namespace plumbline::pipeline
