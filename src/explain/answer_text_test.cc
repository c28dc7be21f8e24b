#include "explain/answer_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/file/test_directory.h"
#include "explain/next_config.h"
#include "verdict/choose_culprit.h"
#include "verdict/comparison_for_test.h"

namespace plumbline::explain {

namespace {

TEST(NamesOfPasses, AreTurnedIntoEachOther) {
  EXPECT_EQ(verdict::ForwardNameOf("Torch.f.0.backward"), "Torch.f.0.forward");
  EXPECT_EQ(verdict::BackwardNameOf("Torch.f.0.forward"), "Torch.f.0.backward");
  EXPECT_EQ(verdict::BackwardNameOf("Module.a.A.forward.0"), "Module.a.A.backward.0");
  EXPECT_EQ(verdict::ForwardNameOf("Torch.f.0.forward"), "");
  EXPECT_EQ(verdict::BackwardNameOf("Torch.f.0.backward"), "");
}

}  // namespace

namespace {

const Item kX = verdict::TensorForTest({1, -1, 0.1, 2});
const Item kY = verdict::TensorForTest({3, -2, 0.5, 4});

std::string NextConfig(const Comparison& comparison) {
  const testing::TestDirectory directory;
  DumpForTest dump(directory.path() + "/step0/rank0");
  Result<plumbline::Run> run =
      plumbline::Run::Open(dump.Add("Torch.f.0.forward", TensorJson(1, -1, 2), "").Write());
  EXPECT_TRUE(run) << run.error().message();
  return NextConfigText(*run, comparison);
}

verdict::ComparisonForTest WithWrongRow(CompareMode mode, const char* reason) {
  verdict::ComparisonForTest calls(mode);
  calls.Pair("Torch.f.0.forward").Out(kX).Pair("Torch.f.0.backward").Out(kX, kY);
  calls.last_row().verdict = Verdict::kBroken;
  calls.last_row().reason = reason;
  return calls;
}

TEST(NextConfig, TensorsOfCallsThatDifferWhereNoneIsNamed) {
  const verdict::ComparisonForTest calls = WithWrongRow(CompareMode::kStatistics, "exceeds-noise");
  const std::string text = NextConfig(calls.get());
  EXPECT_NE(text.find(R"("task": "tensor")"), text.npos) << text;
  EXPECT_NE(text.find(R"("list": ["Torch.f.0.backward", "Torch.f.0.forward"])"), text.npos) << text;
}

TEST(NextConfig, CallsOfAnotherFormComeFirstWhereNoneIsNamed) {
  verdict::ComparisonForTest calls = WithWrongRow(CompareMode::kStatistics, "exceeds-noise");
  calls.Target("Torch.g.0.forward", "structure-differs").TargetOut(kX);
  const std::string text = NextConfig(calls.get());
  EXPECT_NE(text.find(R"("list": ["Torch.g.0.forward", "Torch.f.0.backward")"), text.npos) << text;
}

TEST(NextConfig, WhatDiffersIsNotCalledRight) {
  verdict::ComparisonForTest calls = WithWrongRow(CompareMode::kTensor, "exceeds-noise");
  Comparison comparison = calls.get();
  ASSERT_TRUE(WriteNextConfig("next.json", comparison));
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(comparison.warnings[0],
            "next.json: not written, the tensors of the calls that differ are recorded already");
}

TEST(NextConfig, NothingWhereNothingFinerOrNothingOwnDiffers) {
  EXPECT_EQ(NextConfig(WithWrongRow(CompareMode::kTensor, "exceeds-noise").get()), "");
  EXPECT_EQ(NextConfig(WithWrongRow(CompareMode::kStatistics, "inherited").get()), "");
  EXPECT_EQ(NextConfig(verdict::ComparisonForTest().Pair("Torch.f.0.forward").Out(kX).get()), "");
}

}  // namespace

}  // namespace plumbline::explain

namespace plumbline {

// What a comparison says it could not have told, and buffers that modules changed.

namespace {

constexpr double kRoundoff = 0x1p-24;  // of float32

std::string Trained(double max, const std::string& extra = {}) {
  std::string text = TensorJson(max, -max, 2 * max, "[4]", extra);
  return text.replace(text.find("false"), 5, "true");
}

class DetectionLimitTest : public TwoDumpsTest {
 protected:
  // A forward call, its gradients, and an optimizer's call if `is_updated`.
  void Train(bool is_updated, const std::string& extra = {}) {
    for (DumpForTest* side : {&target_, &golden_}) {
      const auto value = [&](double max) { return TensorJson(max, -max, 2 * max, "[4]", extra); };
      side->Add("Functional.linear.0.forward", value(3) + "," + Trained(0.5, extra), value(4));
      side->AddEntry(R"("Functional.linear.0.backward": {"input": [)" + value(0.1) +
                     R"(], "output": [)" + value(0.2) + "," + value(0.3) + "]}");
      if (is_updated) {
        side->Add("Tensor.add_.0.forward", Trained(0.5, extra) + "," + value(0.3),
                  Trained(0.4, extra));
      }
    }
  }
};

// The verdict allows eight times what is explained: no more than that is said.
TEST_F(DetectionLimitTest, IsWhatTheVerdictAllowed) {
  Train(true);
  const Comparison comparison = Compare();
  EXPECT_TRUE(comparison.is_complete());
  double result = 0, gradient = 0;
  for (const ComparedRow& row : comparison.rows) {
    if (row.item().role != ItemRole::kOutput) continue;
    const bool is_gradient = row.item().name.view().find("backward") != std::string::npos;
    double& of_kind = is_gradient ? gradient : result;
    of_kind = std::max(of_kind, 8 * row.expected);
  }
  EXPECT_GE(result, 8 * kRoundoff);
  EXPECT_EQ(comparison.limit.result, result);
  EXPECT_EQ(comparison.limit.gradient, gradient);
  EXPECT_EQ(comparison.limit.roundings, 0u);
  const std::string text = SummaryText(comparison);
  EXPECT_NE(text.find("\n  limit: differences of a result below 0.0"), text.npos) << text;
}

TEST_F(DetectionLimitTest, UnequalDigestsAreAlwaysTold) {
  Train(true, R"(, "md5": "00000001")");
  const Comparison comparison = Compare();
  EXPECT_EQ(comparison.mode, CompareMode::kDigest);
  EXPECT_EQ(comparison.limit.result, 0);
  EXPECT_EQ(comparison.limit.gradient, 0);
}

TEST_F(DetectionLimitTest, UpdateThatNothingRecordedIsSaid) {
  Train(false);
  const Comparison comparison = Compare();
  EXPECT_TRUE(comparison.limit.lacks_last_update);
  const std::string text = SummaryText(comparison);
  EXPECT_NE(text.find("what the optimizer made of the last gradients was not recorded"), text.npos)
      << text;
}

TEST_F(DetectionLimitTest, RecordedUpdateIsNotMissed) {
  Train(true);
  EXPECT_FALSE(Compare().limit.lacks_last_update);
}

TEST_F(DetectionLimitTest, WithoutGradientsNoUpdateIsExpected) {
  for (DumpForTest* side : {&target_, &golden_}) {
    side->Add("Functional.linear.0.forward", TensorJson(3, -3, 6) + "," + Trained(0.5),
              TensorJson(4, -4, 8));
  }
  EXPECT_FALSE(Compare().limit.lacks_last_update);
}

// A normalisation in training at level L0: its result does not depend on what it leaves in its
// buffers.
class BuffersTest : public TwoDumpsTest {
 protected:
  void Normalise(DumpForTest& side, double running_mean) {
    side.AddEntry(fmt::format(
        R"("Module.norm.BatchNorm1d.forward.0": {{"input_args": [{}], "input_kwargs": {{}}, )"
        R"("output": [{}], "parameters": {{"weight": {}}}, "buffers": {{"running_mean": {}}}}})",
        TensorJson(3, -2, 20, "[16, 4]"), TensorJson(2, -2, 8, "[16, 4]"), Trained(1),
        TensorJson(running_mean, -running_mean, 1.5 * running_mean)));
  }
};

TEST_F(BuffersTest, WrongBufferIsNamedWithItsModule) {
  Normalise(golden_, 0.1);
  Normalise(target_, 0.2);
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Module.norm.BatchNorm1d.forward.0");
  EXPECT_EQ(comparison.first_wrong_call->item,
            "Module.norm.BatchNorm1d.forward.0.buffers.running_mean");
}

// The mean of a channel may be small beside its elements.
TEST_F(BuffersTest, RoundingOfWhatIsAveragedIsNoise) {
  Normalise(golden_, 0.001);
  Normalise(target_, 0.001 * (1 + 2000 * kRoundoff));
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call) << comparison.first_wrong_call->what;
  EXPECT_TRUE(comparison.is_complete());
}

}  // namespace

}  // namespace plumbline
