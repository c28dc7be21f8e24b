#include "precheck/mindspore_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace plumbline::precheck::mindspore_metrics_test {
namespace {

template <class T>
MindSporeMetrics Measure(DType dtype, const std::vector<T>& bench, const std::vector<T>& tested) {
  const Shape sizes = {static_cast<int64_t>(bench.size())}, strides = {1};
  const auto view = [&](const std::vector<T>& values) {
    return TensorView{dtype, reinterpret_cast<const std::byte*>(values.data()), sizes, strides};
  };
  return MeasureMindSpore(view(bench), view(tested));
}

// Expected numbers by NumPy: (1e-8 + dot) / (1e-8 + norm * norm), and so on.
TEST(MindSporeMetrics, OfFloatsAreNumPys) {
  const auto metrics = Measure<float>(DType::kFloat32, {1, 2, 3}, {1, 2, 3.0005F});
  EXPECT_NEAR(metrics.cosine, 0.9999999968123698, 1e-15);
  EXPECT_EQ(metrics.max_abs_error, static_cast<double>(3.0005F) - 3);
  EXPECT_EQ(metrics.max_rel_error, (static_cast<double>(3.0005F) - 3) / 3);
}

TEST(MindSporeMetrics, AreThoseOfAllElementsOfLongTensors) {
  std::vector<double> bench(10007), tested(10007);
  double dot = 0, squares = 0, other = 0;
  for (size_t i = 0; i < bench.size(); ++i) {
    bench[i] = std::sin(static_cast<double>(i));
    tested[i] = bench[i] + (i % 7 == 0 ? 1e-3 : 0);
    if (i + 1 == bench.size()) tested[i] += 0.5;  // behind the last whole block
    dot += bench[i] * tested[i];
    squares += bench[i] * bench[i];
    other += tested[i] * tested[i];
  }
  const auto metrics = Measure(DType::kFloat64, bench, tested);
  const double expected = (1e-8 + dot) / (1e-8 + std::sqrt(squares) * std::sqrt(other));
  EXPECT_NEAR(metrics.cosine, expected, 1e-13);
  EXPECT_EQ(metrics.max_abs_error, std::abs(tested.back() - bench.back()));
}

TEST(MindSporeMetrics, AZeroBenchmarkDividesByEpsilon) {
  const auto metrics = Measure<float>(DType::kFloat32, {0, 4}, {0.5F, 4});
  EXPECT_EQ(metrics.max_rel_error, 0.5 / 1e-8);
  const auto zeros = Measure<float>(DType::kFloat32, {0, 0}, {0, 0});
  EXPECT_EQ(zeros.cosine, 1);
  EXPECT_EQ(zeros.max_abs_error, 0);
}

TEST(MindSporeMetrics, NaNIsNoNumberSmallerThanALimit) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto both = Measure<float>(DType::kFloat32, {1, nan, 2}, {1, nan, 2.5F});
  EXPECT_TRUE(std::isnan(both.cosine));
  EXPECT_TRUE(std::isnan(both.max_abs_error));
  EXPECT_TRUE(std::isnan(both.max_rel_error));
  EXPECT_EQ(both.nonfinite_count, 1);
  EXPECT_EQ(both.nonfinite_differs, 0);
  EXPECT_EQ(both.finite_max_abs, 0.5);
  EXPECT_EQ(Measure<float>(DType::kFloat32, {1, nan}, {1, 3}).nonfinite_differs, 1);
}

TEST(MindSporeMetrics, AnInfinityOnOneSideIsAnInfiniteError) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto one = Measure<float>(DType::kFloat32, {1, 2}, {1, inf});
  EXPECT_EQ(one.max_abs_error, std::numeric_limits<double>::infinity());
  EXPECT_EQ(one.nonfinite_differs, 1);
  EXPECT_EQ(Measure<float>(DType::kFloat32, {inf}, {-inf}).nonfinite_differs, 1);
  EXPECT_EQ(Measure<float>(DType::kFloat32, {inf}, {inf}).nonfinite_differs, 0);
}

TEST(MindSporeMetrics, HugeNumbersHaveACosine) {
  const auto metrics = Measure<double>(DType::kFloat64, {1e300, -2e300}, {1e300, -2e300});
  EXPECT_NEAR(metrics.cosine, 1, 1e-15);
  const auto opposite = Measure<double>(DType::kFloat64, {1e300}, {-1e300});
  EXPECT_NEAR(opposite.cosine, -1, 1e-15);
}

// As doubles both are 2^60.
TEST(MindSporeMetrics, LargeIntegersDifferByOne) {
  const int64_t large = int64_t{1} << 60;
  EXPECT_EQ(Measure<int64_t>(DType::kInt64, {large}, {large + 1}).max_abs_error, 1);
  EXPECT_EQ(Measure<int64_t>(DType::kInt64, {INT64_MIN}, {INT64_MAX}).max_abs_error,
            std::ldexp(1.0, 64));
}

TEST(MindSporeMetrics, BoolsAndHalvesAreNumbers) {
  EXPECT_EQ(Measure<uint8_t>(DType::kBool, {1, 0, 1}, {1, 1, 1}).max_abs_error, 1);
  // 1 and 1 + 2^-7 in bfloat16
  EXPECT_EQ(Measure<uint16_t>(DType::kBFloat16, {0x3F80}, {0x3F81}).max_abs_error, 0.0078125);
}

}  // namespace
}  // namespace plumbline::precheck::mindspore_metrics_test
