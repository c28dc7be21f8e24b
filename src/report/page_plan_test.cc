#include "report/page_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/test_directory.h"

namespace plumbline::report {
namespace {

constexpr size_t kLayers = 40, kCallsOfLayer = 25, kWrongLayer = 30;

std::string LayerName(size_t layer) { return fmt::format("Module.layers.{}.L.forward.0", layer); }
std::string CallName(size_t layer, size_t call) {
  return fmt::format("Torch.exp.{}.forward", layer * kCallsOfLayer + call);
}

// A model of layers of calls without rows; one call is wrong, and all behind it.
class PagePlanTest : public ::testing::Test {
 protected:
  PagePlanTest() {
    std::ofstream construct(directory_.path() + "/construct.json");
    construct << "{\"Module.m.M.forward.0\": null";
    for (size_t layer = 0; layer < kLayers; ++layer) {
      construct << fmt::format(", \"{}\": \"Module.m.M.forward.0\"", LayerName(layer));
      for (size_t call = 0; call < kCallsOfLayer; ++call) {
        construct << fmt::format(", \"{}\": \"{}\"", CallName(layer, call), LayerName(layer));
        ComparedCall compared;
        compared.target_name = compared.golden_name = CallName(layer, call);
        compared.verdict = layer > kWrongLayer ? Verdict::kBroken : Verdict::kSame;
        comparison_.calls.push_back(compared);
      }
    }
    construct << "}";
    construct.close();
    comparison_.calls[kWrongLayer * kCallsOfLayer].verdict = Verdict::kBroken;
    comparison_.first_wrong_call.emplace().name = CallName(kWrongLayer, 0);
    comparison_.target_path = comparison_.golden_path = directory_.path() + "/dump.json";
    trees_ = tree::ReadTrees(comparison_);
  }

  static bool Holds(const PageSide& side, std::string_view name) {
    for (const tree::Node* node : side.nodes) {
      if (node->name == name) return true;
    }
    return false;
  }

  const plumbline::testing::TestDirectory directory_;
  Comparison comparison_;
  tree::ComparedTrees trees_;
};

TEST_F(PagePlanTest, RoomForAllHoldsAll) {
  const PagePlan plan = PlanPage(comparison_, trees_, 1000000);
  EXPECT_EQ(plan.target.nodes.size(), 2 + kLayers + kLayers * kCallsOfLayer);
  EXPECT_EQ(plan.golden.nodes.size(), plan.target.nodes.size());
  EXPECT_EQ(plan.calls.size(), kLayers * kCallsOfLayer);
  EXPECT_EQ(plan.importance.front(), kWrongLayer * kCallsOfLayer);
  for (const uint32_t hidden : plan.target.hidden) EXPECT_EQ(hidden, 0U);
}

TEST_F(PagePlanTest, LittleRoomHoldsTheFirstWrongCallAndAllAboveIt) {
  const PagePlan plan = PlanPage(comparison_, trees_, 1);
  EXPECT_LT(plan.target.nodes.size(), 10U);
  for (const PageSide* side : {&plan.target, &plan.golden}) {
    for (const std::string& name :
         {CallName(kWrongLayer, 0), LayerName(kWrongLayer), std::string("Module.m.M.forward.0")}) {
      EXPECT_TRUE(Holds(*side, name)) << name;
    }
  }
  EXPECT_EQ(plan.target.total, 2 + kLayers + kLayers * kCallsOfLayer);
  // What is left out is counted where it would stand.
  const int32_t layer = plan.target.PlaceOf(trees_.target.Find(LayerName(kWrongLayer)));
  ASSERT_GE(layer, 0);
  EXPECT_EQ(plan.target.hidden[static_cast<size_t>(layer)], kCallsOfLayer - 1);
}

TEST_F(PagePlanTest, WrongCallsComeBeforeTheRest) {
  const PagePlan plan = PlanPage(comparison_, trees_, 12000);
  EXPECT_LT(plan.target.nodes.size(), plan.target.total);
  EXPECT_TRUE(Holds(plan.target, CallName(kLayers - 1, kCallsOfLayer - 1)));  // wrong
  EXPECT_TRUE(Holds(plan.target, LayerName(0)));                              // near the root
  EXPECT_FALSE(Holds(plan.target, CallName(kWrongLayer - 1, kCallsOfLayer - 1)));
}

TEST_F(PagePlanTest, ParentsStandBeforeTheirChildren) {
  for (const size_t bytes : {size_t{1}, size_t{12000}, size_t{1000000}}) {
    const PagePlan plan = PlanPage(comparison_, trees_, bytes);
    for (size_t i = 1; i < plan.target.nodes.size(); ++i) {
      const int32_t parent = plan.target.PlaceOf(plan.target.nodes[i]->parent);
      ASSERT_GE(parent, 0);
      ASSERT_LT(static_cast<size_t>(parent), i);
    }
  }
}

}  // namespace
}  // namespace plumbline::report
