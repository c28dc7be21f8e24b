#include "match/call_align.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "match/name_match.h"

namespace plumbline::match {

namespace {

TEST(CallKey, CallNumbersAreFoundWhereverTheyStand) {
  EXPECT_EQ(WithoutCallNumber("Functional.linear.13.forward"), "Functional.linear.forward");
  EXPECT_EQ(WithoutCallNumber("Module.layers.1.fc.Linear.backward.3"),
            "Module.layers.1.fc.Linear.backward");
  EXPECT_EQ(WithoutCallNumber("Module.fc.Linear.parameters_grad"),
            "Module.fc.Linear.parameters_grad");
  EXPECT_EQ(WithoutCallNumber("Module.fc.Linear.parameters_grad.0"),
            "Module.fc.Linear.parameters_grad");
  EXPECT_EQ(WithoutCallNumber("Module.0.parameters_grad"), "Module.0.parameters_grad");
  EXPECT_EQ(WithoutCallNumber("x.0"), "x.0");
  EXPECT_EQ(WithoutCallNumber(""), "");
}

TEST(CallKey, WrappersAreLeftOutOfModulePathsOnly) {
  EXPECT_EQ(UnwrappedName("Module.module._orig_mod.fc.Linear.forward.0"),
            "Module.fc.Linear.forward.0");
  EXPECT_EQ(UnwrappedName("Module.layers.0._fsdp_wrapped_module.fc.FSDPLinear.backward.1"),
            "Module.layers.0.fc.Linear.backward.1");
  EXPECT_EQ(UnwrappedName("Cell.fc.Dense.parameters_grad"), "Module.fc.Dense.parameters_grad");
  EXPECT_EQ(UnwrappedName("Module.module.fc.Linear.parameters_grad.0"),
            "Module.fc.Linear.parameters_grad.0");
  EXPECT_EQ(UnwrappedName("Torch.module.0.forward"), "Torch.module.0.forward");
  EXPECT_EQ(UnwrappedName("Module.module.FSDP.forward.0"), "Module.FSDP.forward.0");
}

TEST(CallKey, KindsForgetWhoIsCalled) {
  EXPECT_EQ(KindName("Module.a.b.Linear.forward.0"), KindName("Module.c.Linear.forward.7"));
  EXPECT_NE(KindName("Module.a.Linear.forward.0"), KindName("Module.a.Linear.backward.0"));
  EXPECT_EQ(KindName("Tensor.__add__.3.forward"), KindName("Torch.add.0.forward"));
  EXPECT_EQ(KindName("Aten.add.Tensor.1.forward"), KindName("Tensor.add_.0.forward"));
  EXPECT_EQ(KindName("Aten.native_layer_norm.default.1.forward"),
            KindName("Functional.layer_norm.0.forward"));
  EXPECT_NE(KindName("Torch.add.0.forward"), KindName("Torch.sub.0.forward"));
}

TEST(CallKey, AtenNamesFollowTheTable) {
  EXPECT_EQ(TorchNameOfAten("_to_copy"), "to");
  EXPECT_EQ(TorchNameOfAten("mm"), "mm");
  EXPECT_EQ(TorchNameOfAten("zzz"), "zzz");
}

TEST(CallKey, DirectionIsTheLastOrLastButOneSegment) {
  EXPECT_TRUE(HasDirection("Torch.add.0.forward"));
  EXPECT_TRUE(HasDirection("Module.a.Linear.backward.0"));
  EXPECT_TRUE(HasDirection("Module.a.Linear.parameters_grad"));
  EXPECT_FALSE(HasDirection("x.0"));
  EXPECT_FALSE(HasDirection("Torch.forward.add.0.odd"));
}

TEST(CallKey, PartsOfItemsKnowBothSpellingsOfKeywords) {
  EXPECT_EQ(ItemPart("Torch.sum.0.forward.input.0", "Torch.sum.0.forward"), "input.0");
  EXPECT_EQ(ItemPart("elsewhere", "Torch.sum.0.forward"), std::nullopt);
  EXPECT_EQ(ItemPart("x.10", "x.1"), std::nullopt);
  EXPECT_EQ(ItemPart("x.1", "x.1"), "");
  EXPECT_TRUE(SamePart("kwargs.dim", "input.dim"));
  EXPECT_FALSE(SamePart("kwargs.dim", "input.keepdim"));
  EXPECT_FALSE(SamePart("output.0", "input.0"));
}

constexpr size_t kNone = static_cast<size_t>(-1);

std::vector<CallItems> Calls(const std::vector<std::string>& names) {
  std::vector<CallItems> calls;
  for (const std::string& name : names) {
    CallItems& call = calls.emplace_back();
    call.name = name;
    Item item;
    item.name = name + ".output.0";
    item.is_tensor = true;
    item.dtype = "torch.float32";
    item.shape_text = "[2]";
    item.role = ItemRole::kOutput;
    call.items = {item};
  }
  return calls;
}

// The golden name that a target call is paired with.
std::string PartnerOf(const std::vector<CallItems>& target, const std::vector<CallItems>& golden,
                      const std::string& name) {
  for (const CallPair& pair : MatchCalls(target, golden)) {
    if (pair.target != kNone && target[pair.target].name == name) {
      return pair.golden == kNone ? "" : golden[pair.golden].name;
    }
  }
  return "no such call";
}

TEST(Surroundings, AnchorsAreTheNearestPairs) {
  const auto target = Calls({"A", "X", "B"});
  const auto golden = Calls({"A", "B"});
  const std::vector<size_t> partner{0, kNone, 1}, counterpart{0, 2};
  std::vector<AlignedCall> a(1), b(1);
  a[0].index = 1;
  b[0].index = 1;
  Surroundings(target, golden, partner, counterpart).Describe(a, b);
  EXPECT_EQ(a[0].pair_before, 1u);
  EXPECT_EQ(a[0].pair_after, 2u);
  EXPECT_EQ(b[0].pair_before, 1u);
  EXPECT_EQ(b[0].pair_after, 0u);  // the last
}

// In a loop one round is written out: the rounds after it keep their partners.
TEST(Surroundings, RoundsOfALoopStayWhereTheyAre) {
  std::vector<std::string> golden, target;
  for (int round = 0; round < 4; ++round) {
    const std::string number = std::to_string(round) + ".forward";
    for (std::vector<std::string>* side : {&golden, &target})
      side->push_back("Torch.mul." + number);
    golden.push_back("Torch.logsumexp." + number);
    if (round == 1) {
      target.insert(target.end(), {"Torch.exp.0.forward", "Torch.log.0.forward"});
    } else {
      target.push_back("Torch.logsumexp." + std::to_string(round - (round > 1 ? 1 : 0)) +
                       ".forward");
    }
  }
  const auto ours = Calls(target), theirs = Calls(golden);
  EXPECT_EQ(PartnerOf(ours, theirs, "Torch.logsumexp.0.forward"), "Torch.logsumexp.0.forward");
  EXPECT_EQ(PartnerOf(ours, theirs, "Torch.logsumexp.1.forward"), "Torch.logsumexp.2.forward");
  EXPECT_EQ(PartnerOf(ours, theirs, "Torch.logsumexp.2.forward"), "Torch.logsumexp.3.forward");
}

// Backward has the calls the other way round; a gradient goes with its forward call.
TEST(Surroundings, GradientsFollowTheirForwardCalls) {
  const auto ours = Calls({"Torch.sin.0.forward", "Torch.add.0.forward", "Torch.cos.0.forward",
                           "Torch.add.0.backward"});
  const auto theirs =
      Calls({"Torch.add.0.forward", "Torch.sin.0.forward", "Torch.add.1.forward",
             "Torch.cos.0.forward", "Torch.add.1.backward", "Torch.add.0.backward"});
  EXPECT_EQ(PartnerOf(ours, theirs, "Torch.add.0.forward"), "Torch.add.1.forward");
  EXPECT_EQ(PartnerOf(ours, theirs, "Torch.add.0.backward"), "Torch.add.1.backward");
}

TEST(Surroundings, NothingAroundIsNoHelpAndNoHarm) {
  EXPECT_EQ(PartnerOf(Calls({"Torch.add.0.forward"}),
                      Calls({"Torch.add.0.forward", "Torch.add.1.forward"}), "Torch.add.0.forward"),
            "Torch.add.0.forward");
}

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

// AlignedCalls "s" of structure s[0] at site s[1], by position.
std::vector<AlignedCall> AlignedCalls(const std::vector<std::string>& texts) {
  std::vector<AlignedCall> calls;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto name = static_cast<uint32_t>(i + 1);
    calls.push_back({i, static_cast<uint32_t>(texts[i][0]),
                     texts[i].size() > 1 ? static_cast<uint32_t>(texts[i][1]) : 0, 0, 0, name});
  }
  return calls;
}

std::string Aligned(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::string text;
  for (const auto& [i, j] : AlignCalls(AlignedCalls(a), AlignedCalls(b))) {
    text += std::to_string(i) + ":" + std::to_string(j) + " ";
  }
  return text;
}

TEST(CallAlign, StructureDecidesFirst) {
  EXPECT_EQ(Aligned({"a", "b", "c"}, {"b", "c"}), "1:0 2:1 ");
  EXPECT_EQ(Aligned({"a"}, {"b"}), "");
  EXPECT_EQ(Aligned({}, {"b"}), "");
}

TEST(CallAlign, SitesTellEqualStructuresApart) {
  EXPECT_EQ(Aligned({"ax", "ay", "az"}, {"ax", "az"}), "0:0 2:1 ");
  EXPECT_EQ(Aligned({"ay"}, {"ax", "ay"}), "0:1 ");
}

TEST(CallAlign, WhereACallStandsTellsMoreThanItsArguments) {
  std::vector<AlignedCall> a = {{.index = 0}}, b = {{.index = 0}, {.index = 1}};
  a[0].arguments = b[1].arguments = 1;
  b[0].arguments = 2;
  EXPECT_EQ(AlignCalls(a, b).front().second, 1u);
  a[0].site = b[0].site = 1;
  b[1].site = 2;
  EXPECT_EQ(AlignCalls(a, b).front().second, 0u);
}

TEST(CallAlign, NumbersDecideWhenNothingElseDoes) {
  EXPECT_EQ(Aligned({"a", "a", "a"}, {"a", "a"}), "0:0 1:1 ");
}

TEST(CallAlign, VeryLongSequencesPairByPosition) {
  const std::vector<AlignedCall> a(5000);
  const std::vector<AlignedCall> b(5001);
  EXPECT_EQ(AlignCalls(a, b).size(), 5000u);
}

}  // namespace

}  // namespace plumbline::match
