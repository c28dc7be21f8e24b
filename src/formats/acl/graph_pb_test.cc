#include "formats/acl/graph_pb.h"

#include <gtest/gtest.h>

#include <string>

#include "base/text/protobuf_wire.h"

namespace plumbline::graph_pb {

namespace {

// One field of a message.
std::string Bytes(uint64_t number, const std::string& text) {
  protobuf::MessageWriter message;
  message.AddMessage(number, text);
  return message.text();
}
std::string Number(uint64_t number, uint64_t value) {
  protobuf::MessageWriter message;
  message.AddNumber(number, value);
  return message.text();
}

constexpr auto kMinusOne = static_cast<uint64_t>(-1);

// {"k": ["x'", True, None, -1, float32]}
std::string Attribute() {
  return Bytes(1, "k") + Bytes(2, Number(1, 32) + Bytes(18, Number(1, 13) + Bytes(7, "x'")) +
                                      Bytes(18, Number(1, 1) + Number(2, 1)) + Bytes(18, "") +
                                      Bytes(18, Number(1, 5) + Number(3, kMinusOne)) +
                                      Bytes(18, Number(1, 39) + Bytes(20, Number(1, 11))));
}
std::string Sizes() { return Bytes(1, Number(1, 2)) + Bytes(1, Number(1, 3)); }
std::string Dims() { return Bytes(4, "\x02\x03") + Number(4, 4) + Number(5, 10); }
std::string Half() { return Number(1, 11) + std::string("\x2D\x00\x00\x00\x3F", 5); }
std::string Tuple() {
  const std::string tensor = Number(1, 14) + Bytes(2, Number(1, 5) + Bytes(2, Sizes()));
  return Number(1, 31) + Bytes(3, Bytes(1, tensor) + Bytes(1, Number(1, 38)));
}

std::string Model() {
  const std::string node = Bytes(1, Bytes(1, "x") + Number(2, 1)) + Bytes(1, Bytes(1, "7")) +
                           Bytes(2, "8") + Bytes(3, "Conv2D") + Bytes(5, Attribute()) +
                           Bytes(6, Number(1, 14) + Bytes(2, Number(1, 11) + Bytes(2, Sizes()))) +
                           Bytes(8, "Default/Conv2D-op1") + Bytes(9, "# In file a.py:1/x/");
  return Number(1, 1) +
         Bytes(4, Bytes(1, node) + Bytes(2, "kernel_graph_0") +
                      Bytes(3, Bytes(1, "x") + Bytes(2, Tuple())) +
                      Bytes(5, Bytes(1, "data-3") + Bytes(2, Bytes(8, Dims()) + Number(1, 14))) +
                      Bytes(5, Bytes(1, "c") + Bytes(2, Number(1, 31) + Bytes(18, Half()))) +
                      Bytes(6, "0"));
}

Result<Graph> ParseText(const std::string& text) { return Parse(std::as_bytes(std::span(text))); }

TEST(GraphPb, NodesHaveTheirNamesAndSources) {
  const auto graph = ParseText(Model());
  ASSERT_TRUE(graph) << graph.error().message();
  EXPECT_EQ(graph->name, "kernel_graph_0");
  EXPECT_EQ(graph->root_name, "0");
  ASSERT_EQ(graph->nodes.size(), 1U);
  const Node& node = graph->nodes[0];
  EXPECT_EQ(node.name, "8");
  EXPECT_EQ(node.op_type, "Conv2D");
  EXPECT_EQ(node.full_name, "Default/Conv2D-op1");
  EXPECT_EQ(node.source, "# In file a.py:1/x/");
  EXPECT_EQ(node.inputs, (std::vector<std::string>{"x", "7"}));
}

TEST(GraphPb, ValuesAreSpelledAsPythonDoes) {
  const auto graph = ParseText(Model());
  ASSERT_TRUE(graph) << graph.error().message();
  const Node& node = graph->nodes[0];
  ASSERT_EQ(node.attributes.size(), 1U);
  EXPECT_EQ(node.attributes[0].name, "k");
  EXPECT_EQ(node.attributes[0].value, "['x\\'', True, None, -1, 'float32']");
  ASSERT_EQ(node.outputs.size(), 1U);
  EXPECT_EQ(node.outputs[0].dtype, "float32");
  EXPECT_EQ(node.outputs[0].shape, (Shape{2, 3}));
  ASSERT_EQ(graph->parameters.size(), 1U);
  EXPECT_EQ(graph->parameters[0].name, "x");
  ASSERT_EQ(graph->parameters[0].outputs.size(), 2U);
  EXPECT_EQ(graph->parameters[0].outputs[0].dtype, "int64");
  EXPECT_EQ(graph->parameters[0].outputs[1].dtype, "float");
  EXPECT_FALSE(graph->parameters[0].outputs[1].shape);
  ASSERT_EQ(graph->constants.size(), 2U);
  EXPECT_EQ(graph->constants[0].value.text, "TENSOR");
  EXPECT_EQ(graph->constants[0].value.tensor->dtype, "float16");
  EXPECT_EQ(graph->constants[0].value.tensor->shape, (Shape{2, 3, 4}));
  EXPECT_EQ(graph->constants[1].value.text, "(0.5,)");
}

TEST(GraphPb, EndlessNestingIsCorrupt) {
  std::string value = Number(1, 5) + Number(3, 1);
  for (int i = 0; i < 30; ++i) value = Number(1, 31) + Bytes(18, value);
  const auto deep = [&] { return ParseText(Bytes(4, Bytes(5, Bytes(2, value)))); };
  ASSERT_TRUE(deep());
  EXPECT_EQ(
      deep()->constants[0].value.text, std::string(30, '(') + "1" + [] {
        std::string ends;
        for (int i = 0; i < 30; ++i) ends += ",)";
        return ends;
      }());
  for (int i = 0; i < 5; ++i) value = Bytes(18, value);
  EXPECT_EQ(deep().error().code(), ErrorCode::kCorrupt);
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
