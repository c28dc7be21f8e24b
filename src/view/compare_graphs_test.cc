#include "view/compare_graphs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace plumbline::view {
namespace {

constexpr ValueForm kForm{};

ModelGraph GraphOf(const std::vector<std::string>& names) {
  dump_json::CallTree calls;
  for (const std::string& name : names) calls.rows.push_back({name, "", 0});
  ModelGraph graph = BuildTree(calls);
  CollectApis(graph);
  NumberMicroSteps(calls, graph);
  return graph;
}

ComparedCall Paired(const std::string& target, const std::string& golden, Verdict verdict) {
  ComparedCall call;
  call.target_name = target;
  call.golden_name = golden;
  call.verdict = verdict;
  return call;
}

TEST(CompareGraphs, GroupsPairByWhatIsInThem) {
  ModelGraph target = GraphOf({"Torch.new.0.forward", "Torch.new.1.forward", "Module.a.A.forward.0",
                               "Tensor.a.0.forward", "Tensor.b.1.forward"});
  ModelGraph golden = GraphOf({"Module.a.A.forward.0", "Tensor.a.0.forward", "Tensor.b.0.forward"});
  Comparison comparison;
  comparison.calls = {Paired("Tensor.a.0.forward", "Tensor.a.0.forward", Verdict::kSame),
                      Paired("Tensor.b.1.forward", "Tensor.b.0.forward", Verdict::kBroken)};
  const NodeCounts counts = CompareGraphs(comparison, kForm, target, golden);
  const Node& group = *target.Find("Apis_Between_Modules.1");
  EXPECT_EQ(group.partner, golden.Find("Apis_Between_Modules.0"));
  EXPECT_EQ(group.level, vis::Level::kError);  // the worst of its calls
  EXPECT_EQ(target.Find("Apis_Between_Modules.0")->partner, nullptr);
  EXPECT_EQ(counts.unmatched_target, 2u);
  EXPECT_EQ(counts.unmatched_golden, 0u);
  EXPECT_EQ(counts.levels, (std::array<uint64_t, vis::kLevels>{1, 0, 1}));
  EXPECT_EQ(counts.not_judged, 1u);  // the module, of which the comparison has no values
}

TEST(CompareGraphs, CallOfAnotherShapeIsLinkedAndAnError) {
  ModelGraph target = GraphOf({"Tensor.a.0.forward"}), golden = GraphOf({"Tensor.a.0.forward"});
  ComparedCall call = Paired("Tensor.a.0.forward", "", Verdict::kNotComparable);
  call.unmatched_reason = "shape-differs";
  call.unmatched_detail = "[2], golden [3]";
  Comparison comparison;
  comparison.calls = {call};
  CompareGraphs(comparison, kForm, target, golden);
  EXPECT_EQ(target.Find("Tensor.a.0.forward")->level, vis::Level::kError);
  EXPECT_EQ(target.Find("Tensor.a.0.forward")->partner, golden.Find("Tensor.a.0.forward"));
}

TEST(CompareGraphs, FirstWrongCallIsAnErrorWhateverItsNumbers) {
  ModelGraph target = GraphOf({"Tensor.a.0.forward"}), golden = GraphOf({"Tensor.a.0.forward"});
  Comparison comparison;
  comparison.calls = {Paired("Tensor.a.0.forward", "Tensor.a.0.forward", Verdict::kSame)};
  comparison.first_wrong_call.emplace().name = "Tensor.a.0.forward";
  CompareGraphs(comparison, kForm, target, golden);
  EXPECT_EQ(target.Find("Tensor.a.0.forward")->level, vis::Level::kError);
}

TEST(CompareGraphs, GoldenNodesTakeTheMicroStepOfTheirPartners) {
  ModelGraph target =
      GraphOf({"Module.a.A.forward.0", "Module.a.A.backward.0", "Module.b.B.forward.0"});
  ModelGraph golden = GraphOf({"Module.b.B.forward.0"});
  PairGraphs(target, golden);
  EXPECT_EQ(golden.Find("Module.b.B.forward.0")->micro_step, 1);
}

}  // namespace
}  // namespace plumbline::view
