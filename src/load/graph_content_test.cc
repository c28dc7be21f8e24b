#include "load/graph_content.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_directory.h"

namespace plumbline::load {
namespace {

constexpr std::string_view kHeader =
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value\n";
constexpr std::string_view kRow = "Add,n,0,0,10,input,0,8,float32,\"(2)\",1\n";

class GraphContentOf : public ::testing::Test {
 protected:
  Result<GraphContent> Read(const std::vector<std::string>& names) {
    rows_ = 0;
    return ReadGraphContent(root_.path(), names, [this](const StatisticRow&) { ++rows_; });
  }
  void WriteTable(std::string_view text) {
    ASSERT_TRUE(WriteFileAtomically(root_.Path("statistic.csv"), text, false));
  }

  plumbline::testing::TestDirectory root_;
  size_t rows_ = 0;  // that were visited
};

TEST_F(GraphContentOf, WhatHoldsMoreIsTaken) {
  WriteTable(std::string(kHeader) + std::string(kRow) + std::string(kRow));
  const auto table = Read({"statistic.csv"});
  ASSERT_TRUE(table) << table.error().message();
  EXPECT_FALSE(table->has_tensors);
  EXPECT_EQ(table->problem, "");
  const auto fewer = Read({"a.npy", "mapping.csv", "statistic.csv"});
  EXPECT_FALSE(fewer->has_tensors);
  EXPECT_EQ(fewer->files, 1U);
  EXPECT_EQ(fewer->problem, root_.path() + ": 1 tensor file for 2 rows of statistic.csv");
  EXPECT_EQ(rows_, 2U);  // once each
  const auto all = Read({"a.npy", "b.npy", "statistic.csv"});
  EXPECT_TRUE(all->has_tensors);
  EXPECT_EQ(all->problem, "");
  const auto files = Read({"a.npy"});
  EXPECT_TRUE(files->has_tensors);
  EXPECT_EQ(rows_, 0U);
  EXPECT_FALSE(Read({"notes.txt"})->has_tensors);
}

TEST_F(GraphContentOf, ADamagedTableIsAnErrorAloneAndAProblemBesideFiles) {
  WriteTable(std::string(kHeader) + std::string(kRow) + "Add,n,0");
  const auto beside = Read({"a.npy", "statistic.csv"});
  ASSERT_TRUE(beside);
  EXPECT_TRUE(beside->has_tensors);
  EXPECT_NE(beside->problem.find("line 3"), std::string::npos) << beside->problem;
  const auto alone = Read({"statistic.csv"});
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace plumbline::load
