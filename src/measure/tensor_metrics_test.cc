#include "measure/tensor_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tensor/element_value.h"

namespace plumbline::measure {

namespace {

constexpr size_t kCount = 2500;  // more than are widened at a time

// Bytes of every kind, numbers at odd addresses where `offset` is odd.
std::vector<std::byte> Pattern(size_t offset) {
  std::vector<std::byte> bytes(offset + kCount * 16);
  for (size_t i = offset; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((i - offset) * 2654435761U >> 13);
  }
  return bytes;
}

bool IsSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

TEST(Widened, EveryRealTypeAtAnyAddress) {
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    const DTypeInfo& info = InfoOf(dtype);
    if (info.kind == DTypeKind::kComplex) continue;
    for (const size_t offset : {size_t{0}, size_t{1}}) {
      const std::vector<std::byte> bytes = Pattern(offset);
      const std::byte* const data = bytes.data() + offset;
      const auto all = WidenAll<std::vector<double>>(dtype, data, kCount);
      ASSERT_EQ(all.size(), kCount);
      std::vector<double> filled(kCount, -1);
      Widen(dtype, data, kCount, filled.data());
      for (size_t i = 0; i < kCount; ++i) {
        double wanted = ElementAsDouble(dtype, data + i * info.size_bytes);
        if (info.kind == DTypeKind::kBool) wanted = wanted != 0 ? 1 : 0;
        ASSERT_TRUE(IsSame(all[i], wanted)) << info.name << " " << i;
        ASSERT_TRUE(IsSame(filled[i], wanted)) << info.name << " " << i;
      }
    }
  }
}

TEST(Widened, ComplexElementsGiveBothPartsOrTheModulus) {
  const std::vector<float> single = {3, -4, 0, 2};
  const auto* data = reinterpret_cast<const std::byte*>(single.data());
  EXPECT_EQ(WidenAll<std::vector<double>>(DType::kComplex64, data, 2),
            (std::vector<double>{3, -4, 0, 2}));
  std::vector<double> moduli(2);
  Widen(DType::kComplex64, data, 2, moduli.data());
  EXPECT_EQ(moduli, (std::vector<double>{5, 2}));
  const std::vector<double> wide = {3, -4, 0, 2};
  EXPECT_EQ(WidenAll<std::vector<double>>(DType::kComplex128,
                                          reinterpret_cast<const std::byte*>(wide.data()), 2),
            wide);
}

// A contiguous tensor over borrowed values.
struct Owned {
  Owned(DType type, const void* data, Shape shape)
      : sizes(std::move(shape)), strides(ContiguousStrides(sizes)) {
    view.dtype = type;
    view.data = static_cast<const std::byte*>(data);
    view.sizes = sizes;
    view.strides = strides;
  }
  Shape sizes;
  std::vector<int64_t> strides;
  TensorView view;
};

TensorMetrics Measure(const std::vector<float>& a, const std::vector<float>& b, Shape shape) {
  const Owned target(DType::kFloat32, a.data(), shape);
  const Owned golden(DType::kFloat32, b.data(), shape);
  return *MeasureTensors(target.view, golden.view);
}

double Number(const Metric& metric) { return std::get<double>(metric); }

TEST(TensorMetrics, IdenticalTensors) {
  const TensorMetrics m = Measure({1, -2, 0, 4}, {1, -2, 0, 4}, {2, 2});
  EXPECT_EQ(Number(m.cosine), 1.0);
  EXPECT_EQ(Number(m.max_abs_error), 0.0);
  EXPECT_EQ(Number(m.max_relative_error), 0.0);
  EXPECT_EQ(Number(m.below_thousandth_ratio), 1.0);
  EXPECT_EQ(Number(m.relative_l2), 0.0);
  EXPECT_EQ(m.mismatch_count, 0u);
}

TEST(TensorMetrics, ValuesByHand) {
  // target - golden = (0.1, 0, -1, 0); |golden|^2 = 30
  const TensorMetrics m = Measure({1.5f, 2, 2, 4}, {1, 2, 3, 4}, {4});
  EXPECT_EQ(Number(m.max_abs_error), 1.0);
  EXPECT_EQ(Number(m.max_relative_error), 0.5);
  EXPECT_EQ(Number(m.below_thousandth_ratio), 0.5);
  EXPECT_NEAR(Number(m.relative_l2), std::sqrt(1.25 / 30), 1e-12);
  // dot = 1.5 + 4 + 6 + 16; rounded to twelve places
  EXPECT_NEAR(Number(m.cosine), 27.5 / (std::sqrt(26.25) * std::sqrt(30.0)), 1e-12);
}

TEST(TensorMetrics, CosineAbove9999KeepsSixPlaces) {
  const TensorMetrics m = Measure({1, 2, 3.001f}, {1, 2, 3}, {3});
  EXPECT_EQ(Number(m.cosine) * 1e6, std::round(Number(m.cosine) * 1e6));
}

TEST(TensorMetrics, ZerosAgainstOnesHaveNoCosine) {
  const TensorMetrics m = Measure({0, 0, 0, 0}, {1, 1, 1, 1}, {4});
  EXPECT_EQ(std::get<Absent>(m.cosine), Absent::kZeroNorm);
  EXPECT_EQ(Number(m.max_abs_error), 1.0);
}

TEST(TensorMetrics, BothZerosAreEqual) {
  EXPECT_EQ(Number(Measure({0, 0}, {0, 0}, {2}).cosine), 1.0);
}

TEST(TensorMetrics, NonFiniteAtOtherPositionsOrOfOtherSign) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(std::get<Absent>(Measure({nan, 1}, {1, nan}, {2}).max_abs_error), Absent::kNonFinite);
  // Upstream sees +inf and -inf as equal.
  EXPECT_EQ(std::get<Absent>(Measure({inf, 1}, {-inf, 1}, {2}).cosine), Absent::kNonFinite);
  const TensorMetrics same = Measure({inf, 1, nan}, {inf, 1, nan}, {3});
  EXPECT_EQ(Number(same.below_thousandth_ratio), 1.0);
}

TEST(TensorMetrics, ScalarsAndSingleElements) {
  const TensorMetrics zero_d = Measure({2}, {1}, {});
  EXPECT_EQ(std::get<Absent>(zero_d.cosine), Absent::kScalar);
  EXPECT_EQ(std::get<Absent>(zero_d.below_thousandth_ratio), Absent::kScalar);
  EXPECT_EQ(Number(zero_d.max_abs_error), 1.0);
  const TensorMetrics one = Measure({2}, {1}, {1});
  EXPECT_EQ(std::get<Absent>(one.cosine), Absent::kScalar);
  EXPECT_EQ(Number(one.below_thousandth_ratio), 0.0);
}

TEST(TensorMetrics, EmptyAndOtherShape) {
  const float value = 1;
  const Owned empty(DType::kFloat32, &value, {0, 3});
  EXPECT_EQ(std::get<Absent>(MeasureTensors(empty.view, empty.view)->cosine), Absent::kEmpty);
  const std::vector<float> six(6, 1.0f);
  const Owned a(DType::kFloat32, six.data(), {2, 3});
  const Owned b(DType::kFloat32, six.data(), {3, 2});
  EXPECT_EQ(std::get<Absent>(MeasureTensors(a.view, b.view)->max_abs_error),
            Absent::kShapeMismatch);
}

TEST(TensorMetrics, HalfPrecisionZerosAgainstThemselves) {
  // Upstream's regulator underflows in float16 and yields NaN and a ratio of 2/3.
  const uint16_t halves[] = {0x0000, 0x3C00, 0x4000};  // 0, 1, 2
  const Owned a(DType::kFloat16, halves, {3});
  const TensorMetrics m = *MeasureTensors(a.view, a.view);
  EXPECT_EQ(Number(m.max_relative_error), 0.0);
  EXPECT_EQ(Number(m.below_thousandth_ratio), 1.0);
}

TEST(TensorMetrics, SmallUnsignedIntegersDoNotWrap) {
  const uint8_t one = 1;
  const uint8_t three = 3;
  const Owned a(DType::kUInt8, &one, {});
  const Owned b(DType::kUInt8, &three, {});
  EXPECT_EQ(Number(MeasureTensors(a.view, b.view)->max_abs_error), 2.0);
}

TEST(TensorMetrics, ConjugatesDiffer) {
  const float a[] = {1, 2, 3, -4};
  const float b[] = {1, -2, 3, 4};
  const Owned target(DType::kComplex64, a, {2});
  const Owned golden(DType::kComplex64, b, {2});
  EXPECT_EQ(Number(MeasureTensors(target.view, golden.view)->max_abs_error), 8.0);
}

TEST(TensorMetrics, StridedViewEqualsItsCopy) {
  const std::vector<float> transposed = {1, 4, 2, 5, 3, 6};
  const std::vector<float> plain = {1, 2, 3, 4, 5, 6};
  Owned a(DType::kFloat32, transposed.data(), {2, 3});
  a.strides = {1, 2};
  a.view.strides = a.strides;
  const Owned b(DType::kFloat32, plain.data(), {2, 3});
  EXPECT_EQ(MeasureTensors(a.view, b.view)->mismatch_count, 0u);
  EXPECT_EQ(Number(MeasureTensors(a.view, b.view)->cosine), 1.0);
}

// Equal bytes take a short cut; negative zero against zero is equal in value but not in bytes.
TEST(TensorMetrics, ShortCutAndFullPassAgree) {
  const TensorMetrics bytes = Measure({0, 1, -2}, {0, 1, -2}, {3});
  const TensorMetrics values = Measure({-0.0f, 1, -2}, {0, 1, -2}, {3});
  EXPECT_EQ(bytes.cosine, values.cosine);
  EXPECT_EQ(bytes.max_abs_error, values.max_abs_error);
  EXPECT_EQ(bytes.max_relative_error, values.max_relative_error);
  EXPECT_EQ(bytes.below_thousandth_ratio, values.below_thousandth_ratio);
  EXPECT_EQ(bytes.relative_l2, values.relative_l2);
  EXPECT_EQ(bytes.mismatch_count, values.mismatch_count);
}

TEST(TensorMetrics, OtherBitsOfEqualValuesAreCounted) {
  const std::vector<float> zeros{0, 0, 1}, signs{0, -0.0f, 1};
  const std::vector<double> wide{0, 0, 1};
  const Owned golden(DType::kFloat32, zeros.data(), {3});
  const Owned target(DType::kFloat32, signs.data(), {3});
  const Owned other(DType::kFloat64, wide.data(), {3});
  EXPECT_EQ(MeasurePair(golden.view, golden.view)->metrics.mismatch_count, 0u);
  EXPECT_EQ(MeasurePair(target.view, golden.view)->metrics.mismatch_count, 1u);
  EXPECT_EQ(MeasurePair(other.view, golden.view)->metrics.mismatch_count, 3u);
}

// Squares of float64 that overflow or vanish: no metric is NaN, and none is 0.
TEST(TensorMetrics, ExtremesOfFloat64) {
  const double denormal = std::numeric_limits<double>::denorm_min();
  const std::vector<std::vector<std::vector<double>>> pairs{{{1e200, 1e200}, {1e200, 1.5e200}},
                                                            {{1e-170, 0}, {-9e-170, 0}},
                                                            {{denormal, 0}, {3 * denormal, 0}},
                                                            {{1e308, -1}, {-1e308, -1}},
                                                            {{1, 1e-200}, {1, 3e-200}}};
  for (const auto& pair : pairs) {
    const Owned target(DType::kFloat64, pair[0].data(), {2});
    const Owned golden(DType::kFloat64, pair[1].data(), {2});
    const TensorMetrics m = *MeasureTensors(target.view, golden.view);
    EXPECT_EQ(m.mismatch_count, 1u);
    for (const Metric& each :
         {m.max_abs_error, m.max_relative_error, m.euclidean_distance, m.relative_l2}) {
      EXPECT_GT(Number(each), 0) << pair[1][0];  // false for NaN
    }
    EXPECT_LE(std::abs(Number(m.cosine)), 1) << pair[1][0];
  }
}

TEST(TensorMetrics, BlocksGiveTheSameAsOneThread) {
  std::vector<float> a(3 * kernels::kBlockElements + 17);
  std::vector<float> b(a.size());
  uint32_t state = 1;
  for (size_t i = 0; i < a.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    a[i] = static_cast<float>(state) / 4294967296.0f - 0.5f;
    b[i] = a[i] * 1.001f;
  }
  const Owned target(DType::kFloat32, a.data(), {static_cast<int64_t>(a.size())});
  const Owned golden(DType::kFloat32, b.data(), {static_cast<int64_t>(b.size())});
  const kernels::Pairwise whole =
      kernels::PairwiseOf({DType::kFloat32, a.data(), DType::kFloat32, b.data(), a.size()});
  const TensorMetrics expected = MetricsFromSums(whole, 1);
  const TensorMetrics blocks = *MeasureTensors(target.view, golden.view);
  EXPECT_EQ(Number(blocks.relative_l2), Number(expected.relative_l2));
  EXPECT_EQ(Number(blocks.cosine), Number(expected.cosine));
  EXPECT_EQ(blocks.element_count, a.size());
}

}  // namespace

}  // namespace plumbline::measure
