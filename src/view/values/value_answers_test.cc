#include "view/values/value_answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/process/parallel.h"
#include "view/values/distribution.h"
#include "view/values/error_counts.h"
#include "view/values/tensor_views.h"

namespace plumbline::view {
namespace {

TEST(ValueAnswers, NothingRecordedSaysHowToRecord) {
  const auto answer = ValueAnswer({}, "stats", Parameters());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kNotFound);
  EXPECT_NE(answer.error().message().find("\"tensor\""), std::string::npos);
}

// Elements of a tensor of one dimension.
template <class T>
struct Elements {
  std::vector<T> values;
  int64_t size = static_cast<int64_t>(values.size()), stride = 1;
  [[nodiscard]] TensorView View(DType dtype) const {
    return {dtype, reinterpret_cast<const std::byte*>(values.data()), {&size, 1}, {&stride, 1}};
  }
};

Elements<float> Noise(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  values[0] = std::numeric_limits<float>::quiet_NaN();
  values[count / 2] = -std::numeric_limits<float>::infinity();
  return {values};
}

constexpr size_t kSeveralParts = (size_t{1} << 19) + 77;

TEST(ValueDistribution, QuantilesAreThoseOfASortedList) {
  const Elements<float> tensor = Noise(kSeveralParts, 1);
  const auto found = DistributionOf(ElementReader(tensor.View(DType::kFloat32)), nullptr);
  ASSERT_TRUE(found);
  std::vector<float> sorted;
  for (const float value : tensor.values) {
    if (std::isfinite(value)) sorted.push_back(value);
  }
  std::ranges::sort(sorted);
  for (size_t i = 0; i < kQuantiles.size(); ++i) {
    const double place = kQuantiles[i] * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<size_t>(place);
    const double share = place - static_cast<double>(below);
    const double next = static_cast<double>(sorted[std::min(below + 1, sorted.size() - 1)]);
    const double expected = static_cast<double>(sorted[below]) * (1 - share) + next * share;
    EXPECT_EQ(found->quantiles[i], expected) << kQuantiles[i];
  }
  EXPECT_EQ(found->nan, 1U);
  EXPECT_EQ(found->minus_inf, 1U);
}

TEST(ValueDistribution, DoesNotDependOnThreads) {
  const Elements<float> tensor = Noise(kSeveralParts, 2), other = Noise(kSeveralParts, 3);
  const PairReader pair(tensor.View(DType::kFloat32), other.View(DType::kFloat32));
  std::vector<double> sums;
  for (const int threads : {1, 2, 7}) {
    RunWithThreads(threads, [&] {
      const auto golden = DistributionOf(pair.golden(), nullptr);
      const auto errors = CountErrors(pair, *golden, nullptr);
      sums.push_back(golden->mean + golden->norm + errors->deciles[3].absolute_sum);
    });
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
}

// Every pair of patterns of a 16-bit type would be 2^32: those near each other and to NaN.
TEST(ValueErrors, NaNOfOtherSignIsTheSame) {
  const Elements<uint16_t> target{{0x7FFF, 0xFFFF, 0x7FFF, 0x7F80, 0x0000}};
  const Elements<uint16_t> golden{{0xFFFF, 0x7FFF, 0x7F80, 0xFF80, 0x8000}};
  const PairReader pair(target.View(DType::kBFloat16), golden.View(DType::kBFloat16));
  const auto distribution = DistributionOf(pair.golden(), nullptr);
  const auto errors = CountErrors(pair, *distribution, nullptr);
  ASSERT_TRUE(errors);
  EXPECT_EQ(errors->nonfinite, 4U);
  EXPECT_EQ(errors->nonfinite_mismatch, 2U);
  EXPECT_EQ(errors->equal, 1U);
}

TEST(ValueErrors, BinsOfAWideRangeAreWholeOctaves) {
  OctaveCounts counts;
  for (int exponent = -1000; exponent <= 1000; exponent += 10) {
    counts.AddTo(OctaveCounts::BinOf(std::ldexp(1.5, exponent)), 1);
  }
  const OctaveCounts::Bins bins = counts.Condensed(256);
  EXPECT_LE(bins.counts.size(), 256U);
  EXPECT_EQ(bins.edges.size(), bins.counts.size() + 1);
  uint64_t all = 0;
  for (const uint64_t count : bins.counts) all += count;
  EXPECT_EQ(all, 201U);
}

TEST(ValueAnswers, ASetFlagStopsEveryPass) {
  const Elements<float> tensor = Noise(1000, 4);
  const TensorView view = tensor.View(DType::kFloat32);
  const ElementReader reader(view);
  const PairReader pair(view, view);
  const std::atomic<bool> cancel = true;
  const ValueSides sides{&view, &view};
  EXPECT_EQ(DistributionOf(reader, &cancel).error().message(), "cancelled");
  EXPECT_EQ(DistributionOfDifference(pair, &cancel).error().message(), "cancelled");
  EXPECT_EQ(CountErrors(pair, {}, &cancel).error().message(), "cancelled");
  EXPECT_EQ(WorstElements(sides, WorstBy::kAbsolute, 3, &cancel).error().message(), "cancelled");
  EXPECT_EQ(ProfileAxis(sides, 0, 3, &cancel).error().message(), "cancelled");
}

TEST(KeptAnswers, WhatIsAskedForLastStays) {
  KeptAnswers cache(300);
  for (const char* key : {"a", "b"}) cache.Keep(key, std::make_shared<const int>(1), 100);
  EXPECT_NE(cache.Find<int>("a"), nullptr);
  cache.Keep("c", std::make_shared<const int>(1), 100);
  EXPECT_EQ(cache.Find<int>("b"), nullptr);
  EXPECT_NE(cache.Find<int>("a"), nullptr);
  EXPECT_NE(cache.Find<int>("c"), nullptr);
}

}  // namespace
}  // namespace plumbline::view
