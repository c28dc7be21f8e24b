#include "tree/model_graph.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tree/call_twin.h"
#include "tree/recomputed_layers.h"

namespace plumbline::tree {
namespace {

using Names = std::vector<std::string>;

dump_json::CallTree CallsOf(const std::vector<std::pair<std::string, std::string>>& rows) {
  dump_json::CallTree calls;
  for (const auto& [name, parent] : rows) calls.rows.push_back({name, parent, 0});
  return calls;
}

Names ChildrenOf(const ModelGraph& graph, std::string_view name) {
  Names names;
  for (const Node* child : graph.Find(name)->children) names.push_back(child->name);
  return names;
}

TEST(CallTwin, BackwardModulesAndApisHaveForwardTwins) {
  EXPECT_EQ(ForwardOf("Module.a.A.backward.3"), "Module.a.A.forward.3");
  EXPECT_EQ(ForwardOf("Tensor.add.0.backward"), "Tensor.add.0.forward");
  EXPECT_FALSE(ForwardOf("Module.a.A.forward.3"));
  EXPECT_FALSE(ForwardOf("optimizer.step.0"));
}

TEST(ModelGraph, RootAloneOfNoCalls) {
  ModelGraph graph = BuildTree({});
  EXPECT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(NodesInOrder(graph).size(), 1u);
}

TEST(ModelGraph, BackwardWithoutParentGoesToTwinsParent) {
  const ModelGraph graph =
      BuildTree(CallsOf({{"Module.a.fc.Linear.forward.0", "Module.a.A.forward.0"},
                         {"Module.a.A.forward.0", ""},
                         {"Module.a.A.backward.0", ""},
                         {"Module.a.fc.Linear.backward.0", ""}}));
  EXPECT_EQ(ChildrenOf(graph, "Module.a.A.backward.0"), Names{"Module.a.fc.Linear.backward.0"});
  EXPECT_EQ(ChildrenOf(graph, kRootName), (Names{"Module.a.A.forward.0", "Module.a.A.backward.0"}));
}

TEST(ModelGraph, ParentThatIsNoEntryIsShownWithANote) {
  const ModelGraph graph =
      BuildTree(CallsOf({{"Tensor.add.0.forward", "Module.lost.L.forward.0"}}));
  EXPECT_EQ(ChildrenOf(graph, kRootName), Names{"Module.lost.L.forward.0"});
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_NE(graph.notes[0].find("Module.lost.L.forward.0"), std::string::npos);
}

TEST(ModelGraph, CircleIsBrokenWithANote) {
  ModelGraph graph = BuildTree(CallsOf({{"Module.a.A.forward.0", "Module.b.B.forward.0"},
                                        {"Module.b.B.forward.0", "Module.a.A.forward.0"}}));
  EXPECT_EQ(NodesInOrder(graph).size(), 3u);
  EXPECT_EQ(graph.notes.size(), 1u);
}

TEST(ModelGraph, ApisInARowBecomeOneNode) {
  ModelGraph graph = BuildTree(CallsOf({{"Tensor.a.0.forward", ""},
                                        {"Tensor.b.0.forward", ""},
                                        {"Tensor.c.0.forward", ""},
                                        {"Module.a.A.forward.0", ""},
                                        {"Tensor.d.0.forward", ""}}));
  CollectApis(graph);
  EXPECT_EQ(ChildrenOf(graph, kRootName),
            (Names{"Apis_Between_Modules.0", "Module.a.A.forward.0", "Tensor.d.0.forward"}));
  EXPECT_EQ(ChildrenOf(graph, "Apis_Between_Modules.0").size(), 3u);
}

TEST(ModelGraph, ForwardBehindBackwardBeginsAMicroStep) {
  const auto calls = CallsOf({{"Module.a.A.forward.0", ""},
                              {"Module.a.A.forward.1", ""},
                              {"Module.a.A.backward.0", ""},
                              {"Tensor.add.0.forward", ""},
                              {"Module.a.A.forward.2", ""},
                              {"optimizer.step.0", ""}});
  ModelGraph graph = BuildTree(calls);
  NumberMicroSteps(calls, graph);
  EXPECT_EQ(graph.micro_steps, 2);
  EXPECT_EQ(graph.Find("Tensor.add.0.forward")->micro_step, 0);
  EXPECT_EQ(graph.Find("optimizer.step.0")->micro_step, 1);
}

TEST(ModelGraph, RecordersCountOfMicroStepsIsTaken) {
  dump_json::CallTree calls = CallsOf({{"Module.a.A.forward.0", ""}});
  calls.has_micro_steps = true;
  calls.last_micro_step = 3;
  calls.rows[0].micro_step = 2;
  ModelGraph graph = BuildTree(calls);
  NumberMicroSteps(calls, graph);
  EXPECT_EQ(graph.micro_steps, 4);
  EXPECT_EQ(graph.Find("Module.a.A.forward.0")->micro_step, 2);
}

TEST(ModelGraph, GradientsGoToTheLastBackwardCall) {
  ModelGraph graph =
      BuildTree(CallsOf({{"Module.a.A.backward.9", ""}, {"Module.a.A.backward.10", ""}}));
  AddParameterGradients({"Module.a.A.parameters_grad", "Module.b.B.parameters_grad.1"}, graph);
  EXPECT_EQ(ChildrenOf(graph, "Module.a.A.backward.10"), Names{"Module.a.A.parameters_grad"});
  EXPECT_EQ(graph.Find("Module.b.B.parameters_grad.1")->parent, &graph.root());
  EXPECT_EQ(graph.notes.size(), 1u);
}

TEST(RecomputedLayers, FramesOfAutogradProveIt) {
  EXPECT_TRUE(RunsAgain({"File /t/torch/utils/checkpoint.py, line 1, in recompute_fn, \n f()"}));
  EXPECT_TRUE(RunsAgain({"File /w/m.py, line 1, in backward, \n f()",
                         "File /t/torch/autograd/function.py, line 2, in apply, \n g()"}));
  EXPECT_FALSE(RunsAgain({"File /w/m.py, line 1, in backward, \n f()", "not a frame"}));
}

}  // namespace
}  // namespace plumbline::tree
