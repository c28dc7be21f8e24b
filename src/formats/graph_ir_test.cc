#include "formats/graph_ir.h"

#include <gtest/gtest.h>

#include <string>

namespace plumbline::graph_ir {
namespace {

// As MindSpore 2.10 writes it.
constexpr std::string_view kNewest = R"(# IR entry: @kernel_graph1
# Total subgraphs: 1

# Attrs:
enable_zero_copy_in_graph: 1

# Total params: 1
# Params:
%para1_x: <Tensor[Float32], (3, 4)>  :  IsWeight: false

subgraph attr:
enable_zero_copy_in_graph: 1
subgraph instance: kernel_graph1 : 0x56527a9454e0
# In file net.py:7, 4~5/def construct(self, x):/
subgraph @kernel_graph1(%para1_x) {
  %0(equiv_x) = PrimFunc_MatMul(%para1_x, Tensor(shape=[1, 2], dtype=Float32, value=
[[ 0.00000000e+00  1.00000000e+00]
 [ 0.00000000e+00]]), Bool(1)) cnode_attrs: {checkpoint: Bool(1)} cnode_primal_attrs: {unique_id: "12"}
      : (<Tensor[Float32], (3, 4)>) -> (<Tensor[Float32], (3, 4)>)
      : (Tensor, Scalar) -> (Tensor)
      # Fullname with scope: (Default/net-Net<a(b)>/MatMul-op0)
      # In file net.py:8~9, 4~20/    y = a / b # scope: (x)/
      # In file ✓.py:9/    return y/<~~This line of code can be shared by multiple nodes./
  %1(CNode_9) = %0[@@f](%0)
      : (<null>) -> (<null>)
      # Scope: (Default)
  %2(▲CNode_3) = call @f(%1) cnode_primal_attrs: {forward_node_name: "MatMul_12", forward_unique_id: "12"}
      : (<null>) -> (<null>)
      # Fullname with scope: (Gradients/Default/MatMul-op1)
      # Corresponding forward node candidate:
      # In file net.py:8/y = a/
  Return(%2)
      # Fullname with scope: (Default/Return-op1)
}
# Order:
#   1: @kernel_graph1:CNode_9{[0]: ValueNode<Primitive> Return}
)";

TEST(GraphIr, NodesHaveNamesAndSources) {
  const auto graph = Parse(kNewest);
  ASSERT_TRUE(graph) << graph.error().message();
  EXPECT_FALSE(graph->is_cut);
  ASSERT_EQ(graph->nodes.size(), 3U);
  const Node& node = graph->nodes[0];
  EXPECT_EQ(node.id, "%0");
  EXPECT_EQ(node.name, "equiv_x");
  EXPECT_EQ(node.op, "PrimFunc_MatMul");
  EXPECT_EQ(node.subgraph, "kernel_graph1");
  EXPECT_EQ(node.full_name, "Default/net-Net<a(b)>/MatMul-op0");
  EXPECT_EQ(node.unique_id, "12");
  EXPECT_EQ(node.forward_unique_id, "");
  EXPECT_EQ(SourceLines(node.source),
            (std::vector<std::string_view>{
                "In file net.py:8~9, 4~20/    y = a / b # scope: (x)",
                "In file ✓.py:9/    return y/<~~This line of code can be shared by multiple "
                "nodes."}));
}

TEST(GraphIr, NodesWithoutFullNameHaveNoneOfTheNextNode) {
  const auto graph = Parse(kNewest);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->nodes[1].op, "%0[@@f]");
  EXPECT_EQ(graph->nodes[1].full_name, "");
  EXPECT_EQ(graph->nodes[1].source, "");
}

TEST(GraphIr, GradientsNameTheirForwardNode) {
  const auto graph = Parse(kNewest);
  ASSERT_TRUE(graph);
  const Node& node = graph->nodes[2];
  EXPECT_EQ(node.name, "▲CNode_3");
  EXPECT_EQ(node.op, "call @f");
  EXPECT_EQ(node.unique_id, "");
  EXPECT_EQ(node.forward_unique_id, "12");
  EXPECT_EQ(SourceLines(node.source),
            (std::vector<std::string_view>{"Corresponding forward node candidate:",
                                           "In file net.py:8/y = a"}));
}

TEST(GraphIr, OlderFormIsRead) {
  const auto graph = Parse(
      "subgraph @1_construct(%para1_x) {\n"
      "  %20(equivoutput) = Conv2D(%17, %19) {instance name: conv2d} primitive_attrs: {pad: (0)}\n"
      "      : (<Tensor[Float32], (32, 256)>) -> (<Tensor[Float32], (32, 384)>)\n"
      "      : full_name_with_scope: (Default/net/conv3-Conv2d/Conv2D-op12)\n"
      "      # In file net.py(175)/    x = self.conv3(x)/\r\n"
      "  %21(CNode_2)=ReLU(%20)\n"
      "      : (<Tensor>) -> (<Tensor>)\n"
      "}\n");
  ASSERT_TRUE(graph) << graph.error().message();
  ASSERT_EQ(graph->nodes.size(), 2U);
  EXPECT_EQ(graph->nodes[0].full_name, "Default/net/conv3-Conv2d/Conv2D-op12");
  EXPECT_EQ(SourceLines(graph->nodes[0].source),
            std::vector<std::string_view>{"In file net.py(175)/    x = self.conv3(x)"});
  EXPECT_EQ(graph->nodes[1].op, "ReLU");
  EXPECT_EQ(graph->nodes[1].full_name, "");
}

TEST(GraphIr, CutTextsGiveWhatIsThere) {
  const size_t second = kNewest.find("  %2(");
  const auto graph = Parse(kNewest.substr(0, second));
  ASSERT_TRUE(graph);
  EXPECT_TRUE(graph->is_cut);
  EXPECT_EQ(graph->nodes.size(), 2U);
  const size_t first_line = kNewest.find('\n', kNewest.find("MatMul("));
  for (size_t size = 0; size < kNewest.size(); ++size) {
    const auto part = Parse(kNewest.substr(0, size));
    ASSERT_EQ(part.has_value(), size > first_line) << size;
    const std::string_view name = part ? part->nodes[0].full_name : "";
    EXPECT_TRUE(name.empty() || name == "Default/net-Net<a(b)>/MatMul-op0") << name;
  }
}

TEST(GraphIr, OtherTextsAreRefused) {
  EXPECT_EQ(Parse("").error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(Parse("%para1_x: <Tensor>\n%1 = f(x)\n%(a) = f(x)\n").error().code(),
            ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace plumbline::graph_ir
