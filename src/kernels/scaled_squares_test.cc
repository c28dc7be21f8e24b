#include "kernels/scaled_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

namespace plumbline::kernels {
namespace {

using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDenormal = std::numeric_limits<double>::denorm_min();
constexpr double kLargest = std::numeric_limits<double>::max();

template <class T>
Pairwise SumsOf(DType dtype, const std::vector<T>& target, const std::vector<T>& golden) {
  const PairOfRuns runs{dtype, target.data(), dtype, golden.data(), golden.size()};
  Pairwise sums = PairwiseOf(runs);
  RescaleSquares(runs, &sums);
  return sums;
}

Pairwise SumsOf(const Numbers& target, const Numbers& golden) {
  return SumsOf(DType::kFloat64, target, golden);
}

TEST(ScaledSquares, UsualNumbersKeepTheirSums) {
  const Pairwise sums = SumsOf({1, 2, 3, 1e100}, {1, 2, 4, 1e-100});
  EXPECT_EQ(sums.target_exponent, 0);
  EXPECT_EQ(sums.golden_exponent, 0);
  EXPECT_EQ(sums.difference_exponent, 0);
  EXPECT_EQ(sums.golden_squares, 21);
}

TEST(ScaledSquares, SquaresThatOverflow) {
  const Pairwise sums = SumsOf({1e200, 1e200}, {1e200, 1.5e200});
  EXPECT_NEAR(RelativeNorm(sums), 0.5 / std::sqrt(3.25), 1e-12);
  EXPECT_NEAR(DifferenceNorm(sums) / 0.5e200, 1, 1e-12);
  EXPECT_NEAR(CosineOf(sums), 2.5 / std::sqrt(2 * 3.25), 1e-12);
}

TEST(ScaledSquares, SquaresThatVanish) {
  const Pairwise sums = SumsOf({1e-170}, {-9e-170});
  EXPECT_NEAR(RelativeNorm(sums), 10.0 / 9, 1e-12);
  EXPECT_NEAR(DifferenceNorm(sums) / 10e-170, 1, 1e-12);
  EXPECT_NEAR(CosineOf(sums), -1, 1e-12);
  EXPECT_NEAR(TargetNorm(sums) / 1e-170, 1, 1e-12);
  EXPECT_NEAR(GoldenNorm(sums) / 9e-170, 1, 1e-12);
}

TEST(ScaledSquares, Denormals) {
  EXPECT_EQ(RelativeNorm(SumsOf({kDenormal}, {2 * kDenormal})), 0.5);
  EXPECT_EQ(DifferenceNorm(SumsOf({kDenormal}, {2 * kDenormal})), kDenormal);
}

TEST(ScaledSquares, LargestNumbersOfBothSigns) {
  const Pairwise sums = SumsOf({kLargest, 1}, {-kLargest, 1});
  EXPECT_NEAR(RelativeNorm(sums), 2, 1e-12);
  EXPECT_NEAR(CosineOf(sums), -1, 1e-12);
}

TEST(ScaledSquares, SidesOfOppositeSizes) {
  EXPECT_EQ(RelativeNorm(SumsOf({1e-300, 0}, {0, 1e300})), 1);
  const Pairwise sums = SumsOf({1e300, 1e-300}, {1e300, 2e-300});
  EXPECT_GT(RelativeNorm(sums), 0);  // no double is as small
  EXPECT_NEAR(DifferenceNorm(sums) / 1e-300, 1, 1e-12);
}

TEST(ScaledSquares, ASmallDifferenceOfUsualNumbers) {
  const Pairwise sums = SumsOf({1, 1e-200}, {1, 3e-200});
  EXPECT_NEAR(RelativeNorm(sums) / 2e-200, 1, 1e-12);
  EXPECT_EQ(sums.golden_exponent, 0);
}

TEST(ScaledSquares, WhatIsNotFiniteIsLeftOut) {
  const double nan = std::nan("");
  const Pairwise sums = SumsOf({nan, kInfinity, 2e200}, {nan, kInfinity, 1e200});
  EXPECT_EQ(RelativeNorm(sums), 1);
}

TEST(ScaledSquares, ComplexNumbersCountByModulus) {
  using Complex = std::vector<std::complex<double>>;
  const Pairwise sums = SumsOf(DType::kComplex128, Complex{{0, 1e200}}, Complex{{1e200, 0}});
  EXPECT_NEAR(RelativeNorm(sums), std::sqrt(2.0), 1e-12);
  const Pairwise large = SumsOf(DType::kComplex128, Complex{{kLargest, kLargest}},
                                Complex{{kLargest, 0.5 * kLargest}});
  EXPECT_EQ(large.mismatch_count, 1U);
  EXPECT_NEAR(RelativeNorm(large), 0.5 / std::sqrt(1.25), 1e-12);
}

// Blocks are summed apart, in order.
TEST(ScaledSquares, ManyBlocks) {
  Numbers target(2 * kBlockElements + 17, 3e200);
  const Numbers golden(target.size(), 2e200);
  EXPECT_NEAR(RelativeNorm(SumsOf(target, golden)), 0.5, 1e-12);
}

}  // namespace
}  // namespace plumbline::kernels
