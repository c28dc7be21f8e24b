#include "measure/dump_algorithms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace plumbline::measure {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

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
  for (const float bad : {kNaN, kInf}) {
    const Texts values = OfFloats({1, bad, 3}, {1, 2, 3});
    const std::string text = std::isnan(bad) ? "nan" : "inf";
    EXPECT_EQ(values[0], "nan");
    for (const size_t i : {1U, 2U, 3U, 6U, 7U, 8U, 9U}) EXPECT_EQ(values[i], text) << i;
  }
  for (const size_t i : {1U, 2U, 6U, 8U}) EXPECT_EQ(OfFloats({kInf, 1}, {kInf, 1})[i], "nan") << i;
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
