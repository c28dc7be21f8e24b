#include "match/name_mapping.h"

#include <gtest/gtest.h>

namespace plumbline::match {
namespace {

CallItems CallOf(const std::string& name, const std::vector<std::string>& parts = {"input.0"}) {
  CallItems call;
  call.name = name;
  for (const std::string& part : parts) {
    Item& item = call.items.emplace_back();
    item.name = name + "." + part;
    item.shape_text = "[2]";
    item.dtype = "Float32";
  }
  return call;
}

std::string CellKey(const TextPairs& pairs, const std::string& name) {
  std::vector<CallItems> calls = {CallOf(name)};
  MapCells(pairs, calls);
  return calls[0].key();
}

TEST(NameMapping, CellsBecomeModules) {
  EXPECT_EQ(CellKey({}, "Cell.fc.Dense.forward.0"), "Module.fc.Dense.forward.0");
  EXPECT_EQ(CellKey({}, "Cell.a.Cell.b.Dense.backward.0"), "Module.a.Cell.b.Dense.backward.0");
  EXPECT_EQ(CellKey({}, "Functional.Cell.0.forward"), "Functional.Cell.0.forward");
}

TEST(NameMapping, ExactModulesGoBeforeParts) {
  const TextPairs pairs = {{"fc2.Dense", "fc2.Linear"}, {"Dense", "Other"}, {"net", "model"}};
  EXPECT_EQ(CellKey(pairs, "Cell.fc2.Dense.forward.0"), "Module.fc2.Linear.forward.0");
  EXPECT_EQ(CellKey(pairs, "Cell.net.fc3.Dense.parameters_grad"),
            "Module.model.fc3.Other.parameters_grad");
  EXPECT_EQ(CellKey(pairs, "Module.net.fc2.Dense.backward.1"),
            "Module.model.fc2.Linear.backward.1");
}

TEST(NameMapping, BuiltInApis) {
  std::vector<CallItems> calls = {CallOf("Functional.dense.0.forward"),
                                  CallOf("Mint.add.1.forward"),
                                  CallOf("MintFunctional.relu.0.backward"),
                                  CallOf("Unknown.x.0.forward"), CallOf("Cell.a.B.forward.0")};
  MapApis({}, {}, calls);
  EXPECT_EQ(calls[0].key(), "Functional.linear.0.forward");
  EXPECT_EQ(calls[1].key(), "Torch.add.1.forward");
  EXPECT_EQ(calls[2].key(), "Functional.relu.0.backward");
  EXPECT_EQ(calls[3].key(), "Unknown.x.0.forward");
  EXPECT_EQ(calls[4].key(), "Cell.a.B.forward.0");
}

TEST(NameMapping, ListedArgumentsAreWholeEntries) {
  ApiRule rule;
  rule.target = "Functional.conv2d";
  rule.golden = "Functional.conv";
  rule.args = {{"0", "0"}, {"1", "2"}, {"2", "1"}};
  rule.output = {{"0", "0"}};
  std::vector<CallItems> calls = {
      CallOf("Functional.conv2d.0.forward",
             {"input.0", "input.1", "input.2", "input.10", "input.2.0", "output.0"})};
  const std::vector<CallItems> golden = {CallOf("Functional.conv.0.forward")};
  MapApis({rule}, golden, calls);
  EXPECT_EQ(calls[0].key(), "Functional.conv.0.forward");
  EXPECT_EQ(calls[0].mapped_parts, (std::vector<std::string>{"input.0", "input.2", "input.1", "N/A",
                                                             "input.1.0", "output.0"}));
}

TEST(NameMapping, PrimitivesAreNamedWithTheirClass) {
  ApiRule rule;
  rule.target = "Primitive.bn_train.BatchNorm";
  rule.golden = "Functional.batch_norm";
  rule.args = {{"0", "0"}, {"3", "1"}, {"4", "2"}};  // moving_mean is running_mean
  std::vector<CallItems> calls = {
      CallOf("Primitive.bn_train.BatchNorm.1.forward", {"input.3", "input.1"}),
      CallOf("Primitive.bn_train.Other.0.forward")};
  MapApis({rule}, {CallOf("Functional.batch_norm.1.forward")}, calls);
  EXPECT_EQ(calls[0].key(), "Functional.batch_norm.1.forward");
  EXPECT_EQ(calls[0].mapped_parts, (std::vector<std::string>{"input.1", "N/A"}));
  EXPECT_EQ(calls[1].key(), "Primitive.bn_train.Other.0.forward");
}

TEST(NameMapping, RulesForApisThatGoldenLacksAreNotUsed) {
  ApiRule rule;
  rule.target = "Functional.dense";
  rule.golden = "Functional.nothing";
  std::vector<CallItems> calls = {CallOf("Functional.dense.0.forward")};
  MapApis({rule}, {CallOf("Functional.linear.0.forward")}, calls);
  EXPECT_EQ(calls[0].key(), "Functional.linear.0.forward");
}

}  // namespace
}  // namespace plumbline::match
