// Values that one recording lacks.

#include "pipeline/culprit/incomplete_record.h"

#include <gtest/gtest.h>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {
namespace {

class IncompleteRecordTest : public TwoDumpsTest {
 protected:
  const std::string input_ = TensorJson(2, -1, 3), bias_ = TensorJson(0.5, -0.25, 0.7),
                    result_ = TensorJson(3, -2, 4), other_ = TensorJson(3, -2.5, 4.5);
  static constexpr const char* kName = "Torch.add.0.forward";

  void Add(DumpForTest& side, const std::string& inputs, const std::string& outputs) {
    side.Add("Torch.exp.0.forward", other_, input_);
    side.Add(kName, inputs, outputs);
  }
};

TEST_F(IncompleteRecordTest, OfAnInputWithoutWhichTheResultWouldBeAnotherIsNamedInAWarning) {
  Add(target_, input_, result_);
  Add(golden_, input_ + "," + bias_, result_);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_TRUE(FailsOn(comparison, {"unmatched"}).value());
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(comparison.warnings[0],
            "Torch.add.0.forward is not compared: only golden has Torch.add.0.forward.input.1");
}

TEST_F(IncompleteRecordTest, ANullInPlaceOfAnInputIsTheSame) {
  Add(target_, input_ + "," + bias_, result_);
  Add(golden_, "null," + bias_, result_);
  EXPECT_EQ(Named(), "");
}

TEST_F(IncompleteRecordTest, AnInputThatWasNotThereIsNamed) {
  Add(target_, input_, other_);
  Add(golden_, input_ + "," + bias_, result_);
  EXPECT_EQ(Named(), kName);
}

TEST_F(IncompleteRecordTest, AnApiReturnsWhatItReturns) {
  Add(target_, input_ + "," + bias_, "");
  Add(golden_, input_ + "," + bias_, result_);
  EXPECT_EQ(Named(), "");
}

TEST_F(IncompleteRecordTest, ButNotForOtherInputs) {
  Add(target_, other_ + "," + bias_, "null");
  Add(golden_, input_ + "," + bias_, result_);
  EXPECT_EQ(Named(), kName);
}

// A parameter that requires no gradient any more has a null.
TEST_F(IncompleteRecordTest, AGradientThatIsNullIsNamedAndOneThatIsNotListedIsNot) {
  for (const bool is_null : {true, false}) {
    DumpForTest target(directory_.Path(fmt::format("target{}", is_null)));
    DumpForTest golden(directory_.Path(fmt::format("golden{}", is_null)));
    for (DumpForTest* side : {&target, &golden}) {
      side->Add("Torch.mul.0.forward", input_ + "," + bias_, result_);
    }
    const auto backward = [&](DumpForTest& side, const std::string& results) {
      side.AddEntry(fmt::format(R"("Torch.mul.0.backward": {{"input": [{}], "output": [{}]}})",
                                other_, results));
    };
    backward(target, is_null ? bias_ + ", null" : bias_);
    backward(golden, bias_ + "," + input_);
    const Result<Comparison> comparison = CompareRuns(target.Write(), golden.Write(), {});
    ASSERT_TRUE(comparison);
    EXPECT_EQ(comparison->first_wrong_call.has_value(), is_null);
  }
}

// The recorder says that it lost something.
TEST_F(IncompleteRecordTest, WhatTheRecorderLostIsNoGradientThatIsNull) {
  for (DumpForTest* side : {&target_, &golden_}) {
    side->Add("Torch.mul.0.forward", input_ + "," + bias_, result_);
    side->AddEntry(fmt::format(R"("Torch.mul.0.backward": {{"input": [{}], "output": [{}, {}]}})",
                               other_, bias_, side == &target_ ? "null" : input_));
  }
  EXPECT_EQ(Named(), "Torch.mul.0.backward");
  const std::string target = target_.Write();
  std::ofstream(target + "/dump_error_info.log")
      << "[2026-01-01 00:00:00] [ERROR] calls_dropped: 1 (one call was lost)\n";
  const Result<Comparison> comparison = CompareRuns(target, golden_.Write(), {});
  ASSERT_TRUE(comparison);
  ASSERT_GT(comparison->target_loss.recorder_drops, 0u);
  EXPECT_FALSE(comparison->first_wrong_call);
}

}  // namespace
}  // namespace plumbline
