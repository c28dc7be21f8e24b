#include "watch/live/tensor_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plumbline::watch {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

template <class T>
TensorValues Of(DType dtype, const std::vector<T>& data, Shape sizes, double bound = 1e-8) {
  Shape strides(sizes.size(), 1);
  return Measure({dtype, reinterpret_cast<const std::byte*>(data.data()), sizes, strides}, bound,
                 nullptr);
}

void Expect(const TensorValues& values, std::vector<double> expected) {
  const Op ops[] = {Op::kNorm, Op::kMean, Op::kMin, Op::kMax, Op::kZeros, Op::kNans, Op::kInfs};
  for (size_t i = 0; i < expected.size(); ++i) {
    const double got = values.of(ops[i]);
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(got)) << NameOf(ops[i]) << " " << got;
    } else {
      EXPECT_DOUBLE_EQ(got, expected[i]) << NameOf(ops[i]);
    }
  }
}

TEST(TensorValues, OfEveryKindOfTensor) {
  // norm, mean, min, max, zeros, nans, infs
  Expect(Of<float>(DType::kFloat32, {3, -4, 0, 1e-9F}, {4}),
         {5, (3 - 4 + 1e-9) / 4, -4, 3, 0.5, 0, 0});
  Expect(Of<float>(DType::kFloat32, {}, {0}), {0, NAN, NAN, NAN, NAN, 0, 0});
  Expect(Of<float>(DType::kFloat32, {-2}, {}), {2, -2, -2, -2, 0, 0, 0});
  Expect(Of<uint8_t>(DType::kBool, {1, 0, 1, 1}, {4}), {std::sqrt(3.0), 0.75, 0, 1, NAN, 0, 0});
  Expect(Of<int64_t>(DType::kInt64, {0, 3, -4}, {3}), {5, -1.0 / 3, -4, 3, 1.0 / 3, 0, 0});
  Expect(Of<float>(DType::kFloat32, {1, NAN, 0}, {3}), {NAN, NAN, NAN, NAN, 1.0 / 3, 1, 0});
  Expect(Of<float>(DType::kFloat32, {1, -INFINITY}, {2}), {kInf, -kInf, -kInf, 1, 0, 0, 1});
  Expect(Of<float>(DType::kComplex64, {3, 4, 0, 0}, {2}), {5, NAN, NAN, NAN, 0.5, 0, 0});
  EXPECT_DOUBLE_EQ(Of<float>(DType::kFloat32, {-2}, {}).of(Op::kId), -2);
  EXPECT_TRUE(std::isnan(Of<float>(DType::kFloat32, {-2}, {1}).of(Op::kId)));
}

TEST(TensorValues, SignsAgreeByHalves) {
  const std::vector<float> up = {1, 2, 3, 4};
  const std::vector<float> mixed = {1, -2, 0, 4};
  const Shape sizes = {4};
  const Shape strides = {1};
  const auto view = [&](const std::vector<float>& data) {
    return TensorView{DType::kFloat32, reinterpret_cast<const std::byte*>(data.data()), sizes,
                      strides};
  };
  EXPECT_DOUBLE_EQ(SignAgreement(view(up), view(up)), 1);
  EXPECT_DOUBLE_EQ(SignAgreement(view(up), view(mixed)), (1.0 / 4 + 1) / 2);
  const Shape none = {0};
  EXPECT_DOUBLE_EQ(SignAgreement({DType::kFloat32, nullptr, none, strides},
                                 {DType::kFloat32, nullptr, none, strides}),
                   1);
}

}  // namespace
}  // namespace plumbline::watch
