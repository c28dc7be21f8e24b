#include "load/detect.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace plumbline::load {
namespace {

class Detect : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(::testing::TempDir()) /
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Touch(const std::string& name) {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "{}";
    return path.string();
  }

  std::filesystem::path root_;
};

TEST_F(Detect, FileNamedDumpJsonIsTaken) {
  const std::string path = Touch("dump.json");
  EXPECT_EQ(*ResolveDumpJson(path), path);
}

TEST_F(Detect, OtherFileIsRefused) {
  const Result<std::string> result = ResolveDumpJson(Touch("stack.json"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(Detect, StepDirectoryWithOneRankIsTaken) {
  const std::string path = Touch("step0/rank/dump.json");
  EXPECT_EQ(*ResolveDumpJson((root_ / "step0").string()), path);
  EXPECT_EQ(*ResolveDumpJson(root_.string()), path);
}

TEST_F(Detect, ProcessDirectoryOfNewestReleaseIsTaken) {
  const std::string path = Touch("step0/proc6649/dump.json");
  EXPECT_EQ(*ResolveDumpJson(root_.string()), path);
}

TEST_F(Detect, DebugJsonCountsWhereThereIsNoDumpJson) {
  const std::string saves = Touch("rank0/debug.json");
  EXPECT_EQ(*ResolveDumpJson(root_.string()), saves);
  EXPECT_EQ(*ResolveDumpJson(saves), saves);
  const std::string calls = Touch("step0/rank0/dump.json");
  EXPECT_EQ(*ResolveDumpJson(root_.string()), calls);
  EXPECT_EQ(*ResolveDumpJson((root_ / "rank0").string()), saves);
}

TEST_F(Detect, SeveralDebugJsonAreListed) {
  Touch("step0/proc1/debug.json");
  Touch("step1/proc1/debug.json");
  const Result<std::string> result = ResolveDumpJson(root_.string());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(result.error().message().find("step1/proc1/debug.json"), std::string::npos);
}

TEST_F(Detect, SeveralRanksAreListed) {
  Touch("rank0/dump.json");
  Touch("rank1/dump.json");
  const Result<std::string> result = ResolveDumpJson(root_.string());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(result.error().message().find("rank1/dump.json"), std::string::npos);
}

TEST_F(Detect, ForeignDirectoriesAreIgnored) {
  Touch("ranking/dump.json");
  Touch("step/dump.json");
  const Result<std::string> result = ResolveDumpJson(root_.string());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kNotFound);
}

TEST_F(Detect, MissingPathIsNotFound) {
  EXPECT_EQ(ResolveDumpJson((root_ / "nothing").string()).error().code(), ErrorCode::kNotFound);
}

TEST_F(Detect, UnfinishedRecordingNamesTheCure) {
  Touch(".dump.journal");
  const Result<std::string> result = ResolveDumpJson(root_.string());
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message().find("plumb recover"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::load
