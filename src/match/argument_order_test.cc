#include "match/argument_order.h"

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

}  // namespace
}  // namespace plumbline::match
