#include "precheck/output_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/process/parallel.h"
#include "tensor/half.h"

namespace plumbline::precheck::output_metrics_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Elements in memory of a float type; those that the type has exactly, or rounded to it.
std::vector<std::byte> Store(DType dtype, const std::vector<double>& values) {
  const size_t size = InfoOf(dtype).size_bytes;
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto single = static_cast<float>(values[i]);
    if (dtype == DType::kFloat64) {
      std::memcpy(&bytes[i * size], &values[i], 8);
    } else if (dtype == DType::kFloat32) {
      std::memcpy(&bytes[i * size], &single, 4);
    } else {
      const uint32_t bits = FloatToNarrow(*NarrowFormatOf(dtype), single);
      std::memcpy(&bytes[i * size], &bits, size);
    }
  }
  return bytes;
}

struct Stored {
  DType bench_dtype, device_dtype;
  std::vector<std::byte> bench, device;

  Stored(DType of_bench, const std::vector<double>& b, DType of_device,
         const std::vector<double>& d)
      : bench_dtype(of_bench),
        device_dtype(of_device),
        bench(Store(of_bench, b)),
        device(Store(of_device, d)) {}
  [[nodiscard]] OutputPair pair() const {
    return {bench_dtype, bench.data(), device_dtype, device.data(),
            bench.size() / InfoOf(bench_dtype).size_bytes};
  }
};

TEST(OutputMetrics, BenchmarkOfFloat32) {
  const Stored stored(DType::kFloat64, {1, -2, 0.5, 0x1p-23, 3}, DType::kFloat32,
                      {1 + 0x1p-23, -2, 0.5 - 0x1p-25, 0x1p-22, kInf});
  const FloatMetrics metrics = MeasureFloats(stored.pair(), Standard::kBenchmark);
  EXPECT_EQ(metrics.abs_error_ratio, 1);
  EXPECT_NEAR(metrics.max_rel_error, 1.1920928955e-07, 1e-17);
  EXPECT_NEAR(metrics.mean_rel_error, 5.9604644775e-08, 1e-17);
  EXPECT_NEAR(metrics.rmse, 7.09446633947e-08, 1e-18);
  EXPECT_EQ(metrics.error_balance, 0.4);
  EXPECT_EQ(metrics.cosine_case, CosineCase::kNotFinite);
  EXPECT_TRUE(std::isnan(metrics.cosine));
  EXPECT_EQ(metrics.max_abs_error, kInf);
  EXPECT_TRUE(metrics.is_double);
}

TEST(OutputMetrics, UnitsOfTheLastPlaceOfFloat16) {
  const Stored stored(DType::kFloat32, {1, 1.5, 0, -3}, DType::kFloat16,
                      {1 + 0x1p-10, 1.5, 0x1p-10, -3 - 0x1p-8});
  const FloatMetrics metrics = MeasureFloats(stored.pair(), Standard::kUlp);
  EXPECT_EQ(metrics.max_ulp, 2);
  EXPECT_EQ(metrics.mean_ulp, 1);
  EXPECT_EQ(metrics.ulp_proportion, 0.25);
  EXPECT_EQ(metrics.zero_bench_ulps, 1U);
}

TEST(OutputMetrics, NaNPropagatesIntoUnitsOfTheLastPlace) {
  const Stored stored(DType::kFloat32, {1, 2}, DType::kFloat16, {kNaN, 2});
  const FloatMetrics metrics = MeasureFloats(stored.pair(), Standard::kUlp);
  EXPECT_TRUE(std::isnan(metrics.max_ulp));
  EXPECT_TRUE(std::isnan(metrics.mean_ulp));
}

TEST(OutputMetrics, AbsoluteThresholdOfFloat16) {
  const Stored stored(DType::kFloat32, {1, 0x1p-11, 70000, kInf, 2}, DType::kFloat16,
                      {1 + 0x1p-9, 0x1p-11 + 0x1p-17, kInf, 0, kNaN});
  const FloatMetrics metrics = MeasureFloats(stored.pair(), Standard::kAbsolute);
  EXPECT_EQ(metrics.rel_error_ratio, 1);
  EXPECT_EQ(metrics.abs_error_ratio, 0);
  EXPECT_EQ(metrics.not_finite, 3U);
  EXPECT_EQ(metrics.inf_nan_error_ratio, 2.0 / 3);
}

TEST(OutputMetrics, AnInfiniteBenchmarkAsksForTheSameInfinity) {
  const auto ratio = [](double bench, double device) {
    const Stored stored(DType::kFloat32, {bench, 1}, DType::kFloat16, {device, 1});
    return MeasureFloats(stored.pair(), Standard::kAbsolute).inf_nan_error_ratio;
  };
  EXPECT_EQ(ratio(kInf, kInf), 0);
  EXPECT_EQ(ratio(kInf, -kInf), 1);
  EXPECT_EQ(ratio(kInf, 65504), 0);  // the finite range cuts both off at the same place
  EXPECT_EQ(ratio(kInf, 60000), 1);
  EXPECT_EQ(ratio(kNaN, kNaN), 0);
  EXPECT_EQ(ratio(kNaN, 1), 1);
  EXPECT_EQ(ratio(1, kNaN), 1);
}

TEST(OutputMetrics, NaNEqualsNaNInBinary) {
  const Stored stored(DType::kFloat32, {kNaN, kNaN, 1, -0.0, kInf}, DType::kFloat32,
                      {-kNaN, 1, 1, 0.0, -kInf});
  const FloatMetrics metrics = MeasureFloats(stored.pair(), Standard::kBinary);
  EXPECT_EQ(metrics.mismatches, 2U);
  EXPECT_EQ(metrics.error_rate, 0.4);
}

TEST(OutputMetrics, CosineAndMaximumAbsoluteError) {
  const Stored stored(DType::kFloat64, {1, 2, 3}, DType::kFloat64, {1, 2, 3.0005});
  const FloatMetrics metrics = MeasureFloats(stored.pair(), Standard::kBenchmark);
  EXPECT_NEAR(metrics.cosine, 0.99999999681191, 5e-15);
  EXPECT_NEAR(metrics.max_abs_error, 0.0005, 1e-15);
}

CosineCase CaseOf(const std::vector<double>& bench, const std::vector<double>& device) {
  const Stored stored(DType::kFloat64, bench, DType::kFloat64, device);
  return MeasureFloats(stored.pair(), Standard::kBenchmark).cosine_case;
}

TEST(OutputMetrics, PairsWithoutACosineSayWhy) {
  EXPECT_EQ(CaseOf({1}, {2}), CosineCase::kOneElement);
  EXPECT_EQ(CaseOf({0, 1e-17}, {2e-16, 0}), CosineCase::kBothZero);
  EXPECT_EQ(CaseOf({0, 0}, {1, 0}), CosineCase::kBenchZero);
  EXPECT_EQ(CaseOf({0, 3e-16}, {0, 0}), CosineCase::kDeviceZero);
  EXPECT_EQ(CaseOf({kNaN, 1}, {kNaN, 1}), CosineCase::kNotFinite);
  EXPECT_EQ(CaseOf({1, 1}, {1, 1}), CosineCase::kPlain);
}

TEST(OutputMetrics, HugeDoublesHaveACosine) {
  const Stored stored(DType::kFloat64, {1e300, 2e300, -3e300}, DType::kFloat64,
                      {3e300, 2e300, -1e300});
  const FloatMetrics metrics = MeasureFloats(stored.pair(), Standard::kBenchmark);
  EXPECT_NEAR(metrics.cosine, 10.0 / 14, 1e-15);
}

TEST(OutputMetrics, ComplexCountsByParts) {
  const std::vector<float> bench = {1, 0, 0, 2}, device = {1, 0.5, 0, 2};
  const FloatMetrics metrics = MeasureFloats(
      {DType::kComplex64, bench.data(), DType::kComplex64, device.data(), 2}, Standard::kBinary);
  EXPECT_EQ(metrics.count, 4U);
  EXPECT_EQ(metrics.mismatches, 1U);
  EXPECT_EQ(metrics.max_abs_error, 0.5);
}

TEST(OutputMetrics, Float8IsComparedWithTheRoundedBenchmark) {
  const Stored stored(DType::kFloat32, {1.03, -2.1, 0.3}, DType::kFloat8E4M3FN, {1, -2.25, 0.3});
  const FloatMetrics metrics = MeasureFloats(stored.pair(), Standard::kUlp);
  EXPECT_EQ(metrics.max_ulp, 1);
  EXPECT_EQ(metrics.max_abs_error, 0.25);
  EXPECT_NEAR(metrics.mean_ulp, 1.0 / 3, 1e-15);
}

double AsHalf(double x) {
  const uint32_t bits = FloatToNarrow(kFloat16Format, static_cast<float>(x));
  return static_cast<double>(NarrowToFloat(kFloat16Format, bits));
}

// Values over five decades, and others near them.
void MakeNear(std::vector<double>* b, std::vector<double>* d) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (size_t i = 0; i < b->size(); ++i) {
    const double scale = std::pow(10, -static_cast<double>(i % 5));
    (*b)[i] = static_cast<double>(static_cast<float>(normal(random) * scale));
    (*d)[i] = (*b)[i] * (1 + normal(random) * 1e-3);
  }
}

// The formulas of the header in doubles over a float16 device: every number within what rounding
// of the errors to float32 does.
TEST(OutputMetrics, NumbersAreThoseOfTheFormulas) {
  std::vector<double> b(5000), d(5000);
  MakeNear(&b, &d);
  const Stored stored(DType::kFloat32, b, DType::kFloat16, d);
  double rel_sum = 0, rel_max = 0, squares = 0, small = 0, normals = 0, above = 0, beneath = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double device = AsHalf(d[i]), cast = AsHalf(b[i]);
    const double error = std::fabs(device - b[i]);
    above += device > cast ? 1 : 0;
    beneath += device < cast ? 1 : 0;
    if (std::fabs(b[i]) <= 0x1p-10) {
      small += error > 1e-16 ? 1 : 0;
      continue;
    }
    ++normals;
    rel_sum += error / (std::fabs(b[i]) + 0x1p-23);
    rel_max = std::max(rel_max, error / (std::fabs(b[i]) + 0x1p-23));
    squares += error * error;
  }
  const auto n = static_cast<double>(b.size());
  const FloatMetrics metrics = MeasureFloats(stored.pair(), Standard::kBenchmark);
  EXPECT_EQ(static_cast<double>(metrics.normal), normals);
  EXPECT_NEAR(metrics.abs_error_ratio, small / (n - normals), 1e-15);
  EXPECT_NEAR(metrics.max_rel_error / rel_max, 1, 1e-6);
  EXPECT_NEAR(metrics.mean_rel_error / (rel_sum / normals), 1, 1e-6);
  EXPECT_NEAR(metrics.rmse / std::sqrt(squares / n * (n / (normals + 0.0001) + 0.0001)), 1, 1e-6);
  EXPECT_EQ(metrics.error_balance, std::fabs(above - beneath) / n);
}

// ---- Exact types ----

template <class T>
ExactMetrics Exact(DType dtype, const std::vector<T>& bench, const std::vector<T>& device) {
  return MeasureExact({dtype, bench.data(), dtype, device.data(), bench.size()});
}

TEST(OutputMetrics, IntegersOfEveryWidthAreExact) {
  EXPECT_EQ(Exact<int8_t>(DType::kInt8, {1, 2, 3}, {1, 2, 4}).mismatches, 1U);
  EXPECT_EQ(Exact<int16_t>(DType::kInt16, {1, 2}, {1, 2}).mismatches, 0U);
  const int64_t large = int64_t{1} << 60;
  const ExactMetrics metrics = Exact<int64_t>(DType::kInt64, {large, 0}, {large + 1, 0});
  EXPECT_EQ(metrics.mismatches, 1U);
  EXPECT_EQ(metrics.error_rate, 0.5);
  EXPECT_EQ(metrics.max_abs_error, 1);
}

TEST(OutputMetrics, IntegersOfUnequalWidthAreComparedByValue) {
  const std::vector<int64_t> bench = {-1, 300};
  const std::vector<uint8_t> device = {255, 44};
  const ExactMetrics metrics =
      MeasureExact({DType::kInt64, bench.data(), DType::kUInt8, device.data(), 2});
  EXPECT_EQ(metrics.mismatches, 2U);
}

TEST(OutputMetrics, LongIntegersAreCountedInBlocks) {
  const size_t count = (size_t{3} << 20) + 5;
  std::vector<int32_t> bench(count), device(count);
  for (size_t i = 0; i < count; i += 1000) device[i] = -7;
  for (const int threads : {1, 2, 7}) {
    RunWithThreads(threads, [&] {
      const ExactMetrics metrics = Exact(DType::kInt32, bench, device);
      EXPECT_EQ(metrics.mismatches, (count + 999) / 1000);
      EXPECT_EQ(metrics.max_abs_error, 7);
    });
  }
}

// ---- Explanations ----

TEST(OutputMetrics, WorstElementHasTheLargestAbsoluteError) {
  const Stored stored(DType::kFloat64, {1, 10, 100, 100}, DType::kFloat32, {1, 13, 97, 103});
  const FailureFacts facts = ExplainPair(stored.pair());
  EXPECT_EQ(facts.worst_index, 1U);
  EXPECT_EQ(facts.worst_bench, 10);
  EXPECT_EQ(facts.worst_device, 13);
}

TEST(OutputMetrics, NaNBesideANumberIsTheWorst) {
  const Stored stored(DType::kFloat32, {kNaN, 1, 2, kInf}, DType::kFloat32, {kNaN, 1e30, kNaN, 0});
  const FailureFacts facts = ExplainPair(stored.pair());
  EXPECT_EQ(facts.worst_index, 2U);
  EXPECT_EQ(facts.histogram[0], 1U);   // NaN twice
  EXPECT_EQ(facts.histogram[14], 1U);  // 1e30
  EXPECT_EQ(facts.histogram[15], 2U);
}

TEST(OutputMetrics, HistogramIsInDecades) {
  const Stored stored(DType::kFloat64, {1, 1, 1, 1, 1, 1}, DType::kFloat64,
                      {1, 1 + 2e-12, 1 + 2e-11, 1.002, 3, 30});
  const FailureFacts facts = ExplainPair(stored.pair());
  for (const size_t bin : {0U, 1U, 2U, 10U, 13U, 14U}) EXPECT_EQ(facts.histogram[bin], 1U) << bin;
}

TEST(OutputMetrics, LongPairsAreExplainedAlikeByAnyThreads) {
  const size_t count = (size_t{2} << 20) + 11;
  std::vector<float> bench(count, 1), device(count, 1);
  device[count - 1] = 3;
  device[5] = 1.5F;
  for (const int threads : {1, 2, 7}) {
    RunWithThreads(threads, [&] {
      const FailureFacts facts =
          ExplainPair({DType::kFloat32, bench.data(), DType::kFloat32, device.data(), count});
      EXPECT_EQ(facts.worst_index, count - 1);
      EXPECT_EQ(facts.histogram[0], count - 2);
      EXPECT_EQ(facts.histogram[12], 1U);
      EXPECT_EQ(facts.histogram[13], 1U);
    });
  }
}

TEST(OutputMetrics, ZerosAndSpecialsAreCounted) {
  const std::vector<std::byte> values = Store(DType::kFloat16, {0, -0.0, kNaN, kInf, 1});
  const SpecialCounts counts = CountSpecials(DType::kFloat16, values.data(), 5);
  EXPECT_EQ(counts.zeros, 2U);
  EXPECT_EQ(counts.not_finite, 2U);
}

}  // namespace
}  // namespace plumbline::precheck::output_metrics_test
