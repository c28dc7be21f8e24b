#include "load/compare_request.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace plumbline::load {
namespace {

Result<CompareRequest> ReadText(const std::string& text) {
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / "compare_request_test.json").string();
  std::ofstream(path) << text;
  return ReadCompareRequest(path);
}

ErrorCode CodeOf(const std::string& text) { return ReadText(text).error().code(); }

TEST(CompareRequest, ThreePathsAreRead) {
  const Result<CompareRequest> request = ReadText(
      R"({"npu_path": "a", "bench_path": "b", "stack_path": "c", "is_print_compare_log": true})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->target_path, "a");
  EXPECT_EQ(request->golden_path, "b");
  EXPECT_EQ(request->stack_path, "c");
}

TEST(CompareRequest, MissingSideIsNamed) {
  const Result<CompareRequest> request = ReadText(R"({"bench_path": "b"})");
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(request.error().message().find("npu_path"), std::string::npos);
}

TEST(CompareRequest, EmptyAndWrongTypesAreInvalid) {
  EXPECT_EQ(CodeOf(R"({"npu_path": "", "bench_path": "b"})"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(R"({"npu_path": 3, "bench_path": "b"})"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(R"({"npu_path": "a", "bench_path": "b", "stack_path": []})"),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(R"({"npu_path": "a", "bench_path": "b", "is_print_compare_log": 1})"),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("[]"), ErrorCode::kInvalidArgument);
}

TEST(CompareRequest, DamagedTextIsCorrupt) {
  EXPECT_EQ(CodeOf(R"({"npu_path": "a",)"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf(""), ErrorCode::kCorrupt);
}

TEST(CompareRequest, RankIdMeansStaticGraphs) {
  const auto request =
      ReadText(R"({"npu_path": "a", "bench_path": "b", "rank_id": [0, 3], "step_id": [7]})");
  ASSERT_TRUE(request.has_value());
  EXPECT_TRUE(request->of_graphs);
  EXPECT_EQ(request->ranks, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(request->steps, std::vector<int64_t>{7});
  const auto all = ReadText(R"({"npu_path": "a", "bench_path": "b", "rank_id": []})");
  ASSERT_TRUE(all.has_value());
  EXPECT_TRUE(all->of_graphs);
  EXPECT_TRUE(all->ranks.empty());
  for (const char* bad : {"1", "\"0\"", "[-1]", "[1.5]", "[\"0\"]"}) {
    EXPECT_EQ(
        CodeOf(std::string(R"({"npu_path": "a", "bench_path": "b", "rank_id": )") + bad + "}"),
        ErrorCode::kInvalidArgument)
        << bad;
  }
}

TEST(CompareRequest, FileAgainstDirectoryIsInvalid) {
  const std::string directory = ::testing::TempDir();
  const std::string file =
      (std::filesystem::path(directory) / "compare_request_dump.json").string();
  std::ofstream(file) << "{}";
  EXPECT_EQ(CodeOf("{\"npu_path\": \"" + file + "\", \"bench_path\": \"" + directory + "\"}"),
            ErrorCode::kInvalidArgument);
}

TEST(CompareRequest, MissingFileIsNotFound) {
  EXPECT_EQ(ReadCompareRequest("/nonexistent/compare.json").error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline::load
