#include "match/item_match.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "match/name_match.h"

namespace plumbline::match {

namespace {

using Pairs = std::vector<std::pair<size_t, size_t>>;

Item Tensor(const std::string& name, ItemRole role, double size) {
  Item item;
  item.name = name;
  item.is_tensor = true;
  item.dtype = "torch.float32";
  item.shape_text = "[4]";
  item.role = role;
  item.statistics = {Recorded(size), Recorded(-size), Recorded(size / 8), Recorded(2 * size)};
  return item;
}

// x[place], x being as large as `size`.
CallItems Selection(int number, const std::string& place, double size = 1) {
  CallItems call;
  call.name = fmt::format("Tensor.__getitem__.{}.forward", number);
  Item argument;
  argument.name = call.name + ".input.1";
  argument.dtype = "<class 'int'>";
  argument.digest = place;
  call.items = {Tensor(call.name + ".input.0", ItemRole::kInput, size), argument,
                Tensor(call.name + ".output.0", ItemRole::kOutput, size)};
  return call;
}

CallItems Gradient(int number) {
  CallItems call;
  call.name = fmt::format("Tensor.__getitem__.{}.backward", number);
  call.items = {Tensor(call.name + ".output.0", ItemRole::kOutput, 1)};
  return call;
}

TEST(ArgumentOrder, ReversedSelectionsAndTheirGradientsPairByArgument) {
  const std::vector<CallItems> golden = {Selection(0, "a"), Selection(1, "b"), Gradient(1),
                                         Gradient(0)};
  const std::vector<CallItems> target = {Selection(0, "b"), Selection(1, "a"), Gradient(1),
                                         Gradient(0)};
  EXPECT_EQ(PairedByArguments(target, golden, {0, 1, 2, 3}),
            (Pairs{{0, 1}, {1, 0}, {3, 2}, {2, 3}}));
  EXPECT_EQ(PairedByArguments(golden, golden, {0, 1, 2, 3}), Pairs());
}

TEST(ArgumentOrder, OneSideMayHaveMore) {
  const std::vector<CallItems> golden = {Selection(0, "a"), Selection(1, "b"), Selection(2, "c")};
  EXPECT_EQ(PairedByArguments({Selection(0, "c"), Selection(1, "a")}, golden, {0, 1}),
            (Pairs{{0, 2}, {1, 0}}));
}

TEST(ArgumentOrder, WrongArgumentStaysWhereItIs) {
  const std::vector<CallItems> golden = {Selection(0, "a"), Selection(1, "b"), Selection(2, "c")};
  EXPECT_EQ(PairedByArguments({Selection(0, "b"), Selection(1, "a"), Selection(2, "d")}, golden,
                              {0, 1, 2}),
            Pairs());
  EXPECT_EQ(PairedByArguments({Selection(0, "a"), Selection(1, "b"), Selection(2, "b")}, golden,
                              {0, 1, 2}),
            Pairs());
}

TEST(ArgumentOrder, OfAnotherTensorOrWithoutGradientIsAnotherCall) {
  const std::vector<CallItems> golden = {Selection(0, "a"), Selection(1, "b"), Gradient(0)};
  EXPECT_EQ(PairedByArguments({Selection(0, "b", 2), Selection(1, "a", 2)}, {golden[0], golden[1]},
                              {0, 1}),
            Pairs());
  EXPECT_EQ(
      PairedByArguments({Selection(0, "b"), Selection(1, "a"), Gradient(0)}, golden, {0, 1, 2}),
      Pairs());
}

TEST(ArgumentOrder, CallsThatAllPairByNameKeepTheirNames) {
  const auto pairs =
      MatchCalls({Selection(0, "b"), Selection(1, "a")}, {Selection(0, "a"), Selection(1, "b")});
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].golden, 0U);
  EXPECT_EQ(pairs[1].golden, 1U);
}

struct Part {
  std::string name;
  std::string shape = "[2]";
  std::string dtype = "torch.float32";
  ItemRole role = ItemRole::kInput;
};

CallItems CallOf(const std::string& name, const std::vector<Part>& parts) {
  CallItems call;
  call.name = name;
  for (const Part& part : parts) {
    Item& item = call.items.emplace_back();
    item.name = name + "." + part.name;
    item.shape_text = part.shape;
    item.dtype = part.dtype;
    item.role = part.role;
  }
  return call;
}

TEST(ItemMatch, OtherCallNumbersDoNotMatter) {
  const ItemMatch match = MatchItems(CallOf("T.f.0.forward", {{"input.0"}, {"kwargs.dim"}}),
                                     CallOf("T.f.3.forward", {{"input.0"}, {"input.dim"}}));
  EXPECT_FALSE(match.mismatch);
  EXPECT_TRUE(match.links.empty());
}

TEST(ItemMatch, KeywordsInAnotherOrderPairByName) {
  const ItemMatch match = MatchItems(CallOf("T.f.0.forward", {{"input.a"}, {"input.b"}}),
                                     CallOf("T.f.0.forward", {{"input.b"}, {"input.a"}}));
  EXPECT_FALSE(match.mismatch);
  EXPECT_EQ(match.links, (ItemLinks{{0, 1}, {1, 0}}));
}

TEST(ItemMatch, PositionalAgainstKeywordPairsByOrder) {
  const ItemMatch match = MatchItems(CallOf("T.f.0.forward", {{"input.0"}, {"input.b"}}),
                                     CallOf("T.f.0.forward", {{"input.b"}, {"input.a"}}));
  EXPECT_FALSE(match.mismatch);
  EXPECT_EQ(match.links, (ItemLinks{{0, 1}, {1, 0}}));
}

TEST(ItemMatch, RolesAreNeverMixed) {
  const ItemMatch match = MatchItems(
      CallOf("T.f.0.forward", {{"input.0"}}),
      CallOf("T.f.0.forward", {{"output.0", "[2]", "torch.float32", ItemRole::kOutput}}));
  ASSERT_TRUE(match.mismatch);
  EXPECT_EQ(match.mismatch->reason, "structure-differs");
}

TEST(ItemMatch, TypesOfOtherFrameworksAgree) {
  EXPECT_TRUE(DTypesAgree("Int64", "torch.int64"));
  EXPECT_TRUE(DTypesAgree("BFloat16", "torch.float32"));
  EXPECT_FALSE(DTypesAgree("Float64", "torch.float32"));
  EXPECT_FALSE(DTypesAgree(std::nullopt, "torch.float32"));
  EXPECT_FALSE(DTypesAgree("<class 'int'>", "<class 'str'>"));
}

TEST(ItemMatch, PythonNumbersAreOneType) {
  EXPECT_TRUE(DTypesAgree("<class 'int'>", "<class 'float'>"));
  EXPECT_TRUE(DTypesAgree("<class 'bool'>", "<class 'int'>"));
  EXPECT_FALSE(DTypesAgree("<class 'int'>", "torch.int64"));
}

TEST(ItemMatch, NullsAtTheEndKeepNothingApartBetweenFrameworks) {
  constexpr ItemRules kAcross{.by_kind = true};
  CallItems target = CallOf("A", {{"output.0"}, {"output.1"}});
  target.items[1].dtype = std::nullopt;
  const CallItems golden = CallOf("B", {{"output.0"}});
  EXPECT_TRUE(MatchItems(target, golden).mismatch);
  const ItemMatch match = MatchItems(target, golden, kAcross);
  EXPECT_FALSE(match.mismatch);
  EXPECT_EQ(match.links, (ItemLinks{{0, 0}}));
  EXPECT_TRUE(match.alone_target.empty());
  EXPECT_EQ(StructureOf(target, kAcross), StructureOf(golden, kAcross));
  target.mapped_parts = {"output.0", "output.1"};
  EXPECT_TRUE(MatchItems(target, golden, kAcross).alone_target.empty());
  EXPECT_EQ(MatchItems(target, golden).alone_target, std::vector<size_t>{1});
  target.mapped_parts.clear();
  target.items[1].dtype = "torch.float32";  // a value is another matter
  EXPECT_TRUE(MatchItems(target, golden, kAcross).mismatch);
}

TEST(ItemMatch, GradientsThatOneFrameworkAloneLooksForStayAlone) {
  // MindSpore's LSTM returns (out, (h, c)); PyTorch has no gradients of h and c.
  constexpr ItemRules kAcross{.by_kind = true};
  const Part output{"output.0", "[2]", "torch.float32", ItemRole::kOutput};
  CallItems target =
      CallOf("M.f.0.backward", {{"input.0"}, {"input.1.0"}, {"input.1.1"}, output, output});
  CallItems golden = CallOf("M.f.0.backward", {{"input.0"}, {"input.1"}, output});
  target.kind = golden.kind = CallKind::kBackward;
  for (Item* null : {&target.items[2], &target.items[4], &golden.items[1]}) {
    null->dtype = null->shape_text = std::nullopt;
  }
  const ItemMatch match = MatchItems(target, golden, kAcross);
  EXPECT_FALSE(match.mismatch);
  EXPECT_EQ(match.links, (ItemLinks{{0, 0}, {3, 2}}));
  EXPECT_EQ(match.alone_target, std::vector<size_t>{1});
  const ItemMatch back = MatchItems(golden, target, kAcross);
  EXPECT_EQ(back.links, (ItemLinks{{0, 0}, {2, 3}}));
  EXPECT_EQ(back.alone_golden, std::vector<size_t>{1});
  // One framework does the same in every run: there a missing gradient is a difference.
  EXPECT_TRUE(MatchItems(target, golden).mismatch);
  golden.items[0].shape_text = "[3]";
  EXPECT_TRUE(MatchItems(target, golden, kAcross).mismatch);
}

// A forward call that reads a tensor and returns one, with these arguments beside it.
CallItems WithArguments(std::vector<Part> arguments) {
  std::vector<Part> parts = {{"input.0"}};
  parts.insert(parts.end(), arguments.begin(), arguments.end());
  parts.push_back({"output.0", "[2]", "torch.float32", ItemRole::kOutput});
  CallItems call = CallOf("T.f.0.forward", parts);
  call.kind = CallKind::kForward;
  call.items.front().is_tensor = call.items.back().is_tensor = true;
  return call;
}

const Part kEps{"input.eps", "[]", "<class 'float'>"};

TEST(ItemMatch, AnArgumentOfOneSideAloneIsADefaultOfTheOther) {
  const CallItems plain = WithArguments({}), given = WithArguments({kEps});
  const ItemMatch of_target = MatchItems(given, plain);
  EXPECT_FALSE(of_target.mismatch);
  EXPECT_TRUE(of_target.are_defaults);
  EXPECT_EQ(of_target.links, (ItemLinks{{0, 0}, {2, 1}}));
  EXPECT_EQ(of_target.alone_target, std::vector<size_t>{1});
  const ItemMatch of_golden = MatchItems(plain, given);
  EXPECT_FALSE(of_golden.mismatch);
  EXPECT_EQ(of_golden.links, (ItemLinks{{0, 0}, {1, 2}}));
  EXPECT_EQ(of_golden.alone_golden, std::vector<size_t>{1});
  const Part place{"input.1", "[]", "<class 'float'>"};
  EXPECT_EQ(MatchItems(WithArguments({place}), plain).alone_target, std::vector<size_t>{1});
}

TEST(ItemMatch, ArgumentsThatBothPassPairBesideADefault) {
  // By place on one side, by keyword on the other: the one of the same value.
  CallItems target = WithArguments(
      {{"input.inplace", "[]", "<class 'bool'>"}, {"input.p", "[]", "<class 'float'>"}});
  CallItems golden = WithArguments({{"input.1", "[]", "<class 'float'>"}});
  target.items[2].digest = golden.items[1].digest = "0.1";
  EXPECT_EQ(MatchItems(target, golden).links, (ItemLinks{{0, 0}, {2, 1}, {3, 2}}));
  golden.items[1].digest = "0.2";
  EXPECT_TRUE(MatchItems(target, golden).mismatch);
}

TEST(ItemMatch, WhatElseOneSideAloneHasKeepsCallsApart) {
  const CallItems plain = WithArguments({});
  CallItems tensor = WithArguments({{"input.bias"}});
  tensor.items[1].is_tensor = true;
  ASSERT_TRUE(MatchItems(tensor, plain).mismatch);
  EXPECT_EQ(MatchItems(tensor, plain).mismatch->detail, "only target has T.f.0.forward.input.bias");
  EXPECT_EQ(MatchItems(plain, tensor).mismatch->detail, "only golden has T.f.0.forward.input.bias");
  CallItems other_shape = WithArguments({kEps});
  other_shape.items.back().shape_text = "[3]";
  ASSERT_TRUE(MatchItems(other_shape, plain).mismatch);
  EXPECT_EQ(MatchItems(other_shape, plain).mismatch->detail,
            "only target has T.f.0.forward.input.eps");
  // Nothing shows what an argument does to a call that returns nothing, or to a gradient.
  CallItems given = WithArguments({kEps}), without = plain;
  given.kind = without.kind = CallKind::kBackward;
  EXPECT_TRUE(MatchItems(given, without).mismatch);
  given.kind = without.kind = CallKind::kForward;
  given.items.pop_back();
  without.items.pop_back();
  EXPECT_TRUE(MatchItems(given, without).mismatch);
}

TEST(ItemMatch, StructureIsTheListOfRolesShapesAndTypes) {
  const CallItems a = CallOf("A", {{"input.0"}});
  EXPECT_EQ(StructureOf(a), StructureOf(CallOf("B", {{"input.x", "[2]", "BFloat16"}})));
  EXPECT_NE(StructureOf(a), StructureOf(CallOf("A", {{"input.0", "[3]"}})));
  EXPECT_NE(StructureOf(a), StructureOf(CallOf("A", {{"input.0"}, {"input.1"}})));
}

}  // namespace

}  // namespace plumbline::match
