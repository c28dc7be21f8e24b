#include "watch/live/adam_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace plumbline::watch {
namespace {

TensorView ViewOf(const std::vector<double>& numbers, const std::vector<int64_t>& sizes,
                  const std::vector<int64_t>& strides) {
  return {DType::kFloat64, reinterpret_cast<const std::byte*>(numbers.data()), sizes, strides};
}

TEST(AdamUpdate, EveryValueIsInTheBinWhoseEdgesHoldIt) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0, 0.5);
  std::vector<double> first, second;
  for (int i = 0; i < 5000; ++i) {
    first.push_back(normal(random));
    second.push_back(std::abs(normal(random)));
  }
  for (int i = 0; i <= 30; ++i) {  // the edges themselves, as ratios
    first.push_back(0.1 * (i == 30 ? 1.0 : i * (2.0 / 30) + -1.0));
    second.push_back(0.001);
  }
  const std::vector<int64_t> sizes = {5031}, strides = {1};
  const AdamRule rule{0.9, 0.999, 0.01, 1};
  const auto found =
      HistogramsOfAdam(ViewOf(first, sizes, strides), ViewOf(second, sizes, strides), rule);
  ASSERT_TRUE(found);
  AdamHistograms expected;
  for (size_t i = 0; i < first.size(); ++i) {
    const double m = first[i] / (1 - std::pow(0.9, 1.0));
    const double v = std::sqrt(second[i] / (1 - std::pow(0.999, 1.0)));
    for (int bin = 0; bin < 30; ++bin) {
      const double low = bin * (2.0 / 30) + -1.0;
      const double high = bin == 29 ? 1.0 : (bin + 1) * (2.0 / 30) + -1.0;
      const auto holds = [&](double x) { return x >= low && (bin == 29 ? x <= high : x < high); };
      expected.update[static_cast<size_t>(bin)] += holds(m / (v + 0.01)) ? 1 : 0;
      expected.ratio[static_cast<size_t>(bin)] += holds(m / v) ? 1 : 0;
    }
  }
  EXPECT_EQ(found->update, expected.update);
  EXPECT_EQ(found->ratio, expected.ratio);
}

TEST(AdamUpdate, LeavesOutWhatHasNoValue) {
  // 0 / 0, NaN, infinity, and 2 in the update and in the ratio.
  const std::vector<double> first = {0, NAN, INFINITY, 0.2}, second = {0, 1, 1, 0.001};
  const std::vector<int64_t> sizes = {4}, strides = {1};
  const auto found = HistogramsOfAdam(ViewOf(first, sizes, strides),
                                      ViewOf(second, sizes, strides), {0.9, 0.999, 1e-8, 1});
  ASSERT_TRUE(found);
  Histogram zero = {};
  EXPECT_EQ(found->ratio, zero);
  zero[15] = 1;  // 0 / eps
  EXPECT_EQ(found->update, zero);
}

TEST(AdamUpdate, TwoSizesAndIntegersHaveNone) {
  const std::vector<double> numbers = {1, 2, 3, 4};
  const std::vector<int64_t> four = {4}, three = {3}, strides = {1};
  EXPECT_FALSE(
      HistogramsOfAdam(ViewOf(numbers, four, strides), ViewOf(numbers, three, strides), {}));
  TensorView integers = ViewOf(numbers, four, strides);
  integers.dtype = DType::kInt64;
  EXPECT_FALSE(HistogramsOfAdam(integers, integers, {}));
}

}  // namespace
}  // namespace plumbline::watch
