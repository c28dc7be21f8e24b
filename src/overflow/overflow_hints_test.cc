#include "overflow/overflow_hints.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace plumbline {
namespace {

std::string Tensor(const std::string& dtype, const std::string& low, const std::string& high,
                   const std::string& more = "") {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.{}", "shape": [2], "Max": {},)"
                     R"( "Min": {}, "Mean": 0.0, "Norm": 1.0, "requires_grad": false{}}})",
                     dtype, high, low, more);
}

// A dump with entries a, b, ... before the one that has `inputs`, and the place of that one.
struct Dump {
  std::string text = R"({"data": {)";
  EntryPlace place;

  explicit Dump(const std::string& inputs, const std::vector<std::string>& before = {}) {
    for (const std::string& name : before) {
      text += fmt::format("\"{}\" : ", name);
      place.previous = {text.size(), place.previous[0], place.previous[1]};
      text += "{\"input_args\": [], \"output\": []}, ";
    }
    text += "\"Torch.exp.0.forward\": ";
    place.begin = text.size();
    text += fmt::format(R"({{"input_args": [{}], "input_kwargs": {{}}, "output": []}})", inputs);
    place.end = text.size();
    text += "}}";
  }
  [[nodiscard]] OverflowHints Hints() const {
    return HintsOf("Torch.exp.0.forward", place, text);
  }
};

TEST(OverflowHints, RangeAndDistanceOfEachOperand) {
  const OverflowHints hints =
      Dump(Tensor("float16", "-3.0", "32752.0") + ", " + Tensor("float32", "-0.5", "0.25")).Hints();
  ASSERT_EQ(hints.operands.size(), 2u);
  EXPECT_EQ(hints.operands[0].path, "input_args.0");
  // 65504 = 2 * 32752.
  EXPECT_NEAR(*hints.operands[0].doublings_left(), 1.0, 1e-12);
  EXPECT_EQ(RangeText(hints.operands[0]), "float16 in [-3, 32752], 2^1 below the largest, 65504");
  EXPECT_NEAR(*hints.operands[1].doublings_left(), 129.0, 1e-6);
}

TEST(OverflowHints, LargeDoublesHaveADistanceToo) {
  const OverflowHints hints = Dump(Tensor("float64", "-1e-300", "1e-300")).Hints();
  EXPECT_NEAR(*hints.operands.at(0).doublings_left(), 1024 + 300 * std::log2(10.0), 1e-6);
}

TEST(OverflowHints, NaNAndInfAreSaidAndFiniteElementsMeasured) {
  const OverflowHints hints =
      Dump(Tensor("float16", "-1.0", "Infinity", R"(, "Max_except_inf_nan": 2.0)") + ", " +
           Tensor("bfloat16", "NaN", "NaN") + ", " + Tensor("float16", "0.0", "0.0"))
          .Hints();
  ASSERT_EQ(hints.operands.size(), 3u);
  EXPECT_FALSE(hints.operands[0].is_finite);
  EXPECT_EQ(hints.operands[0].high, 2.0);
  EXPECT_EQ(RangeText(hints.operands[1]), "bfloat16, no finite range recorded");
  EXPECT_EQ(RangeText(hints.operands[2]), "float16 in [0, 0], all zero");
}

TEST(OverflowHints, IntegersAreNoOperands) {
  EXPECT_TRUE(Dump(Tensor("int64", "0", "5")).Hints().operands.empty());
}

TEST(OverflowHints, ThreeEntriesBeforeInTheirOrder) {
  const std::string one = Tensor("float16", "0.0", "1.0");
  EXPECT_EQ(Dump(one, {"a", "b", "c", "d"}).Hints().previous,
            (std::vector<std::string>{"b", "c", "d"}));
  EXPECT_EQ(Dump(one, {"a"}).Hints().previous, (std::vector<std::string>{"a"}));
  EXPECT_TRUE(Dump(one).Hints().previous.empty());
  EXPECT_EQ(Dump(one, {R"(a\"b)"}).Hints().previous, (std::vector<std::string>{"a\"b"}));
}

TEST(OverflowHints, AChangedFileGivesNoHints) {
  Dump dump(Tensor("float16", "0.0", "1.0"), {"a"});
  const OverflowHints hints = HintsOf("Torch.exp.0.forward", dump.place, "short");
  EXPECT_TRUE(hints.operands.empty());
  EXPECT_TRUE(hints.previous.empty());
}

TEST(OverflowHints, OtherTypesAreWords) {
  EXPECT_EQ(OtherTypeText({"float32", true}), "stays finite");
  EXPECT_EQ(OtherTypeText({"float32", false}), "overflows too");
  EXPECT_EQ(OtherTypeText({"float32", std::nullopt, "crashed"}), "not known: crashed");
}

}  // namespace
}  // namespace plumbline
