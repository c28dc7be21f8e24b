#include "measure/dump_algorithms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace plumbline::measure {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
std::vector<std::string> Values(DType dtype, const std::vector<T>& x, const std::vector<T>& y) {
  const Shape sizes = {static_cast<int64_t>(x.size())};
  const std::vector<int64_t> strides = {1};
  const DumpPair pair{{dtype, reinterpret_cast<const std::byte*>(x.data()), sizes, strides},
                      {dtype, reinterpret_cast<const std::byte*>(y.data()), sizes, strides},
                      "mine",
                      "golden"};
  std::vector<std::string> values;
  for (const AlgorithmText& text : RunDumpAlgorithms(AllDumpAlgorithms(), pair)) {
    values.push_back(text.value);
  }
  return values;
}

std::vector<std::string> OfFloats(const std::vector<float>& x, const std::vector<float>& y) {
  return Values(DType::kFloat32, x, y);
}

using Texts = std::vector<std::string>;

TEST(DumpAlgorithms, EqualArrays) {
  EXPECT_EQ(OfFloats({1, -2, 3}, {1, -2, 3}),
            (Texts{"1.000000", "0.000000", "0.000000", "0.000000", "0.000000",
                   "(0.667;2.055),(0.667;2.055)", "0.000000", "0.000000", "0.000000", "0.000000"}));
}

// By hand: x = 2y for y = 1, 2, 3, 4.
TEST(DumpAlgorithms, TwiceTheGolden) {
  EXPECT_EQ(OfFloats({2, 4, 6, 8}, {1, 2, 3, 4}),
            (Texts{"1.000000", "4.000000", "4.000000", "1.000000", "0.000000",
                   "(5.000;2.236),(2.500;1.118)", "2.500000", "2.738613", "1.000000", "1.000000"}));
}

// p = (0, 1/2, 1), q = (0, 1, 1/2), floored at 2^-23 and divided by their sums.
TEST(DumpAlgorithms, KullbackLeibler) {
  const double floor = std::ldexp(1, -23);
  const double sum = 1.5 + floor;
  const double expected = 0.5 / sum * std::log(0.5) + 1 / sum * std::log(2.0);
  EXPECT_EQ(OfFloats({0, 1, 2}, {0, 2, 1})[4], std::to_string(expected));
}

// The divergence by its definition, with the library's logarithm.
std::string DivergenceOf(const std::vector<double>& x, const std::vector<double>& y) {
  const auto distribution = [](const std::vector<double>& values) {
    const auto [min, max] = std::minmax_element(values.begin(), values.end());
    std::vector<double> p;
    for (const double v : values) {
      p.push_back(std::max(*max > *min ? (v - *min) / (*max - *min) : v, std::ldexp(1.0, -23)));
    }
    return p;
  };
  const std::vector<double> p = distribution(x), q = distribution(y);
  const double p_sum = std::accumulate(p.begin(), p.end(), 0.0);
  const double q_sum = std::accumulate(q.begin(), q.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    sum += p[i] / p_sum * std::log(p[i] / p_sum / (q[i] / q_sum));
  }
  return fmt::format("{:.6f}", sum);
}

TEST(DumpAlgorithms, DivergenceOverAllRangesOfDoubles) {
  const std::vector<double> shape = {0, 1, 3, 2, 5, 4, 4.5, 0.25}, other = {1, 0, 2, 3, 4, 5, 1, 2};
  // Subnormal, least, ordinary and largest numbers on either side: only the shape counts.
  const std::vector<double> units = {0x1p-1074, 0x1p-1060, 0x1p-1022, 1e-5,
                                     1,         0x1p+1000, 0x1p+1019};
  const auto scaled = [](std::vector<double> values, double unit) {
    for (double& value : values) value *= unit * 4;  // of a quarter, too
    return values;
  };
  for (const double of_x : units) {
    for (const double of_y : units) {
      const std::vector<double> x = scaled(shape, of_x), y = scaled(other, of_y);
      EXPECT_EQ(Values(DType::kFloat64, x, y)[4], DivergenceOf(shape, other))
          << of_x << " " << of_y;
    }
  }
  // Constants stand for themselves, however far apart they are.
  for (const double constant : {1e-300, 1.0, 1e300, 0.0, -4.0}) {
    const std::vector<double> x(8, constant);
    EXPECT_EQ(Values(DType::kFloat64, x, other)[4], DivergenceOf(x, other)) << constant;
    EXPECT_EQ(Values(DType::kFloat64, other, x)[4], DivergenceOf(other, x)) << constant;
  }
}

TEST(DumpAlgorithms, ZerosOnOneSideOrBoth) {
  const Texts golden = OfFloats({1, 2}, {0, 0});
  EXPECT_EQ(golden[0], "NaN");
  EXPECT_EQ(golden[1], "2.000000");
  EXPECT_EQ(golden[2], "0.000000");
  EXPECT_EQ(golden[3], "0.000000");
  EXPECT_EQ(OfFloats({0, 0}, {1, 2})[0], "NaN");
  EXPECT_EQ(OfFloats({0, 0}, {0, 0})[0], "1.0");
}

TEST(DumpAlgorithms, NotFiniteElementsGoThrough) {
  for (const float bad : {kNaN, kInfinity}) {
    const Texts values = OfFloats({1, bad, 3}, {1, 2, 3});
    const std::string text = std::isnan(bad) ? "nan" : "inf";
    EXPECT_EQ(values[0], "nan");
    for (const size_t i : {1U, 2U, 3U, 6U, 7U, 8U, 9U}) EXPECT_EQ(values[i], text) << i;
  }
  for (const size_t i : {1U, 2U, 6U, 8U})
    EXPECT_EQ(OfFloats({kInfinity, 1}, {kInfinity, 1})[i], "nan") << i;
  for (size_t i = 0; i < kDumpAlgorithmCount; ++i) {
    EXPECT_NE(OfFloats({kNaN, 1}, {kNaN, 1})[i].find("nan"), std::string::npos) << i;
  }
}

TEST(DumpAlgorithms, OneElement) {
  const Texts values = OfFloats({2}, {1});
  EXPECT_EQ(values[0], "1.000000");
  EXPECT_EQ(values[1], "1.000000");
}

TEST(DumpAlgorithms, WithoutElementsThereIsNothing) {
  for (const std::string& value : OfFloats({}, {})) EXPECT_EQ(value, "NaN");
}

TEST(DumpAlgorithms, BoolHasTwo) {
  const Texts values = Values<uint8_t>(DType::kBool, {1, 0, 1, 1}, {1, 1, 1, 1});
  EXPECT_EQ(values[0], "0.866025");
  EXPECT_EQ(values[3], "0.500000");
  for (const size_t i : {1U, 2U, 4U, 5U, 6U, 7U, 8U, 9U}) EXPECT_EQ(values[i], "NaN") << i;
}

// A tail that does not fill the lanes, and more than one block.
TEST(DumpAlgorithms, ManyElements) {
  std::vector<int64_t> x(5003), y(5003);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<int64_t>(i * 7919 % 1000);
    y[i] = x[i] + static_cast<int64_t>(i % 3);
    sum += static_cast<double>(i % 3);
  }
  const Texts values = Values(DType::kInt64, x, y);
  EXPECT_EQ(values[1], "2.000000");
  EXPECT_EQ(values[6], std::to_string(sum / 5003));
}

template <class T>
std::optional<ArrayDifference> DifferenceBetween(DType dtype, const std::vector<T>& x,
                                                 const std::vector<T>& y) {
  const Shape sizes = {static_cast<int64_t>(x.size())};
  const std::vector<int64_t> strides = {1};
  const TensorView a{dtype, reinterpret_cast<const std::byte*>(x.data()), sizes, strides};
  const TensorView b{dtype, reinterpret_cast<const std::byte*>(y.data()), sizes, strides};
  return MeasureDumps(AllDumpAlgorithms(), {a, b, "mine", "golden"}).difference;
}

TEST(DumpAlgorithms, TheDifferenceGivesTheVerdictOfThePairs) {
  const std::vector<std::vector<double>> values = {
      {1, 2, 3, 4},    {1, 2, 3, 4.0000001}, {1, 2, 3, 4.1},   {1, -2, 3, 400},       {0, 0, 0, 0},
      {-0.0, 0, 0, 0}, {5e-324, 0, 0, 0},    {1e200, 1, 2, 3}, {-1e150, 1e-150, 0, 1}};
  for (const auto& x : values) {
    for (const auto& y : values) {
      const ArrayVerdict expected = JudgeArrays(
          kernels::PairwiseOf({DType::kFloat64, x.data(), DType::kFloat64, y.data(), 4}),
          DType::kFloat64, DType::kFloat64);
      const auto difference = DifferenceBetween(DType::kFloat64, x, y);
      const bool overflows = x[0] == 1e200 || y[0] == 1e200;                 // its square does
      const bool is_tiny = y[0] == 5e-324 || (x[0] == 5e-324 && y[3] == 0);  // its square vanishes
      const bool is_told = !overflows && !is_tiny;
      ASSERT_EQ(difference.has_value(), is_told) << x[0] << " " << y[0];
      if (!is_told) continue;
      const ArrayVerdict got = JudgeDifference(*difference, DType::kFloat64, DType::kFloat64);
      EXPECT_EQ(got.verdict, expected.verdict) << x[3] << " " << y[3];
      EXPECT_EQ(got.reason, expected.reason);
      EXPECT_EQ(std::isfinite(got.error), std::isfinite(expected.error));
      if (!std::isfinite(expected.error)) continue;
      EXPECT_NEAR(got.error, expected.error, 1e-12 * expected.error);
    }
  }
}

TEST(DumpAlgorithms, WithoutFiniteExactSumsThereIsNoDifference) {
  using Floats = std::vector<float>;
  EXPECT_FALSE(DifferenceBetween(DType::kFloat32, Floats{1, kNaN}, Floats{1, kNaN}));
  EXPECT_FALSE(DifferenceBetween(DType::kFloat32, Floats{1, 2}, Floats{1, -kInfinity}));
  EXPECT_FALSE(DifferenceBetween(DType::kFloat32, Floats{}, Floats{}));
  using Complex = std::vector<std::complex<float>>;
  EXPECT_FALSE(DifferenceBetween(DType::kComplex64, Complex{{1, 2}}, Complex{{2, 1}}));
  // As doubles these two are the same.
  using Integers = std::vector<int64_t>;
  EXPECT_FALSE(DifferenceBetween(DType::kInt64, Integers{INT64_MAX}, Integers{INT64_MAX - 1}));
}

TEST(DumpAlgorithms, NamesAndNumbers) {
  for (const DumpAlgorithm one : AllDumpAlgorithms()) {
    EXPECT_EQ(ParseDumpAlgorithm(DumpAlgorithmName(one)), one);
    EXPECT_EQ(ParseDumpAlgorithm(std::to_string(static_cast<int>(one))), one);
  }
  for (const char* text : {"10", "cosinesimilarity", "", "-1"}) {
    EXPECT_EQ(ParseDumpAlgorithm(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace plumbline::measure
