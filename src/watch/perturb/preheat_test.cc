#include "watch/perturb/preheat.h"

#include <gtest/gtest.h>

#include <vector>

namespace plumbline::perturb {
namespace {

constexpr char kApi[] = "Torch.matmul";
constexpr char kDType[] = "torch.float16";
constexpr double kLeast = 1.002;

// Three calls of a step, of which the sampled ones get `sample`; their numbers.
std::vector<int64_t> RunStep(Preheat* preheat, int64_t step, const Preheat::Sample& sample) {
  std::vector<int64_t> sampled;
  preheat->BeginStep(step);
  for (int i = 0; i < 3; ++i) {
    const Preheat::Call call = preheat->CountCall(kApi);
    EXPECT_EQ(call.is_compared, step > 0);
    if (!call.is_sampled) continue;
    sampled.push_back(call.number);
    preheat->AddSample(kApi, kDType, sample);
  }
  return sampled;
}

TEST(Preheat, AgreementHalvesTheDistanceToOne) {
  Preheat preheat(4, 20);
  const Preheat::Sample good{1.0, true, kLeast};
  EXPECT_TRUE(RunStep(&preheat, 0, good).empty());
  EXPECT_EQ(preheat.ThresholdOf(kApi, kDType, kLeast), 2.05);
  const double expected[] = {1.525, 1.2625, 1.13125};
  for (int64_t step = 1; step <= 3; ++step) {
    EXPECT_EQ(RunStep(&preheat, step, good), std::vector<int64_t>{step});
    EXPECT_DOUBLE_EQ(preheat.ThresholdOf(kApi, kDType, kLeast), expected[step - 1]);
    EXPECT_FALSE(preheat.is_over());
  }
  EXPECT_TRUE(RunStep(&preheat, 4, good).empty());
  EXPECT_TRUE(preheat.is_over());
  EXPECT_DOUBLE_EQ(preheat.ThresholdOf(kApi, kDType, kLeast), 1.13125);
}

TEST(Preheat, ARatioAboveTheThresholdThatAgreesDoublesTheDistance) {
  Preheat preheat(4, 20);
  RunStep(&preheat, 0, {});
  RunStep(&preheat, 1, {3.0, true, kLeast});
  EXPECT_DOUBLE_EQ(preheat.ThresholdOf(kApi, kDType, kLeast), 3.1);
}

TEST(Preheat, ADisagreementPinsTheThreshold) {
  Preheat preheat(4, 20);
  RunStep(&preheat, 0, {});
  RunStep(&preheat, 1, {1.3, false, kLeast});
  EXPECT_DOUBLE_EQ(preheat.ThresholdOf(kApi, kDType, kLeast), 1.3);
  RunStep(&preheat, 2, {1.0, true, kLeast});
  EXPECT_DOUBLE_EQ(preheat.ThresholdOf(kApi, kDType, kLeast), 1.3);
  EXPECT_NE(preheat.Text().find("\"threshold\": 1.3, \"frozen\": true, \"samples\": 1"),
            std::string::npos);
}

TEST(Preheat, TheDefaultIsTheFloor) {
  Preheat preheat(4, 20);
  RunStep(&preheat, 0, {});
  RunStep(&preheat, 1, {1.0, false, kLeast});
  EXPECT_DOUBLE_EQ(preheat.ThresholdOf(kApi, kDType, kLeast), kLeast);
}

TEST(Preheat, GoodAndBadThatCannotBeToldApartChangeNothing) {
  Preheat preheat(1, 20);
  preheat.BeginStep(7);  // the first collected step counts, whatever its number
  for (int i = 0; i < 2; ++i) (void)preheat.CountCall(kApi);
  Preheat mixed(2, 20);
  mixed.BeginStep(7);
  for (int i = 0; i < 4; ++i) (void)mixed.CountCall(kApi);
  mixed.BeginStep(8);
  std::vector<int64_t> sampled;
  for (int i = 0; i < 4; ++i) {
    const Preheat::Call call = mixed.CountCall(kApi);
    if (call.is_sampled) sampled.push_back(call.number);
  }
  EXPECT_EQ(sampled, (std::vector<int64_t>{1, 3}));
  mixed.AddSample(kApi, kDType, {1.5, true, kLeast});
  mixed.AddSample(kApi, kDType, {1.4, false, kLeast});
  EXPECT_DOUBLE_EQ(mixed.ThresholdOf(kApi, kDType, kLeast), 2.05);
}

TEST(Preheat, ThresholdsAreReadBack) {
  Preheat preheat(4, 20);
  RunStep(&preheat, 0, {});
  RunStep(&preheat, 1, {1.25, false, kLeast});
  Preheat other(4, 20);
  ASSERT_TRUE(other.Load(preheat.Text()));
  EXPECT_TRUE(other.Knows(kApi, kDType));
  EXPECT_DOUBLE_EQ(other.ThresholdOf(kApi, kDType, kLeast), 1.25);
  for (const char* text : {"", "[]", "{\"a\": 1}", "{\"a\": {\"b\": {}}}",
                           "{\"a\": {\"b\": {\"threshold\": 0.5}}}", "{\"a\": {\"b\": {\"thr"}) {
    const Status status = other.Load(text);
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().code(), ErrorCode::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace plumbline::perturb
