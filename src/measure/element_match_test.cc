#include "measure/element_match.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace plumbline::measure {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

template <class T>
ElementMatch Match(DType dtype, const std::vector<T>& a, const Shape& a_sizes,
                   const std::vector<T>& b, const Shape& b_sizes) {
  const auto a_strides = ContiguousStrides(a_sizes), b_strides = ContiguousStrides(b_sizes);
  const auto result =
      MatchElements({dtype, reinterpret_cast<const std::byte*>(a.data()), a_sizes, a_strides},
                    {dtype, reinterpret_cast<const std::byte*>(b.data()), b_sizes, b_strides});
  EXPECT_TRUE(result.has_value());
  return result.value_or(ElementMatch());
}

ElementMatch Doubles(const std::vector<double>& a, const std::vector<double>& b) {
  const Shape sizes{static_cast<int64_t>(a.size())};
  return Match<double>(DType::kFloat64, a, sizes, b, sizes);
}

TEST(ElementMatch, RelativeErrorsAreOfTheLargerSide) {
  const ElementMatch match = Doubles({1, 0, 100, 0}, {1, 0, 99, 5});
  EXPECT_EQ(match.equal, 2U);
  EXPECT_EQ(match.first_mismatch, 2U);
  EXPECT_EQ(match.max_abs, 5);
  EXPECT_EQ(match.max_relative, 1);
  EXPECT_EQ(match.within_thousandth, 2U);
  EXPECT_EQ(match.within_hundredth, 3U);
}

TEST(ElementMatch, NanIsNeverEqualAndInfinitiesAre) {
  const ElementMatch match = Doubles({kNan, kInf, kInf, 1}, {kNan, kInf, -kInf, 1});
  EXPECT_EQ(match.equal, 2U);
  EXPECT_EQ(match.first_mismatch, 0U);
  EXPECT_TRUE(std::isnan(match.max_abs));
  EXPECT_EQ(match.within_hundredth, 2U);
}

TEST(ElementMatch, UnsignedValuesDoNotWrapAndWideOnesAreExact) {
  const ElementMatch bytes = Match<uint8_t>(DType::kUInt8, {1, 255}, {2}, {2, 254}, {2});
  EXPECT_EQ(bytes.max_abs, 1);
  const int64_t wide = (int64_t{1} << 53) + 1;
  EXPECT_EQ(Match<int64_t>(DType::kInt64, {wide}, {1}, {wide - 1}, {1}).equal, 0U);
}

TEST(ElementMatch, OtherShapesAreCroppedOrFlattened) {
  const ElementMatch cropped =
      Match<double>(DType::kFloat64, {1, 2, 3, 4, 5, 6}, {2, 3}, {1, 2, 4, 5}, {2, 2});
  EXPECT_EQ(cropped.count, 4U);
  EXPECT_EQ(cropped.equal, 4U);
  const ElementMatch flat = Match<double>(DType::kFloat64, {1, 2, 3, 4}, {2, 2}, {1, 2, 3}, {3});
  EXPECT_EQ(flat.count, 3U);
  EXPECT_EQ(flat.equal, 3U);
  EXPECT_EQ(Match<double>(DType::kFloat64, {}, {0}, {}, {0}).count, 0U);
}

}  // namespace
}  // namespace plumbline::measure
