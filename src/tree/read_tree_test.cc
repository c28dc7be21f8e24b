#include "tree/read_tree.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>

#include "base/file/test_directory.h"

namespace plumbline::tree {
namespace {

class ReadTreesTest : public ::testing::Test {
 protected:
  void Construct(const std::string& text) {
    std::ofstream(directory_.path() + "/construct.json") << text;
    comparison_.target_path = comparison_.golden_path = directory_.path() + "/dump.json";
  }
  void Call(const std::string& name, Verdict verdict) {
    ComparedCall call;
    call.target_name = call.golden_name = name;
    call.verdict = verdict;
    comparison_.calls.push_back(call);
  }

  const plumbline::testing::TestDirectory directory_;
  Comparison comparison_;
};

TEST_F(ReadTreesTest, CallsStandBelowTheirModules) {
  Construct(R"({"Torch.exp.0.forward": "Module.a.A.forward.0", "Module.a.A.forward.0": null})");
  Call("Torch.exp.0.forward", Verdict::kBroken);
  Call("Module.a.A.parameters_grad", Verdict::kSame);
  const ComparedTrees trees = ReadTrees(comparison_);
  const Node& call = *trees.target.Find("Torch.exp.0.forward");
  EXPECT_EQ(call.parent, trees.target.Find("Module.a.A.forward.0"));
  EXPECT_EQ(call.level, vis::Level::kError);
  EXPECT_EQ(call.partner, trees.golden.Find("Torch.exp.0.forward"));
  EXPECT_EQ(trees.target.Find("Module.a.A.parameters_grad")->parent, &trees.target.root());
  EXPECT_EQ(trees.counts.not_judged, 1u);  // the module
}

TEST_F(ReadTreesTest, WithoutModulesCallsStandInRecordedOrder) {
  comparison_.target_path = comparison_.golden_path = directory_.path() + "/none/dump.json";
  Call("Torch.exp.0.forward", Verdict::kSame);
  Call("Torch.abs.0.forward", Verdict::kSame);
  const ComparedTrees trees = ReadTrees(comparison_);
  ASSERT_EQ(trees.target.root().children.size(), 2u);
  EXPECT_EQ(trees.target.root().children[0]->name, "Torch.exp.0.forward");
  EXPECT_TRUE(trees.target.notes.empty());
}

TEST_F(ReadTreesTest, WhatTheFileLacksMayJoinGroups) {
  Construct(R"({"Torch.exp.0.forward": null, "Module.a.A.backward.0": null})");
  TreeSource source;
  source.directory = directory_.path();
  source.calls = [](const auto& visit) {
    for (const char* name : {"Torch.exp.0.forward", "Module.a.A.parameters_grad",
                             "Torch.abs.0.forward", "Torch.abs.1.forward"}) {
      visit(name);
    }
  };
  source.frames = [](const ModelGraph&) { return [](std::string_view) { return nullptr; }; };
  for (const bool groups : {false, true}) {
    source.groups_lacked = groups;
    const RecordedTree tree = ReadTree(source).value();
    EXPECT_TRUE(tree.has_modules);
    EXPECT_EQ(tree.lacked, 2u);
    EXPECT_EQ(tree.graph.Find("Module.a.A.parameters_grad")->parent,
              tree.graph.Find("Module.a.A.backward.0"));
    const Node& lacked = *tree.graph.Find("Torch.abs.1.forward");
    EXPECT_EQ(lacked.parent->type == NodeType::kCollection, groups);
    EXPECT_EQ(lacked.parent == &tree.graph.root(), !groups);
  }
}

TEST_F(ReadTreesTest, LogsNameTheirModules) {
  comparison_.target_path = comparison_.golden_path =
      PLUMBLINE_TEST_DATA "/debug_mode/wrong_eps.log";
  Call("Aten.native_layer_norm.default.0.forward", Verdict::kBroken);
  const ComparedTrees trees = ReadTrees(comparison_);
  const Node* const module =
      trees.target.Find("Module.Transformer.layers.0.attention_norm.forward.0");
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(trees.target.Find("Aten.native_layer_norm.default.0.forward")->parent, module);
  EXPECT_EQ(module->parent, trees.target.Find("Module.Transformer.layers.0.forward.0"));
  EXPECT_TRUE(trees.target.notes.empty());
}

TEST_F(ReadTreesTest, DamagedFileIsANote) {
  Construct("{\"Torch.exp.0.forward\": ");
  Call("Torch.exp.0.forward", Verdict::kSame);
  const ComparedTrees trees = ReadTrees(comparison_);
  EXPECT_EQ(trees.target.root().children.size(), 1u);
  ASSERT_EQ(trees.target.notes.size(), 1u);
  EXPECT_NE(trees.target.notes[0].find("construct.json"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::tree
