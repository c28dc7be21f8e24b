// Calls to which one side passes an argument that the other leaves to its default.

#include "pipeline/default_arguments.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

class DefaultArgumentTest : public TwoDumpsTest {
 protected:
  // A call that is given `arguments` by keyword, and one that takes its result, `factor` times as
  // large as usual.
  static void Record(DumpForTest& side, const std::string& arguments, double factor = 1,
                     const std::string& name = "Functional.layer_norm.0.forward") {
    const std::string made = TensorJson(2 * factor, -factor, 3 * factor);
    side.AddEntry(fmt::format(R"("{}": {{"input_args": [{}], "input_kwargs": {{{}}}, )"
                              R"("output": [{}]}})",
                              name, TensorJson(1, -2, 4), arguments, made));
    side.Add("Torch.relu.0.forward", made, TensorJson(2 * factor, 0, 2.5 * factor));
  }
  static std::string Keyword(const std::string& name, const std::string& value) {
    return fmt::format(R"("{}": {})", name, ScalarJson("float", value));
  }
  // The place of the row among all, or their number.
  static size_t PlaceOf(const Comparison& comparison, const std::string& name) {
    const auto found = std::ranges::find_if(
        comparison.rows, [&](const ComparedRow& row) { return row.item().name == name; });
    return static_cast<size_t>(found - comparison.rows.begin());
  }
};

TEST_F(DefaultArgumentTest, ADefaultSpelledOutIsNoDifference) {
  Record(target_, Keyword("eps", "1e-05"));
  Record(golden_, "");
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_TRUE(comparison.is_complete());
  EXPECT_EQ(comparison.counts.calls, 2u);
  EXPECT_TRUE(comparison.warnings.empty());
  // Its row stands behind those of its call.
  const size_t place = PlaceOf(comparison, "Functional.layer_norm.0.forward.input.eps");
  ASSERT_EQ(place, 2u);
  const ComparedRow& row = comparison.rows[place];
  EXPECT_FALSE(row.golden);
  EXPECT_EQ(row.verdict, Verdict::kNotComparable);
  EXPECT_EQ(row.reason, "default-unknown");
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    for (uint32_t k = 0; k < call.row_count; ++k) {
      EXPECT_EQ(comparison.rows[call.first_row + k].call, i);
      EXPECT_TRUE(comparison.rows[call.first_row + k].item().name.starts_with(call.name()));
    }
  }
  EXPECT_FALSE(FailsOn(comparison, {"any"}).value());
}

TEST_F(DefaultArgumentTest, AnotherValueIsNamedWithTheArgument) {
  Record(target_, Keyword("eps", "0.001"), 0.99);
  Record(golden_, "");
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Functional.layer_norm.0.forward");
  EXPECT_EQ(comparison.first_wrong_call->cause, "argument");
  const std::string said = "only the target passes eps=0.001, which golden leaves to its default";
  EXPECT_NE(comparison.first_wrong_call->what.find(said), std::string::npos);
  EXPECT_TRUE(comparison.first_wrong_call->cause_text.starts_with(said));
}

TEST_F(DefaultArgumentTest, GoldenMayPassItAlone) {
  Record(target_, "", 0.99);
  Record(golden_, Keyword("eps", "0.001"));
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Functional.layer_norm.0.forward");
  EXPECT_TRUE(comparison.first_wrong_call->cause_text.starts_with(
      "only golden passes eps=0.001, which the target leaves to its default"));
  EXPECT_LT(PlaceOf(comparison, "Functional.layer_norm.0.forward.input.eps"),
            comparison.rows.size());
}

TEST_F(DefaultArgumentTest, CallsOfOneSideBesideItMayStandForTheArgument) {
  Record(target_, Keyword("reduction", "1"), 4, "Functional.cross_entropy.0.forward");
  Record(golden_, "", 1, "Functional.cross_entropy.0.forward");
  target_.Add("Tensor.__truediv__.0.forward", TensorJson(8, -4, 12), TensorJson(2, -1, 3));
  const Comparison comparison = Compare();
  EXPECT_EQ(comparison.counts.unmatched_target, 2u);
  EXPECT_EQ(comparison.counts.unmatched_golden, 1u);
  const auto& calls = comparison.calls;
  EXPECT_EQ(std::ranges::count(calls, "structure-differs", &ComparedCall::unmatched_reason), 2);
}

// Four numbers of eight bits are the same for another formula of gelu.
TEST_F(DefaultArgumentTest, StatisticsOfNarrowTypesTellTooLittle) {
  for (DumpForTest* side : {&target_, &golden_}) {
    std::string tensor = TensorJson(2, -1, 3);
    tensor.replace(tensor.find("float32"), 7, "bfloat16");
    side->AddEntry(fmt::format(
        R"("Functional.gelu.0.forward": {{"input_args": [{}], "input_kwargs": {{{}}}, "output": [{}]}})",
        tensor, side == &target_ ? Keyword("threshold", "0.5") : "", tensor));
  }
  EXPECT_EQ(Compare().counts.missing_values, 1u);
}

// In bfloat16 another formula of gelu is within rounding.
TEST_F(DefaultArgumentTest, WhatMayBeRoundingIsNotCalledRight) {
  Record(target_, Keyword("eps", "1e-06"), 1 + 1e-7);
  Record(golden_, "");
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.counts.missing_values, 1u);
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(comparison.warnings[0],
            "Functional.layer_norm.0.forward: only the target passes eps=1e-06, which golden "
            "leaves to its default; what it does cannot be told from rounding");
}

// The momentum acts on running statistics, which no row of the call shows.
TEST_F(DefaultArgumentTest, WhatActsUnseenIsNotCalledRight) {
  const std::string mean = fmt::format(R"("running_mean": {}, "training": {})", TensorJson(1, 0, 2),
                                       ScalarJson("bool", "true"));
  const std::string name = "Functional.batch_norm.0.forward";
  Record(target_, mean + ", " + Keyword("momentum", "0.5"), 1, name);
  Record(golden_, mean, 1, name);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_EQ(comparison.counts.missing_values, 1u);
}

}  // namespace
}  // namespace plumbline
