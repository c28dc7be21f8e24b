#include "load/execution_order.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/test_directory.h"

namespace plumbline::load {
namespace {

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

constexpr std::string_view kHeader = "NodeExecutionOrder-FullNameWithScope\n";

TEST_F(ExecutionOrderOf, GraphsOfAllRanks) {
  const std::string table = std::string(kHeader) + "Default/a-op0\nDefault/b,c-op1\n";
  Write("rank_1/execution_order/ms_execution_order_graph_2.csv", table);
  Write("rank_0/execution_order/ms_execution_order_graph_10.csv", kHeader);
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
  Write("rank_0/execution_order/ms_execution_order_graph_0.csv", kHeader);
  EXPECT_EQ(CodeOf(), ErrorCode::kInternal);  // reads
  Write("rank_0/execution_order/ms_global_execution_order_graph_0.csv", "iteration\n0\n");
  EXPECT_EQ(CodeOf(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace plumbline::load
