// Recordings of which one keeps less of each call.

#include "pipeline/left_out.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

class NotRecordedTest : public TwoDumpsTest {
 protected:
  static std::string Entry(const std::string& name, const std::string& parts) {
    return fmt::format(R"("{}": {{{}}})", name, parts);
  }
  static std::string Inputs(const std::string& values) {
    return fmt::format(R"("input_args": [{}], "input_kwargs": {{}})", values);
  }
  static std::string Output(const std::string& values) {
    return fmt::format(R"("output": [{}])", values);
  }
  // Two calls, of which the second takes what the first returns.
  static void Record(DumpForTest& side, bool inputs, bool outputs, double factor = 1) {
    const std::string first = TensorJson(2, -1, 3), last = TensorJson(0.5 * factor, -0.25, 0.7);
    const auto add = [&](const std::string& name, const std::string& in, const std::string& out) {
      side.AddEntry(Entry(name, (inputs ? Inputs(in) : "") + (inputs && outputs ? ", " : "") +
                                    (outputs ? Output(out) : "")));
    };
    add("Torch.exp.0.forward", TensorJson(1, -2, 4), first);
    add("Torch.tanh.0.forward", first, last);
  }
  static size_t CountOf(const Comparison& comparison, const std::string& reason) {
    return static_cast<size_t>(std::ranges::count_if(
        comparison.rows, [&](const ComparedRow& row) { return row.reason == reason; }));
  }
};

TEST_F(NotRecordedTest, InputsOfOneSideAreNoDifference) {
  Record(target_, false, true);
  Record(golden_, true, true);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_EQ(comparison.counts.calls, 2u);
  EXPECT_EQ(comparison.counts.unmatched_golden, 0u);
  EXPECT_EQ(comparison.counts.missing_values, 2u);
  EXPECT_EQ(CountOf(comparison, "not-recorded"), 2u);
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(comparison.warnings[0],
            "the target recorded no inputs of forward calls (data_mode?): 2 values of golden have "
            "nothing to be compared with");
  EXPECT_TRUE(FailsOn(comparison, {"unmatched"}).value());
  EXPECT_FALSE(FailsOn(comparison, {"suspicious"}).value());
}

TEST_F(NotRecordedTest, ResultsOfOneSideAreNoDifference) {
  Record(target_, true, true);
  Record(golden_, true, false);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_EQ(CountOf(comparison, "not-recorded"), 2u);
  EXPECT_EQ(CountOf(comparison, ""), 2u);  // the inputs are the same
}

TEST_F(NotRecordedTest, WhatBothRecordedIsCompared) {
  Record(target_, false, true, 1.5);
  Record(golden_, true, true);
  EXPECT_EQ(Named(), "Torch.tanh.0.forward");
}

TEST_F(NotRecordedTest, NothingInCommonIsNotJudged) {
  Record(target_, true, false);
  Record(golden_, false, true);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.counts.calls, 0u);
  EXPECT_EQ(CountOf(comparison, "not-recorded"), 4u);
  EXPECT_TRUE(FailsOn(comparison, {"unmatched"}).value());
}

// One call without inputs among others stays another form of the call.
TEST_F(NotRecordedTest, OneCallWithoutInputsIsADifference) {
  Record(target_, true, true);
  Record(golden_, true, true);
  target_.AddEntry(Entry("Torch.sin.0.forward", Output(TensorJson(3, -3, 5))));
  golden_.Add("Torch.sin.0.forward", TensorJson(2, -3, 5), TensorJson(3, -3, 5));
  const Comparison comparison = Compare();
  EXPECT_EQ(CountOf(comparison, "not-recorded"), 0u);
  EXPECT_EQ(CountOf(comparison, "structure-differs"), 3u);
}

// Recorders of other makes know no buffers: what is compared with such a recording is not complete,
// and no other model.
TEST_F(NotRecordedTest, BuffersOfOneSideAreNoDifference) {
  Record(golden_, true, true);
  Record(target_, true, true);
  for (DumpForTest* side : {&target_, &golden_}) {
    const std::string buffers =
        fmt::format(R"("parameters": {{}}, "buffers": {{"mean": {}}})", TensorJson(1, 0, 1));
    const std::string call = Inputs(TensorJson(1, -2, 4)) + ", " + Output(TensorJson(1, -1, 2));
    side->AddEntry(Entry("Module.norm.BatchNorm1d.forward.0",
                         call + (side == &target_ ? ", " + buffers : "")));
  }
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_EQ(comparison.counts.calls, 3u);
  EXPECT_EQ(comparison.counts.missing_values, 1u);
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(comparison.warnings[0],
            "golden recorded no buffers that modules changed (data_mode?): 1 values of the target "
            "have nothing to be compared with");
}

}  // namespace
}  // namespace plumbline
