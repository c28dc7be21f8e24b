#include "formats/graph_pb.h"

#include <gtest/gtest.h>

#include "base/protobuf_wire.h"

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
