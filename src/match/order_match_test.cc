#include "match/order_match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace plumbline::match {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);
using Pairs = std::vector<std::pair<size_t, size_t>>;

Item Tensor(const std::string& name, ItemRole role, double value, const std::string& shape) {
  Item item;
  item.name = name;
  item.role = role;
  item.is_tensor = true;
  item.dtype = "torch.float32";
  item.shape_text = shape;
  item.statistics = {value, -value / 2, value / 7, 3 * value};
  return item;
}

CallItems CallOf(const std::string& name, double in, double out, const std::string& shape = "[8]") {
  CallItems call;
  call.name = name;
  call.items = {Tensor(name + ".input.0", ItemRole::kInput, in, shape),
                Tensor(name + ".output.0", ItemRole::kOutput, out, shape)};
  return call;
}

std::string Sum(int count) {
  return "Distributed.all_reduce." + std::to_string(count) + ".forward";
}
std::string Div(int count) { return "Tensor.div_." + std::to_string(count) + ".forward"; }

// Sums of these values with a division after each.
std::vector<CallItems> Training(const std::vector<double>& values, double noise = 1) {
  std::vector<CallItems> calls;
  for (const double value : values) {
    const int k = static_cast<int>(calls.size() / 2);
    const std::string shape = value > 10 ? "[4, 2]" : "[8]";
    calls.push_back(CallOf(Sum(k), value * noise, 2 * value * noise, shape));
    calls.push_back(CallOf(Div(k), 2 * value * noise, value * noise, shape));
  }
  return calls;
}

std::vector<size_t> ByName(size_t count) {
  std::vector<size_t> partner(count);
  for (size_t i = 0; i < count; ++i) partner[i] = i;
  return partner;
}

Pairs Found(const std::vector<CallItems>& target, const std::vector<CallItems>& golden) {
  return PairsInAnotherOrder(target, golden, ByName(target.size()));
}

TEST(OrderMatch, NothingIsTouchedWhereInputsAgree) {
  EXPECT_EQ(Found({}, {}), Pairs());
  EXPECT_EQ(Found(Training({1, 2, 3}), Training({1, 2, 3})), Pairs());
  EXPECT_EQ(Found(Training({1, 2, 3}, 1.001), Training({1, 2, 3})), Pairs());
}

TEST(OrderMatch, ReversedSumsAndWhatTakesThemPairByValue) {
  const Pairs reversed = {{0, 4}, {1, 5}, {4, 0}, {5, 1}};
  EXPECT_EQ(Found(Training({3, 2, 1}), Training({1, 2, 3})), reversed);
  EXPECT_EQ(Found(Training({3, 2, 1}, 1.0001), Training({1, 2, 3})), reversed);
}

TEST(OrderMatch, OtherShapesFollowTheirValues) {
  EXPECT_EQ(Found(Training({20, 1}), Training({1, 20})), (Pairs{{0, 2}, {1, 3}, {2, 0}, {3, 1}}));
}

TEST(OrderMatch, WrongValueKeepsItsPair) {
  EXPECT_EQ(Found(Training({1, 5, 3}), Training({1, 2, 3})), Pairs());
  // The second batch read twice: nobody in golden is left for it.
  EXPECT_EQ(Found(Training({1, 1, 3}), Training({1, 2, 3})), Pairs());
}

TEST(OrderMatch, WrongValueAmongReversedOnesTakesWhatIsLeft) {
  EXPECT_EQ(Found(Training({3, 5, 1}), Training({1, 2, 3})),
            (Pairs{{0, 4}, {1, 5}, {4, 0}, {5, 1}}));
  EXPECT_EQ(Found(Training({2, 9, 1}), Training({1, 2, 3})),
            (Pairs{{0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 0}, {5, 1}}));
}

TEST(OrderMatch, MessagesBetweenTwoRanksKeepTheirOrder) {
  const std::vector<CallItems> target = {CallOf("Distributed.send.0.forward", 1, 1),
                                         CallOf("Distributed.send.1.forward", 2, 2)};
  const std::vector<CallItems> golden = {CallOf("Distributed.send.0.forward", 2, 2),
                                         CallOf("Distributed.send.1.forward", 1, 1)};
  EXPECT_EQ(Found(target, golden), Pairs());
}

TEST(OrderMatch, ComputingCallsAloneKeepTheirOrder) {
  EXPECT_EQ(Found({CallOf("Functional.linear.0.forward", 1, 1),
                   CallOf("Functional.linear.1.forward", 2, 2)},
                  {CallOf("Functional.linear.0.forward", 2, 2),
                   CallOf("Functional.linear.1.forward", 1, 1)}),
            Pairs());
}

TEST(OrderMatch, NaNInfinityAndMissingStatisticsAreNobodysValue) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(Found(Training({bad, 1}), Training({2, bad})), Pairs()) << bad;
  }
  std::vector<CallItems> target = Training({2, 1});
  for (CallItems& call : target) {
    for (Item& item : call.items) item.statistics = {};
  }
  EXPECT_EQ(Found(target, Training({1, 2})), Pairs());
}

TEST(OrderMatch, CallWithoutPartnerIsLeftAlone) {
  const std::vector<CallItems> target = Training({3, 2, 1});
  const std::vector<CallItems> golden = Training({1, 2, 3});
  std::vector<size_t> partner = ByName(target.size());
  partner[4] = kNone;
  for (const auto& [t, g] : PairsInAnotherOrder(target, golden, partner)) {
    EXPECT_NE(t, 4U);
    EXPECT_NE(g, 4U);
  }
}

// Every golden call keeps exactly one partner.
TEST(OrderMatch, EachCallPairsOnce) {
  const Pairs pairs = Found(Training({4, 3, 7, 2, 1}), Training({1, 2, 6, 3, 4}));
  std::vector<size_t> targets, goldens;
  for (const auto& [t, g] : pairs) {
    targets.push_back(t);
    goldens.push_back(g);
  }
  EXPECT_FALSE(pairs.empty());
  std::sort(goldens.begin(), goldens.end());
  EXPECT_EQ(targets, goldens);
}

}  // namespace
}  // namespace plumbline::match
