#include "formats/graph_pb.h"

#include <gtest/gtest.h>

namespace plumbline::graph_pb {
namespace {

// One field of a message; texts up to 127 bytes.
std::string Bytes(int number, const std::string& text) {
  return std::string(1, static_cast<char>(number << 3 | 2)) +
         std::string(1, static_cast<char>(text.size())) + text;
}
std::string Number(int number, int value) {
  return std::string(1, static_cast<char>(number << 3)) + std::string(1, static_cast<char>(value));
}

std::string Model() {
  const std::string node = Bytes(1, Bytes(1, "x") + Number(2, 1)) + Bytes(1, Bytes(1, "7")) +
                           Bytes(2, "8") + Bytes(3, "Conv2D") + Bytes(6, Number(1, 14)) +
                           Bytes(8, "Default/Conv2D-op1") + Bytes(9, "# In file a.py:1/x/");
  return Number(1, 1) +
         Bytes(4, Bytes(1, node) + Bytes(2, "kernel_graph_0") + Bytes(3, Bytes(1, "x")) +
                      Bytes(5, Bytes(1, "data-3")) + Bytes(6, "0"));
}

Result<Graph> ParseText(const std::string& text) { return Parse(std::as_bytes(std::span(text))); }

TEST(GraphPb, NodesHaveTheirNamesAndSources) {
  const auto graph = ParseText(Model());
  ASSERT_TRUE(graph) << graph.error().message();
  EXPECT_EQ(graph->name, "kernel_graph_0");
  EXPECT_EQ(graph->root_name, "0");
  EXPECT_EQ(graph->parameters, std::vector<std::string>{"x"});
  EXPECT_EQ(graph->constants, std::vector<std::string>{"data-3"});
  ASSERT_EQ(graph->nodes.size(), 1U);
  const Node& node = graph->nodes[0];
  EXPECT_EQ(node.name, "8");
  EXPECT_EQ(node.op_type, "Conv2D");
  EXPECT_EQ(node.full_name, "Default/Conv2D-op1");
  EXPECT_EQ(node.source, "# In file a.py:1/x/");
  EXPECT_EQ(node.inputs, (std::vector<std::string>{"x", "7"}));
}

TEST(GraphPb, CutFilesAreCorrupt) {
  const std::string model = Model();
  for (size_t size = 3; size < model.size(); ++size) {
    const auto graph = ParseText(model.substr(0, size));
    ASSERT_FALSE(graph) << size;
    EXPECT_EQ(graph.error().code(), ErrorCode::kCorrupt);
  }
  EXPECT_EQ(ParseText(std::string(20, '\xFF')).error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(ParseText("\x0B").error().code(), ErrorCode::kCorrupt);  // a group
  EXPECT_TRUE(ParseText(""));
}

}  // namespace
}  // namespace plumbline::graph_pb
