#include "match/layer_mapping.h"

#include <gtest/gtest.h>

#include <map>

#include "base/file/test_directory.h"
#include "match/mapping_file.h"

namespace plumbline::match {
namespace {

struct Model {
  std::vector<CallItems> calls;
  std::map<std::string, std::string, std::less<>> parents;
  std::map<std::string, std::vector<std::string>, std::less<>> stacks;

  explicit Model(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      CallItems& call = calls.emplace_back();
      call.name = name;
      call.items.emplace_back().name = name + ".input.0";
    }
  }

  LayerSide side() const {
    return {calls, false,
            [this](std::string_view name) {
              const auto found = parents.find(name);
              return found == parents.end() ? std::string_view() : std::string_view(found->second);
            },
            [this](std::string_view name) {
              const auto found = stacks.find(name);
              return found == stacks.end() ? std::vector<std::string>() : found->second;
            }};
  }
};

// "target>golden" of every value, without ".input.0".
std::string Mapped(const Model& target, const Model& golden, const std::vector<LayerRules>& rules) {
  const Result<TextPairs> pairs = DataMappingByLayers(target.side(), golden.side(), rules);
  if (!pairs) return pairs.error().message();
  std::string text;
  for (const auto& [from, to] : *pairs) {
    text += from.substr(0, from.rfind(".input")) + ">" + to.substr(0, to.rfind(".input")) + " ";
  }
  return text;
}

TEST(LayerMapping, RulesApplyBelowTheirClass) {
  const Model target({"Cell.net.encoder.blocks.0.Block.forward.0", "Cell.net.head.Dense.forward.0",
                      "Cell.net.Net.forward.0"});
  const Model golden({"Module.module.decoder.layers.0.Block.forward.0",
                      "Module.module.output.Linear.forward.0", "Module.module.Net.forward.0"});
  const std::vector<LayerRules> rules = {
      {"TopLayer", {{"net", "module"}}},
      {"Net", {{"encoder.blocks", "decoder.layers"}, {"head", "output"}}}};
  EXPECT_EQ(Mapped(target, golden, rules),
            "Cell.net.encoder.blocks.0.Block.forward.0>Module.module.decoder.layers.0.Block.forward"
            ".0 Cell.net.head.Dense.forward.0>Module.module.output.Linear.forward.0 "
            "Cell.net.Net.forward.0>Module.module.Net.forward.0 ");
  EXPECT_EQ(Mapped(Model({"Cell.net.Net.forward.0"}), golden, {}), "Cell.net.Net.forward.0>N/A ");
}

TEST(LayerMapping, RepeatedCallsPairInOrderAndBackwardFollowsForward) {
  const Model target({"Cell.a.Dense.forward.0", "Cell.a.Dense.forward.3", "Cell.a.Dense.backward.3",
                      "Cell.a.Dense.parameters_grad"});
  const Model golden({"Module.a.Linear.forward.0", "Module.a.Linear.forward.1",
                      "Module.a.Linear.backward.1", "Module.a.Linear.parameters_grad.0"});
  EXPECT_EQ(
      Mapped(target, golden, {}),
      "Cell.a.Dense.forward.0>Module.a.Linear.forward.0 Cell.a.Dense.forward.3>Module.a.Linear"
      ".forward.1 Cell.a.Dense.backward.3>Module.a.Linear.backward.1 "
      "Cell.a.Dense.parameters_grad>Module.a.Linear.parameters_grad.0 ");
}

TEST(LayerMapping, ApisStandInTheirModuleAndFunction) {
  Model target({"Mint.matmul.0.forward", "Mint.matmul.1.forward"});
  Model golden({"Torch.matmul.0.forward", "Torch.matmul.1.forward"});
  target.parents = {{"Mint.matmul.0.forward", "Cell.b.Block.forward.0"},
                    {"Mint.matmul.1.forward", "Cell.a.Block.forward.0"}};
  golden.parents = {{"Torch.matmul.0.forward", "Module.a.Block.forward.0"},
                    {"Torch.matmul.1.forward", "Module.b.Block.forward.0"}};
  EXPECT_EQ(Mapped(target, golden, {}),
            "Mint.matmul.0.forward>Torch.matmul.1.forward Mint.matmul.1.forward>Torch.matmul.0."
            "forward ");
  golden.stacks["Torch.matmul.1.forward"] = {
      "File /x/site-packages/torch/functional.py, line 3, in einsum, \n return matmul()",
      "File /x/model.py, line 7, in forward, \n einsum()"};
  EXPECT_EQ(Mapped(target, golden, {}),
            "Mint.matmul.0.forward>N/A Mint.matmul.1.forward>Torch.matmul.0.forward ");
}

TEST(LayerMapping, LayersOfPipelineStagesAreRenumbered) {
  const Model target({"Cell.net.ParallelTransformer.forward.0", "Cell.net.layers.4.Layer.forward.0",
                      "Cell.net.layers.5.Layer.forward.0"});
  const Model golden({"Module.net.ParallelTransformer.forward.0",
                      "Module.net.layers.0.Layer.forward.0",
                      "Module.net.layers.1.Layer.forward.0"});
  EXPECT_EQ(Mapped(target, golden, {}),
            "Cell.net.ParallelTransformer.forward.0>Module.net.ParallelTransformer.forward.0 "
            "Cell.net.layers.4.Layer.forward.0>Module.net.layers.0.Layer.forward.0 "
            "Cell.net.layers.5.Layer.forward.0>Module.net.layers.1.Layer.forward.0 ");
}

TEST(LayerMapping, ShortNamesAreErrors) {
  EXPECT_NE(Mapped(Model({"odd.name"}), Model({"odd.name"}), {}).find("four fields"),
            std::string::npos);
  EXPECT_EQ(Mapped(Model({}), Model({}), {}), "");
}

TEST(LayerMapping, YamlQuotesWhatNeedsIt) {
  EXPECT_EQ(DataMappingYaml({{"a.b.0", "c.d-1"}, {"x: y", "N/A"}}),
            "a.b.0: c.d-1\n\"x: y\": N/A\n");
}

TEST(LayerMapping, YamlOfEveryNameReadsBack) {
  const plumbline::testing::TestDirectory directory;
  const TextPairs pairs = {{"null", "true"},
                           {"1.5", "---"},
                           {"...", "~"},
                           {"a\\u00e9\"b'", "\\\\u"},
                           {"tab\there", "line\nend "},
                           {"\x7f\x01", "\u0085\u2028\ufeff"},
                           {"\u00e9.\u4e2d", "\U0001f600.\U0010ffff"},
                           {std::string(2000, 'x') + ".0", std::string(3000, ' ')},
                           {"Module.a.0", "N/A"}};
  const std::string path = directory.Path("mapping.yaml");
  ASSERT_TRUE(WriteFileAtomically(path, DataMappingYaml(pairs), false));
  EXPECT_EQ(ReadDataMapping(path).value(), pairs);
}

}  // namespace
}  // namespace plumbline::match
