#include "load/graph_index.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "formats/array/npy.h"

namespace plumbline::load {

namespace {

constexpr std::string_view kIndexHeader =
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
  WriteTable(std::string(kIndexHeader) + std::string(kRow) + std::string(kRow));
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
  WriteTable(std::string(kIndexHeader) + std::string(kRow) + "Add,n,0");
  const auto beside = Read({"a.npy", "statistic.csv"});
  ASSERT_TRUE(beside);
  EXPECT_TRUE(beside->has_tensors);
  EXPECT_NE(beside->problem.find("line 3"), std::string::npos) << beside->problem;
  const auto alone = Read({"statistic.csv"});
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code(), ErrorCode::kCorrupt);
}

class GraphIndexOf : public ::testing::Test {
 protected:
  void Write(const std::string& name, std::string_view text) {
    std::filesystem::create_directories(std::filesystem::path(root_.Path(name)).parent_path());
    std::ofstream(root_.Path(name), std::ios::binary) << text;
  }
  void WriteArray(const std::string& name) {
    Write(name, *npy::MakeHeader(DType::kFloat32, Shape{2, 3}) + std::string(24, '\0'));
  }
  void WriteOrder(const std::string& root) {
    Write(root + "/rank_1/execution_order/ms_execution_order_graph_4.csv",
          "NodeExecutionOrder-FullNameWithScope\nDefault/net/conv.a-Conv2d/Conv2D-op12\n"
          "Default/net/Add-op1\nDefault/other/Add-op1\n");
  }
  // The index as text, without paths.
  std::string Index(const std::string& name, bool reads_headers = true) const {
    const auto index = GraphIndex::Read(root_.Path(name), reads_headers);
    if (!index) return index.error().message();
    std::ostringstream text;
    for (const IndexedTensor& one : index->tensors()) {
      const GraphDirectory& place = index->DirectoryOf(one);
      text << place.rank << ' ' << place.graph.value_or(-1) << ' ' << place.step << ' '
           << one.kernel << ' ' << one.op_type << ' ' << (one.is_output ? "out" : "in") << one.slot
           << ' ' << one.dtype;
      for (const int64_t size : one.shape.value_or(Shape())) text << ' ' << size;
      text << '\n';
    }
    return text.str();
  }

  plumbline::testing::TestDirectory root_;
};

constexpr std::string_view kFixed =
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,";
constexpr const char* kExpected =
    "1 4 8 Default/net/conv.a-Conv2d/Conv2D-op12 Conv2D in0 float32 2 3\n"
    "1 4 8 Default/net/conv.a-Conv2d/Conv2D-op12 Conv2D out0 float32 2 3\n";

TEST_F(GraphIndexOf, EveryGenerationGivesTheSameIndex) {
  for (const char* name : {"a", "b", "newest", "pre", "clean", "scoped"}) WriteOrder(name);
  const std::string place = "/rank_1/Net/4/8/";
  for (const auto& [name, kernel, end] :
       {std::tuple("a", "Conv2D-op12", ".npy"),
        std::tuple("b", "Default_net_conv_a-Conv2d_Conv2D-op12", ".npy"),
        std::tuple("newest", "Default_net_conv_a-Conv2d_Conv2D-op12", ".float32.npy")}) {
    const std::string start = name + place + "Conv2D." + kernel;
    WriteArray(start + ".0.0.1623124369613540.input.0.DefaultFormat" + end);
    WriteArray(start + ".0.0.1623124369613541.output.0.DefaultFormat" + end);
  }
  const auto table = [&](std::string_view kernel, std::string_view values) {
    std::string text;
    for (const char* io : {"540,input", "541,output"}) {
      text += "Conv2D," + std::string(kernel) + ",0,0,1623124369613" + io +
              ",0,24,float32,\"(2,3)\"," + std::string(values) + "\n";
    }
    return text;
  };
  Write("pre" + place + "statistic.csv",
        std::string(kFixed) +
            "Max Value,Min Value,Avg Value,Count,Negative Zero Count,Positive Zero Count,NaN "
            "Count,Negative Inf Count,Positive Inf Count,Zero Count\n" +
            table("Conv2D-op12", "1,0,null,6,0,1,0,0,0,5"));
  Write("clean" + place + "statistic.csv",
        std::string(kFixed) + "Max Value\n" + table("Default_net_conv_a-Conv2d_Conv2D-op12", "1"));
  Write("scoped" + place + "statistic.csv",
        std::string(kFixed) + "Max Value\n" +
            table("Default/net/conv.a-Conv2d/Conv2D-op12", "-nan,"));
  for (const char* name : {"a", "b", "newest", "pre", "clean", "scoped"}) {
    EXPECT_EQ(Index(name), kExpected) << name;
  }
}

TEST_F(GraphIndexOf, AmbiguousNamesStayAsTheyAre) {
  WriteOrder("t");
  WriteArray("t/rank_1/Net/4/8/Add.Add-op1.0.0.1.output.0.DefaultFormat.npy");
  EXPECT_EQ(Index("t", /*reads_headers=*/false), "1 4 8 Add-op1 Add out0 \n");
}

TEST_F(GraphIndexOf, ConstantsBelongToEveryStep) {
  WriteArray("t/rank_1/Net/4/8/Add.n.0.0.1.output.0.DefaultFormat.Int8.npy");
  WriteArray("t/rank_1/Net/4/9/Add.n.0.0.1.output.0.DefaultFormat.npy");
  WriteArray("t/rank_1/Net/4/constants/Parameter.data-3.0.0.1.output.0.DefaultFormat.npy");
  Write("t/rank_1/Net/4/9/Add.cut.0.0.2.output.0.DefaultFormat.npy", "");
  Write("t/rank_1/Net/4/9/other.npy", "");
  EXPECT_EQ(Index("t"),
            "1 4 8 n Add out0 int8 2 3\n1 4 9 n Add out0 float32 2 3\n"
            "1 4 9 cut Add out0 unreadable\n1 4 -1 data-3 Parameter out0 float32 2 3\n");
  EXPECT_EQ(GraphIndex::Read(root_.Path("t"), false)->left_out(), 1U);
}

// As compare has it: a table that holds more than the files is what was dumped.
TEST_F(GraphIndexOf, FilesThatWereDroppedForTheTable) {
  const std::string place = "t/rank_1/Net/4/8/";
  WriteArray(place + "Add.n.0.0.1.output.0.DefaultFormat.npy");
  const std::string row = "Add,n,0,0,1,output,0,24,float32,\"(2,3)\",1\n";
  Write(place + "statistic.csv", std::string(kFixed) + "Max Value\n" + row + row);
  EXPECT_EQ(Index("t"), "1 4 8 n Add out0 float32 2 3\n1 4 8 n Add out0 float32 2 3\n");
  EXPECT_EQ(GraphIndex::Read(root_.Path("t"), false)->left_out(), 1U);
  Write(place + "statistic.csv", std::string(kFixed) + "Max Value\n" + row);
  EXPECT_EQ(Index("t"), "1 4 8 n Add out0 float32 2 3\n");
  EXPECT_EQ(GraphIndex::Read(root_.Path("t"), false)->left_out(), 0U);
}

TEST_F(GraphIndexOf, NothingIsNoDump) {
  EXPECT_EQ(GraphIndex::Read(root_.path(), false).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(GraphIndex::Read(root_.Path("none"), false).error().code(), ErrorCode::kNotFound);
}

class ExecutionOrderOf : public ::testing::Test {
 protected:
  void Write(const std::string& name, std::string_view text) {
    std::filesystem::create_directories(std::filesystem::path(root_.Path(name)).parent_path());
    std::ofstream(root_.Path(name), std::ios::binary) << text;
  }
  ErrorCode CodeOf() const {
    const auto orders = ReadExecutionOrders(root_.path());
    return orders ? ErrorCode::kInternal : orders.error().code();
  }

  plumbline::testing::TestDirectory root_;
};

constexpr std::string_view kOrderHeader = "NodeExecutionOrder-FullNameWithScope\n";

TEST_F(ExecutionOrderOf, GraphsOfAllRanks) {
  const std::string table = std::string(kOrderHeader) + "Default/a-op0\nDefault/b,c-op1\n";
  Write("rank_1/execution_order/ms_execution_order_graph_2.csv", table);
  Write("rank_0/execution_order/ms_execution_order_graph_10.csv", kOrderHeader);
  Write("rank_0/execution_order/ms_execution_order_graph_2.csv", table);
  Write("rank_0/execution_order/ms_global_execution_order_graph_2.csv", "0\n2\n");
  const auto orders = ReadExecutionOrders(root_.path());
  ASSERT_TRUE(orders) << orders.error().message();
  ASSERT_EQ(orders->size(), 3U);
  EXPECT_EQ((*orders)[0].graph, 2);
  EXPECT_EQ((*orders)[0].kernels, (std::vector<std::string>{"Default/a-op0", "Default/b,c-op1"}));
  EXPECT_EQ((*orders)[0].history, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ((*orders)[1].graph, 10);
  EXPECT_EQ((*orders)[2].rank, 1);
  EXPECT_EQ(ReadExecutionOrders(root_.Path("rank_1"))->size(), 1U);
}

TEST_F(ExecutionOrderOf, OtherFormsAreCorrupt) {
  EXPECT_EQ(ReadExecutionOrders(root_.path())->size(), 0U);
  EXPECT_EQ(ReadExecutionOrders(root_.Path("missing")).error().code(), ErrorCode::kNotFound);
  Write("rank_0/execution_order/ms_execution_order_graph_0.csv", "");
  EXPECT_EQ(CodeOf(), ErrorCode::kCorrupt);
  Write("rank_0/execution_order/ms_execution_order_graph_0.csv", kOrderHeader);
  EXPECT_EQ(CodeOf(), ErrorCode::kInternal);  // reads
  Write("rank_0/execution_order/ms_global_execution_order_graph_0.csv", "iteration\n0\n");
  EXPECT_EQ(CodeOf(), ErrorCode::kCorrupt);
}

}  // namespace

}  // namespace plumbline::load
