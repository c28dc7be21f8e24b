#include "precheck/online/single_benchmark.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

namespace plumbline::precheck::single_benchmark_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class D, class B>
SingleGrade Grade(DType device_type, const std::vector<D>& device, DType bench_type,
                  const std::vector<B>& bench) {
  const Shape sizes = {static_cast<int64_t>(device.size())};
  const Shape bench_sizes = {static_cast<int64_t>(bench.size())};
  const std::vector<int64_t> strides = {1};
  return GradeSingle(
      {device_type, reinterpret_cast<const std::byte*>(device.data()), sizes, strides},
      {bench_type, reinterpret_cast<const std::byte*>(bench.data()), bench_sizes, strides});
}

SingleGrade Floats(const std::vector<float>& device, const std::vector<double>& bench) {
  return Grade(DType::kFloat32, device, DType::kFloat64, bench);
}

TEST(GradeSingle, SmallValuesHaveAnAbsoluteLimitAndLargeOnesARelativeOne) {
  EXPECT_EQ(Floats({0.5F, 100}, {0.5, 100}).verdict, SingleVerdict::kPass);
  const SingleGrade small = Floats({0.5F + 0x1p-13F, 100}, {0.5, 100});
  EXPECT_EQ(small.verdict, SingleVerdict::kFail);
  EXPECT_EQ(small.measure->max_abs_index, 0U);
  EXPECT_DOUBLE_EQ(small.measure->max_abs_error, 0x1p-13);
  const SingleGrade large = Floats({0.5F, 100 + 0x1p-9F}, {0.5, 100});
  EXPECT_EQ(large.verdict, SingleVerdict::kPass) << large.message;
  EXPECT_EQ(Floats({0.5F, 100.1F}, {0.5, 100}).measure->max_rel_index, 1U);
  EXPECT_EQ(Floats({0.5F, 100.1F}, {0.5, 100}).verdict, SingleVerdict::kFail);
}

TEST(GradeSingle, ABalanceOfEitherSignCounts) {
  // Every element low by less than the limit of one: the mean decides nothing here, but is 2^-15.
  const SingleGrade low = Floats({0.5F - 0x1p-15F, 0.25F - 0x1p-15F}, {0.5, 0.25});
  EXPECT_EQ(low.verdict, SingleVerdict::kPass);
  EXPECT_DOUBLE_EQ(low.measure->error_balance, 0x1p-15);
}

TEST(GradeSingle, WhatTheLimitCannotTellFromZeroIsNoPass) {
  EXPECT_EQ(Floats({1e-5F, 2e-5F}, {2e-5, 4e-5}).verdict, SingleVerdict::kNotChecked);
  EXPECT_EQ(Floats({0, 0}, {0, 0}).verdict, SingleVerdict::kPass);
  EXPECT_EQ(Floats({0, 0}, {1e-5, 0}).verdict, SingleVerdict::kNotChecked);
  EXPECT_EQ(Floats({1e-3F, 0}, {1e-5, 0}).verdict, SingleVerdict::kFail);
}

TEST(GradeSingle, SpecialsOfOneSideFailAndAllNaNIsNoPass) {
  EXPECT_EQ(Floats({1, NAN}, {1, 2}).verdict, SingleVerdict::kFail);
  EXPECT_EQ(Floats({1, 2}, {1, kNaN}).verdict, SingleVerdict::kFail);
  EXPECT_EQ(Floats({1, INFINITY}, {1, -kInf}).verdict, SingleVerdict::kFail);
  EXPECT_EQ(Floats({NAN, NAN}, {kNaN, kNaN}).verdict, SingleVerdict::kNotChecked);
  const SingleGrade masked = Floats({1, -INFINITY}, {1, -kInf});
  EXPECT_EQ(masked.verdict, SingleVerdict::kPass);
  EXPECT_EQ(masked.message, "1 element the same infinity");
  EXPECT_EQ(Floats({INFINITY, 1}, {1e39, 1}).verdict, SingleVerdict::kPass);
  EXPECT_EQ(Floats({INFINITY, 1}, {1e38, 1}).verdict, SingleVerdict::kFail);
}

TEST(GradeSingle, ShapesTypesAndEmptyOnes) {
  EXPECT_EQ(Floats({1}, {1, 1}).verdict, SingleVerdict::kFail);
  EXPECT_EQ(Floats({}, {}).verdict, SingleVerdict::kPass);
  const std::vector<int64_t> whole = {1, 2}, other = {1, 5};
  EXPECT_EQ(Grade(DType::kInt64, whole, DType::kInt64, whole).verdict, SingleVerdict::kPass);
  const SingleGrade apart = Grade(DType::kInt64, whole, DType::kInt64, other);
  EXPECT_EQ(apart.verdict, SingleVerdict::kFail);
  EXPECT_EQ(apart.measure->max_abs_error, 3);
  EXPECT_EQ(Grade(DType::kInt64, whole, DType::kFloat64, std::vector<double>{1, 2}).verdict,
            SingleVerdict::kFail);
}

TEST(GradeSingle, LimitsAreThoseOfTheTypeOfTheDevice) {
  const std::vector<uint16_t> one_and_a_step = {0x3C01};  // 1 + 2^-10 in float16
  EXPECT_EQ(Grade(DType::kFloat16, one_and_a_step, DType::kFloat32, std::vector<float>{1}).verdict,
            SingleVerdict::kFail);
  const std::vector<uint16_t> brain = {0x3F80};  // 1 in bfloat16
  const std::vector<float> near_one = {1 + 0x1p-9F};
  EXPECT_EQ(Grade(DType::kBFloat16, brain, DType::kFloat32, near_one).verdict,
            SingleVerdict::kPass);
  // The second part of a complex number.
  const std::vector<std::complex<float>> device = {{1, 2}}, bench = {{1, 2.5F}};
  EXPECT_EQ(Grade(DType::kComplex64, device, DType::kComplex64, bench).verdict,
            SingleVerdict::kFail);
}

}  // namespace
}  // namespace plumbline::precheck::single_benchmark_test
