#include "kernels/deviation_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/inputs_for_test.h"
#include "kernels/reference_for_test.h"

namespace plumbline::kernels {
namespace {

std::vector<double> Values(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  if (count > 5) values[5] = 0;
  return values;
}

PairOfRuns RunsOf(const std::vector<double>& x, const std::vector<double>& y) {
  return {DType::kFloat64, x.data(), DType::kFloat64, y.data(), x.size()};
}

struct Both {
  DeviationSums deviations;
  SpreadSums spreads;
};

Both RunOn(CpuTarget target, const std::vector<double>& x, const std::vector<double>& y) {
  const SpreadCenter center{0.25, -0.5, -6, 0.07, -5, 0.08, 1e-7};
  Both both;
  TableFor(target).deviations(RunsOf(x, y), &both.deviations);
  TableFor(target).spreads(center, RunsOf(x, y), &both.spreads);
  return both;
}

TEST(DeviationSums, EveryTargetGivesTheSameBits) {
  for (const size_t count : {0U, 1U, 7U, 16U, 31U, 64U, 1000U, 1024U}) {
    std::vector<double> x = Values(count, 1), y = Values(count, 2);
    for (const bool has_nan : {false, true}) {
      if (has_nan && count > 9) {
        x[9] = std::numeric_limits<double>::quiet_NaN();
        y[3] = std::numeric_limits<double>::infinity();
      }
      const Both expected = RunOn(UsableTargets().back(), x, y);
      for (const CpuTarget target : UsableTargets()) {
        const Both both = RunOn(target, x, y);
        EXPECT_EQ(std::isnan(both.deviations.x[9]), std::isnan(expected.deviations.x[9]));
        if (has_nan) continue;  // bits of a NaN are the processor's
        EXPECT_EQ(std::memcmp(&both.deviations, &expected.deviations, sizeof(DeviationSums)), 0);
        EXPECT_EQ(std::memcmp(&both.spreads, &expected.spreads, sizeof(SpreadSums)), 0);
      }
    }
  }
}

// Of numbers that are near each other but for one in 40, at any place of a vector.
TEST(DeviationSums, TheSeriesDoesNotDependOnTheTarget) {
  const std::vector<double> x = Values(5000, 6), noise = Values(5000, 7);
  std::vector<double> y = x;
  for (size_t i = 0; i < y.size(); ++i) y[i] += noise[i] * (i % 40 == 17 ? 1 : 0.001);
  const SpreadCenter center{0.25, -0.5, -6, 0.07, -5.99, 0.071, 1e-7};
  double plain[kLanes] = {};
  for (size_t i = 0; i < x.size(); ++i) {
    const double p = std::max((x[i] + 6) * 0.07, 1e-7), q = std::max((y[i] + 5.99) * 0.071, 1e-7);
    plain[i % kLanes] += p * std::log(p / q);
  }
  SpreadSums expected;
  TableFor(UsableTargets().back()).spreads(center, RunsOf(x, y), &expected);
  for (size_t l = 0; l < kLanes; ++l) EXPECT_NEAR(expected.divergence[l], plain[l], 1e-12) << l;
  for (const CpuTarget target : UsableTargets()) {
    SpreadSums sums;
    TableFor(target).spreads(center, RunsOf(x, y), &sums);
    EXPECT_EQ(std::memcmp(&sums, &expected, sizeof(SpreadSums)), 0);
  }
}

// Narrow types and doubles of the same values.
TEST(DeviationSums, SpreadsDoNotDependOnTheType) {
  const auto x = MakeInput(DType::kFloat16, 1500, Fill::kModerate, 1);
  const auto y = MakeInput(DType::kFloat16, 1500, Fill::kModerate, 2);
  std::vector<double> wide_x, wide_y;
  for (size_t i = 0; i < 1500; ++i) {
    wide_x.push_back(ElementAsDouble(DType::kFloat16, x.data(), i));
    wide_y.push_back(ElementAsDouble(DType::kFloat16, y.data(), i));
  }
  const SpreadCenter center{0.25, -0.5, -101, 0.005, -102, 0.005, 1e-7};
  for (const CpuTarget target : UsableTargets()) {
    SpreadSums narrow, wide;
    TableFor(target).spreads(center, {DType::kFloat16, x.data(), DType::kFloat16, y.data(), 1500},
                             &narrow);
    TableFor(target).spreads(center, RunsOf(wide_x, wide_y), &wide);
    EXPECT_EQ(std::memcmp(&narrow, &wide, sizeof(SpreadSums)), 0);
  }
}

TEST(DeviationSums, EqualAPlainLoop) {
  const std::vector<double> x = Values(1000, 3), y = Values(1000, 4);
  double relative = 0, largest = 0, squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double ratio = std::fabs(y[i]) <= kSmallestDivisor ? 0 : std::fabs(x[i] / y[i] - 1);
    relative += ratio;
    largest = std::max(largest, ratio);
    squares += (x[i] - y[i]) * (x[i] - y[i]);
  }
  DeviationSums sums;
  AddDeviations(RunsOf(x, y), &sums);
  EXPECT_NEAR(SumOfLanes(sums.relative), relative, relative * 1e-13);
  EXPECT_NEAR(SumOfLanes(sums.squares), squares, squares * 1e-13);
  EXPECT_EQ(*std::max_element(sums.max_relative, sums.max_relative + kLanes), largest);
  EXPECT_EQ(*std::min_element(sums.min_x, sums.min_x + kLanes),
            *std::min_element(x.begin(), x.end()));
}

// One pair as the first pass takes it.
struct PlainPair {
  double x, y, distance, ratio, product;
};

PlainPair PairAt(const PairOfRuns& runs, size_t i) {
  const auto* target = static_cast<const std::byte*>(runs.target);
  const auto* golden = static_cast<const std::byte*>(runs.golden);
  PlainPair pair{};
  pair.x = ElementAsDouble(runs.target_dtype, target, i);
  pair.y = ElementAsDouble(runs.golden_dtype, golden, i);
  const bool is_complex = InfoOf(runs.target_dtype).kind == DTypeKind::kComplex ||
                          InfoOf(runs.golden_dtype).kind == DTypeKind::kComplex;
  if (is_complex) {
    const auto [t_re, t_im] = PartsOf(runs.target_dtype, target, i);
    const auto [g_re, g_im] = PartsOf(runs.golden_dtype, golden, i);
    pair.distance = ReferenceModulus(t_re - g_re, t_im - g_im);
    pair.ratio = pair.distance / std::fabs(pair.y);
    pair.product = t_re * g_re + t_im * g_im;
  } else {
    pair.distance = std::fabs(pair.x - pair.y);
    pair.ratio = std::fabs(pair.x / pair.y - 1);
    pair.product = pair.x * pair.y;
  }
  if (std::fabs(pair.y) <= kSmallestDivisor) pair.ratio = 0;
  return pair;
}

// What the sums are by their definition, lane by lane.
DeviationSums Plain(const PairOfRuns& runs) {
  DeviationSums sums;
  for (size_t i = 0; i < runs.count; ++i) {
    const size_t l = i % kLanes;
    const auto [x, y, distance, ratio, product] = PairAt(runs, i);
    sums.x[l] += x;
    sums.y[l] += y;
    sums.xx[l] += x * x;
    sums.yy[l] += y * y;
    sums.xy[l] += product;
    sums.absolute[l] += distance;
    sums.squares[l] += distance * distance;
    sums.relative[l] += ratio;
    if (distance > sums.max_absolute[l]) sums.max_absolute[l] = distance;
    if (ratio > sums.max_relative[l]) sums.max_relative[l] = ratio;
    if (x < sums.min_x[l]) sums.min_x[l] = x;
    if (x > sums.max_x[l]) sums.max_x[l] = x;
    if (y < sums.min_y[l]) sums.min_y[l] = y;
    if (y > sums.max_y[l]) sums.max_y[l] = y;
  }
  return sums;
}

// Equal lanes, any NaN for any other.
void ExpectSame(const DeviationSums& got, const DeviationSums& expected, const std::string& what) {
  constexpr size_t kNumbers = sizeof(DeviationSums) / sizeof(double);
  double a[kNumbers], b[kNumbers];
  std::memcpy(a, &got, sizeof(a));
  std::memcpy(b, &expected, sizeof(b));
  for (size_t i = 0; i < kNumbers; ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(a[i], b[i]) << what << ": sum " << i / kLanes << ", lane " << i % kLanes;
  }
}

TEST(DeviationSums, EveryTypeEqualsAPlainLoop) {
  std::vector<std::pair<DType, DType>> types = {{DType::kFloat16, DType::kFloat64},
                                                {DType::kBFloat16, DType::kFloat32},
                                                {DType::kInt64, DType::kFloat32},
                                                {DType::kFloat32, DType::kComplex64},
                                                {DType::kComplex128, DType::kFloat64}};
  for (int d = 0; d < kDTypeCount; ++d) {
    types.emplace_back(static_cast<DType>(d), static_cast<DType>(d));
  }
  for (const auto& [target, golden] : types) {
    for (const Fill fill : kAllFills) {
      for (const size_t count : {size_t{1}, size_t{16}, size_t{37}, size_t{2100}}) {
        const auto x = MakeInput(target, count, fill, 1), y = MakeInput(golden, count, fill, 2);
        const PairOfRuns runs{target, x.data(), golden, y.data(), count};
        const DeviationSums expected = Plain(runs);
        for (const CpuTarget cpu : UsableTargets()) {
          DeviationSums sums;
          TableFor(cpu).deviations(runs, &sums);
          ExpectSame(sums, expected,
                     std::string(InfoOf(target).name) + " " + std::string(InfoOf(golden).name));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// The logarithm of 2^power / b, by itself: the factor in front of it is a power of two.
// `beside`: of the other numbers of the same vectors, by which the series is chosen.
double LogarithmOf(CpuTarget cpu, int power, double b, size_t place, double beside = 1) {
  std::vector<double> p(place + 1, 1.0), q(place + 1, beside);
  p[place] = std::ldexp(1.0, power);
  q[place] = b;
  SpreadCenter center;
  center.floor = std::numeric_limits<double>::min();
  SpreadSums sums;
  TableFor(cpu).spreads(center, RunsOf(p, q), &sums);
  return sums.divergence[place % kLanes] / p[place];
}

double UnitsOff(double got, long double expected) {
  if (expected == 0) return got == 0 ? 0 : std::numeric_limits<double>::infinity();
  const long double unit = std::ldexp(1.0L, std::ilogb(static_cast<double>(expected)) - 52);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - expected) / unit);
}

// All exponents of normal numbers, quotients next to 1 and next to where the exponent changes.
std::vector<std::pair<int, double>> LogarithmInputs() {
  std::mt19937_64 random(5);
  std::uniform_int_distribution<int> powers(-900, 900), exponents(-1022, 1023);
  std::uniform_real_distribution<double> mantissas(1, 2);
  std::vector<std::pair<int, double>> inputs = {{0, 1.0}, {900, 0x1p900}, {-900, 0x1p-900}};
  for (const double end :
       {std::numeric_limits<double>::min(), std::numeric_limits<double>::max()}) {
    for (const int power : {-900, -1, 0, 1, 900}) inputs.emplace_back(power, end);
  }
  for (int i = 1; i < 2000; ++i) {
    for (const double root : {1.0, std::sqrt(0.5), std::sqrt(2.0), 0.75, 1.5, 0x1p-3, 0x1p+3}) {
      inputs.emplace_back(0, root * (1 + i * 0x1p-52));
      inputs.emplace_back(0, root * (1 - i * 0x1p-52));
      inputs.emplace_back(i % 9 - 4, root * (1 + i * 0x1p-12));
    }
  }
  // The short series up to its end, |s| = 2^-6, and beyond.
  for (int i = 1; i < 3000; ++i) {
    inputs.emplace_back(0, 1 + i * 0x1p-16);
    inputs.emplace_back(0, 1 / (1 + i * 0x1p-16));
  }
  for (int i = 0; i < 20000; ++i) {
    inputs.emplace_back(powers(random), std::ldexp(mantissas(random), exponents(random)));
    inputs.emplace_back(0, mantissas(random) / mantissas(random));
  }
  return inputs;
}

TEST(DeviationSums, LogarithmsAreRightToThreeUnits) {
  const auto inputs = LogarithmInputs();
  double worst = 0;
  for (const CpuTarget cpu : UsableTargets()) {
    for (const auto& [power, b] : inputs) {
      const long double expected = -std::log(std::ldexp(static_cast<long double>(b), -power));
      // Alone, and inside of a vector.
      for (const size_t place : {size_t{0}, size_t{15}}) {
        const double got = LogarithmOf(cpu, power, b, place);
        worst = std::max(worst, UnitsOff(got, expected));
        ASSERT_LT(UnitsOff(got, expected), 3) << "2^" << power << " / " << b;
        ASSERT_EQ(got == 0, std::ldexp(1.0, power) == b);
      }
      const double among_others = LogarithmOf(cpu, power, b, 15, 3);
      worst = std::max(worst, UnitsOff(among_others, expected));
      ASSERT_LT(UnitsOff(among_others, expected), 3) << "2^" << power << " / " << b;
    }
  }
  RecordProperty("worst_units", std::to_string(worst));
}

}  // namespace
}  // namespace plumbline::kernels
