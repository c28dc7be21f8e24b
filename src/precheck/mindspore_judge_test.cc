#include "precheck/mindspore_judge.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace plumbline::precheck::mindspore_judge_test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A side of a call: values whose tensors it puts into its memory.
class Side {
 public:
  template <class T>
  CallValue Put(DType dtype, const std::vector<T>& values, Shape shape) {
    TensorPlace place;
    place.dtype = dtype;
    place.shape = std::move(shape);
    place.offset = memory_.size();
    memory_.resize(memory_.size() + values.size() * sizeof(T));
    if (!values.empty()) {
      std::memcpy(memory_.data() + place.offset, values.data(), values.size() * sizeof(T));
    }
    return CallValue(std::move(place));
  }
  CallValue Floats(const std::vector<float>& values) {
    return Put(DType::kFloat32, values, {static_cast<int64_t>(values.size())});
  }
  ReturnedSide Returns(CallValue value) {
    value_ = std::move(value);
    return {&value_, memory_};
  }
  ReturnedSide Returns(std::vector<CallValue> values) {
    return Returns(CallValue(CallSequence{Sequence::kTuple, std::move(values)}));
  }

 private:
  std::vector<std::byte> memory_;
  CallValue value_;
};

class MindSporeJudge : public ::testing::Test {
 protected:
  DirectionOutcome Forward(const MindSporeLimits& limits = {}) {
    return JudgeForward("Mint.add.0", bench_returned_, tested_returned_, limits);
  }
  DirectionOutcome ForwardOf(const std::vector<float>& bench, const std::vector<float>& tested,
                             const MindSporeLimits& limits = {}) {
    bench_returned_ = bench_.Returns(bench_.Floats(bench));
    tested_returned_ = tested_.Returns(tested_.Floats(tested));
    return Forward(limits);
  }
  DirectionOutcome Backward(GradientOrder order = GradientOrder::kAligned) {
    return JudgeBackward("Mint.add.0", bench_returned_, tested_returned_, order, {});
  }
  DirectionOutcome PlainOf(CallValue bench, CallValue tested) {
    bench_returned_ = bench_.Returns(std::move(bench));
    tested_returned_ = tested_.Returns(std::move(tested));
    return Forward();
  }

  Side bench_, tested_;
  ReturnedSide bench_returned_, tested_returned_;
};

TEST_F(MindSporeJudge, EqualOutputsPassWithoutAWord) {
  const DirectionOutcome outcome = ForwardOf({1, 2, 3}, {1, 2, 3});
  EXPECT_EQ(outcome.status, CheckStatus::kPass);
  ASSERT_EQ(outcome.rows.size(), 1);
  const OutputRow& row = outcome.rows[0];
  EXPECT_EQ(row.name, "Mint.add.0.forward.output.0");
  EXPECT_EQ(row.bench_dtype, "Float32");
  EXPECT_EQ(row.device_dtype, "Float32");
  EXPECT_EQ(row.shape, "(3,)");
  EXPECT_EQ(row.cosine->value, 1);
  EXPECT_EQ(row.max_abs_error->value, 0);
  EXPECT_EQ(row.max_rel_error->value, 0);
  EXPECT_EQ(row.message, "");
}

TEST_F(MindSporeJudge, TheManualsLimitDecidesAndUpstreamsCanBeAskedFor) {
  const std::vector<float> off = {1, 2, 3.0005F};
  const DirectionOutcome strict = ForwardOf({1, 2, 3}, off);
  EXPECT_EQ(strict.status, CheckStatus::kError);
  EXPECT_NE(strict.rows[0].message.find("is not below 0.0001"), std::string::npos);
  const DirectionOutcome loose = ForwardOf({1, 2, 3}, off, {.max_abs_error = 1e-3});
  EXPECT_EQ(loose.status, CheckStatus::kPass);
  EXPECT_EQ(loose.rows[0].message, "MaxAbsErr is not below 0.0001.");
}

TEST_F(MindSporeJudge, ASmallErrorOfTheWrongDirectionFails) {
  const DirectionOutcome outcome = ForwardOf({1, -1}, {-1, 1}, {.max_abs_error = 10});
  EXPECT_EQ(outcome.status, CheckStatus::kError);
  EXPECT_NE(outcome.rows[0].message.find("is not above 0.99"), std::string::npos);
}

TEST_F(MindSporeJudge, NaNOnBothSidesIsNoPass) {
  const DirectionOutcome outcome = ForwardOf({1, kNaN}, {1, kNaN});
  EXPECT_EQ(outcome.status, CheckStatus::kError);
  EXPECT_NE(outcome.rows[0].message.find("1 element is NaN or infinite, 0 of them not the same"),
            std::string::npos);
}

TEST_F(MindSporeJudge, APassOfTinyValuesSaysThatItSaysLittle) {
  const DirectionOutcome outcome = ForwardOf({1e-6F, 0}, {-1e-6F, 0});
  EXPECT_EQ(outcome.status, CheckStatus::kPass);
  EXPECT_NE(outcome.rows[0].message.find("All values are below the limit"), std::string::npos);
}

TEST_F(MindSporeJudge, OtherShapesAndKindsAreErrors) {
  bench_returned_ = bench_.Returns(bench_.Put<float>(DType::kFloat32, {1, 2}, {2}));
  tested_returned_ = tested_.Returns(tested_.Put<float>(DType::kFloat32, {1, 2}, {1, 2}));
  const DirectionOutcome shapes = Forward();
  EXPECT_EQ(shapes.status, CheckStatus::kError);
  EXPECT_FALSE(shapes.rows[0].cosine);
  EXPECT_NE(shapes.rows[0].message.find("(1, 2)"), std::string::npos);
  EXPECT_EQ(PlainOf(bench_.Floats({1}), CallValue(1.0)).status, CheckStatus::kError);
}

TEST_F(MindSporeJudge, EmptyTensorsAreSkippedAndNeverPass) {
  bench_returned_ = bench_.Returns(bench_.Put<float>(DType::kFloat32, {}, {0, 3}));
  tested_returned_ = tested_.Returns(tested_.Put<float>(DType::kFloat32, {}, {0, 3}));
  const DirectionOutcome outcome = Forward();
  EXPECT_EQ(outcome.status, CheckStatus::kSkip);
  ASSERT_TRUE(outcome.skip);
  EXPECT_EQ(outcome.skip->cause, SkipCause::kNoOutput);
}

TEST_F(MindSporeJudge, ATensorOutsideTheMemoryIsNotRead) {
  TensorPlace place;
  place.shape = {1000};
  place.offset = 8;
  bench_returned_ = bench_.Returns(CallValue(place));
  tested_returned_ = tested_.Returns(CallValue(place));
  EXPECT_EQ(Forward().status, CheckStatus::kError);
}

TEST_F(MindSporeJudge, PlainValuesAreEqualOrWrong) {
  EXPECT_EQ(PlainOf(CallValue(true), CallValue(true)).status, CheckStatus::kPass);
  EXPECT_EQ(PlainOf(CallValue(int64_t{3}), CallValue(int64_t{4})).status, CheckStatus::kError);
  EXPECT_EQ(PlainOf(CallValue(1.5), CallValue(1.50001)).status, CheckStatus::kPass);
  EXPECT_EQ(PlainOf(CallValue(double{kNaN}), CallValue(double{kNaN})).status, CheckStatus::kError);
  EXPECT_EQ(PlainOf(CallValue(std::string("a")), CallValue(std::string("b"))).status,
            CheckStatus::kError);
  const CallValue torch_type(SpecialValue{Special::kDType, "", "torch.float16"});
  const CallValue own_type(SpecialValue{Special::kDType, "", "Float16"});
  EXPECT_EQ(PlainOf(torch_type, own_type).status, CheckStatus::kPass);
}

TEST_F(MindSporeJudge, SeveralOutputsAreNumberedWithoutTheAbsentOnes) {
  bench_returned_ =
      bench_.Returns(std::vector<CallValue>{bench_.Floats({1}), CallValue(), bench_.Floats({2})});
  tested_returned_ =
      tested_.Returns(std::vector<CallValue>{tested_.Floats({1}), tested_.Floats({2.5F})});
  const DirectionOutcome outcome = Forward();
  ASSERT_EQ(outcome.rows.size(), 2);
  EXPECT_EQ(outcome.rows[1].name, "Mint.add.0.forward.output.1");
  EXPECT_EQ(outcome.rows[0].status, CheckStatus::kPass);
  EXPECT_EQ(outcome.status, CheckStatus::kError);
}

TEST_F(MindSporeJudge, AMissingOutputIsAnErrorAndOneTooManyANote) {
  const auto two = [](Side& side) {
    return std::vector<CallValue>{side.Floats({1}), side.Floats({2})};
  };
  bench_returned_ = bench_.Returns(two(bench_));
  tested_returned_ = tested_.Returns(tested_.Floats({1}));
  EXPECT_EQ(Forward().status, CheckStatus::kError);
  bench_returned_ = bench_.Returns(bench_.Floats({1}));
  tested_returned_ = tested_.Returns(two(tested_));
  const DirectionOutcome surplus = Forward();
  EXPECT_EQ(surplus.status, CheckStatus::kPass);
  EXPECT_NE(surplus.rows[0].message.find("not compared"), std::string::npos);
}

TEST_F(MindSporeJudge, ContainersWithinOutputsAreWalked) {
  const auto nested = [](Side& side, float last) {
    const CallValue pair(CallSequence{Sequence::kTuple, {side.Floats({2}), side.Floats({last})}});
    return std::vector<CallValue>{side.Floats({1}), pair};
  };
  bench_returned_ = bench_.Returns(nested(bench_, 3));
  tested_returned_ = tested_.Returns(nested(tested_, 4));
  const DirectionOutcome outcome = Forward();
  ASSERT_EQ(outcome.rows.size(), 3);
  EXPECT_EQ(outcome.rows[2].name, "Mint.add.0.forward.output.1_1");
  EXPECT_EQ(outcome.rows[2].status, CheckStatus::kError);
}

TEST_F(MindSporeJudge, GradientsOfIntegersAreLeftOut) {
  bench_returned_ = bench_.Returns(std::vector<CallValue>{CallValue(), bench_.Floats({1})});
  tested_returned_ = tested_.Returns(
      std::vector<CallValue>{tested_.Put<int64_t>(DType::kInt64, {5}, {1}), tested_.Floats({1})});
  const DirectionOutcome outcome = Backward();
  ASSERT_EQ(outcome.rows.size(), 1);
  EXPECT_EQ(outcome.rows[0].name, "Mint.add.0.backward.output.0");
  EXPECT_EQ(outcome.status, CheckStatus::kPass);
}

TEST_F(MindSporeJudge, AnAbsentGradientStandsForZeros) {
  bench_returned_ = bench_.Returns(std::vector<CallValue>{CallValue(), bench_.Floats({1})});
  tested_returned_ =
      tested_.Returns(std::vector<CallValue>{tested_.Floats({0}), tested_.Floats({1})});
  EXPECT_EQ(Backward().status, CheckStatus::kPass);
  tested_returned_ =
      tested_.Returns(std::vector<CallValue>{tested_.Floats({7}), tested_.Floats({1})});
  EXPECT_EQ(Backward().status, CheckStatus::kError);
}

TEST_F(MindSporeJudge, WhatWasNotRecordedIsNotJudged) {
  bench_returned_ = bench_.Returns(std::vector<CallValue>{bench_.Floats({9}), bench_.Floats({1})});
  tested_returned_ = tested_.Returns(std::vector<CallValue>{CallValue(), tested_.Floats({1})});
  EXPECT_EQ(Backward(GradientOrder::kRecorded).status, CheckStatus::kPass);
  EXPECT_EQ(Backward(GradientOrder::kAligned).status, CheckStatus::kError);
}

TEST_F(MindSporeJudge, ListedGradientsArePairedInOrderAndSaySo) {
  bench_returned_ = bench_.Returns(std::vector<CallValue>{bench_.Floats({1}), bench_.Floats({2})});
  tested_returned_ = tested_.Returns(std::vector<CallValue>{tested_.Floats({1})});
  const DirectionOutcome outcome = Backward(GradientOrder::kListed);
  ASSERT_EQ(outcome.rows.size(), 1);
  EXPECT_NE(outcome.rows[0].message.find("may not belong together"), std::string::npos);
}

TEST_F(MindSporeJudge, NoGradientAtAllIsASkip) {
  bench_returned_ = bench_.Returns(std::vector<CallValue>{CallValue()});
  tested_returned_ = tested_.Returns(std::vector<CallValue>{CallValue()});
  const DirectionOutcome outcome = Backward();
  EXPECT_EQ(outcome.status, CheckStatus::kSkip);
  EXPECT_EQ(outcome.skip->cause, SkipCause::kNoOutput);
}

}  // namespace
}  // namespace plumbline::precheck::mindspore_judge_test
