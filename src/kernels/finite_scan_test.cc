#include "kernels/finite_scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernel_table.h"
#include "tensor/element_value.h"

namespace plumbline::kernels {
namespace {

// Runs the workers one after the other.
void RunInTurn(int size, void (*body)(void* data, int worker), void* data) {
  for (int worker = 0; worker < size; ++worker) body(data, worker);
}

struct Bytes {
  std::vector<std::byte> data;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides = {1};

  [[nodiscard]] TensorView view(DType dtype) const { return {dtype, data.data(), sizes, strides}; }
};

// Independent truth: the moments count NaN and Inf one by one.
bool CountedNonFinite(DType dtype, const void* data, size_t count) {
  const Moments moments = MomentsOf(dtype, data, count);
  return moments.nan_count + moments.inf_count > 0;
}

TEST(FiniteScan, EveryNarrowPatternAgreesWithTheMoments) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3FN,
                            DType::kFloat8E5M2, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2FNUZ}) {
    const size_t size = InfoOf(dtype).size_bytes;
    for (uint32_t pattern = 0; pattern < (1U << (8 * size)); ++pattern) {
      Bytes one{std::vector<std::byte>(size), {1}};
      std::memcpy(one.data.data(), &pattern, size);
      ASSERT_EQ(HasNonFinite(one.view(dtype), nullptr), CountedNonFinite(dtype, one.data.data(), 1))
          << InfoOf(dtype).name << " " << pattern;
    }
  }
}

TEST(FiniteScan, LargestFiniteValuesAreFinite) {
  const float single[] = {3.4028235e38F, -3.4028235e38F, 0.0F, -0.0F, 1e-45F};
  const double wide[] = {1.7976931348623157e308, 1e300, -1e39};
  const int64_t sizes[] = {5}, strides[] = {1}, three[] = {3};
  EXPECT_FALSE(HasNonFinite(
      {DType::kFloat32, reinterpret_cast<const std::byte*>(single), sizes, strides}, nullptr));
  EXPECT_FALSE(HasNonFinite(
      {DType::kFloat64, reinterpret_cast<const std::byte*>(wide), three, strides}, nullptr));
}

TEST(FiniteScan, OneElementAnywhereIsFound) {
  const Team team{3, RunInTurn};
  std::mt19937_64 random(11);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64,
                            DType::kComplex64, DType::kComplex128}) {
    const size_t size = InfoOf(dtype).size_bytes;
    for (const size_t count : {size_t{1}, size_t{7}, size_t{4096}, size_t{300001}}) {
      Bytes bytes{std::vector<std::byte>(count * size), {static_cast<int64_t>(count)}};
      EXPECT_FALSE(HasNonFinite(bytes.view(dtype), &team));
      for (int i = 0; i < 8; ++i) {
        const size_t at = (i == 0 ? 0 : i == 1 ? count - 1 : random() % count) * size;
        // The last byte of an element: all ones is a NaN of every type, in complex of one part.
        std::vector<std::byte> saved(bytes.data.begin() + static_cast<std::ptrdiff_t>(at),
                                     bytes.data.begin() + static_cast<std::ptrdiff_t>(at + size));
        std::memset(bytes.data.data() + at, 0xFF, size);
        EXPECT_TRUE(HasNonFinite(bytes.view(dtype), &team)) << count << " " << at;
        EXPECT_TRUE(HasNonFinite(bytes.view(dtype), nullptr)) << count << " " << at;
        std::memcpy(bytes.data.data() + at, saved.data(), size);
      }
    }
  }
}

TEST(FiniteScan, OnlyElementsOfTheViewCount) {
  std::vector<float> values(64, 1.0F);
  values[1] = std::nanf("");
  const int64_t sizes[] = {4, 4}, even[] = {16, 2}, expanded[] = {0, 0};
  const auto* data = reinterpret_cast<const std::byte*>(values.data());
  EXPECT_FALSE(HasNonFinite({DType::kFloat32, data, sizes, even}, nullptr));
  EXPECT_TRUE(HasNonFinite({DType::kFloat32, data + 4, sizes, even}, nullptr));
  EXPECT_FALSE(HasNonFinite({DType::kFloat32, data, sizes, expanded}, nullptr));
  EXPECT_TRUE(HasNonFinite({DType::kFloat32, data + 4, sizes, expanded}, nullptr));
}

TEST(FiniteScan, IntegersAndEmptyTensorsAreNotRead) {
  const int64_t sizes[] = {1 << 20}, none[] = {0}, strides[] = {1};
  for (const DType dtype : {DType::kBool, DType::kUInt8, DType::kInt32, DType::kInt64}) {
    EXPECT_FALSE(HasNonFinite({dtype, nullptr, sizes, strides}, nullptr));
  }
  EXPECT_FALSE(HasNonFinite({DType::kFloat32, nullptr, none, strides}, nullptr));
}

// One element of otherwise equal runs is not finite, or differs, at every place in turn.
TEST(LikenessOf, EveryPlaceCounts) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const size_t size = InfoOf(dtype).size_bytes;
    for (const size_t count : {size_t{1}, size_t{7}, size_t{5000}}) {
      const std::vector<std::byte> zeros(count * size);
      for (const CpuTarget cpu : UsableTargets()) {
        const auto likeness = [&](const auto& a, const auto& b) {
          return TableFor(cpu).likeness(dtype, a.data(), b.data(), a.size());
        };
        ASSERT_EQ(likeness(zeros, zeros), Likeness::kFinite);
        for (size_t at = 0; at<count; at += count> 7 ? 13 : 1) {
          std::vector<std::byte> bad = zeros;
          std::fill_n(bad.begin() + static_cast<std::ptrdiff_t>(at * size), size, std::byte{0xFF});
          const DTypeKind kind = InfoOf(dtype).kind;
          const bool is_wide =
              (kind == DTypeKind::kFloat || kind == DTypeKind::kComplex) && size > 1;
          ASSERT_EQ(likeness(bad, bad), is_wide ? Likeness::kNonFinite : Likeness::kFinite)
              << InfoOf(dtype).name << " " << at << " of " << count;
          ASSERT_EQ(likeness(bad, zeros), Likeness::kDiffers);
        }
      }
    }
  }
}

TEST(LikenessOf, NarrowFloatsHaveNanToo) {
  const std::byte nan[] = {std::byte{0}, std::byte{0xFF}};
  const int64_t sizes[] = {2}, strides[] = {1};
  const auto likeness = [&](DType dtype) {
    const TensorView view{dtype, nan, sizes, strides};
    return LikenessOf(view, view);
  };
  EXPECT_EQ(likeness(DType::kFloat8E4M3FN), Likeness::kNonFinite);
  EXPECT_EQ(likeness(DType::kFloat8E5M2), Likeness::kNonFinite);
  EXPECT_EQ(likeness(DType::kUInt8), Likeness::kFinite);
}

// The definition, element by element.
AbsExtremes OneByOne(DType dtype, const std::byte* data, size_t count) {
  AbsExtremes found{std::numeric_limits<double>::infinity(), 0};
  for (size_t i = 0; i < count; ++i) {
    const double value = std::abs(ElementAsDouble(dtype, data + i * InfoOf(dtype).size_bytes));
    found.has_nan |= std::isnan(value);
    found.has_inf |= std::isinf(value);
    found.min = std::fmin(found.min, value);
    found.max = std::fmax(found.max, value);
  }
  if (found.has_nan) found.min = found.max = std::nan("");
  return found;
}

void ExpectSame(const AbsExtremes& got, const AbsExtremes& wanted) {
  EXPECT_EQ(got.has_nan, wanted.has_nan);
  EXPECT_EQ(got.has_inf, wanted.has_inf);
  if (wanted.has_nan) {
    EXPECT_TRUE(std::isnan(got.min) && std::isnan(got.max));
    return;
  }
  EXPECT_EQ(got.min, wanted.min);
  EXPECT_EQ(got.max, wanted.max);
}

TEST(AbsExtremes, EveryPatternOfNarrowTypes) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3FN,
                            DType::kFloat8E5M2, DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2FNUZ,
                            DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16}) {
    const size_t size = InfoOf(dtype).size_bytes;
    const int64_t one[] = {1};
    for (uint32_t pattern = 0; pattern < (1U << (8 * size)); ++pattern) {
      std::byte data[4];
      std::memcpy(data, &pattern, sizeof(pattern));
      ExpectSame(AbsExtremesOf({dtype, data, one, one}, nullptr), OneByOne(dtype, data, 1));
      if (::testing::Test::HasFailure()) FAIL() << InfoOf(dtype).name << " " << pattern;
    }
  }
}

// Random patterns: a few NaN and infinities are among them.
TEST(AbsExtremes, AnyStridesAndAnyNumberOfThreads) {
  const Team team{3, RunInTurn};
  std::mt19937_64 random(5);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64,
                            DType::kInt64, DType::kUInt32}) {
    const int64_t count = 300'001;
    std::vector<std::byte> data(static_cast<size_t>(count) * InfoOf(dtype).size_bytes);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random() & 0x3F);
    const int64_t sizes[] = {count}, strides[] = {1};
    const AbsExtremes wanted = OneByOne(dtype, data.data(), static_cast<size_t>(count));
    const TensorView view{dtype, data.data(), sizes, strides};
    ExpectSame(AbsExtremesOf(view, nullptr), wanted);
    ExpectSame(AbsExtremesOf(view, &team), wanted);
    const int64_t few[] = {5, 7}, jumps[] = {1, 11};
    std::vector<std::byte> gathered;
    for (size_t row = 0; row < 5; ++row) {
      for (size_t column = 0; column < 7; ++column) {
        const size_t size = InfoOf(dtype).size_bytes;
        const std::byte* at = data.data() + (row + 11 * column) * size;
        gathered.insert(gathered.end(), at, at + size);
      }
    }
    ExpectSame(AbsExtremesOf({dtype, data.data(), few, jumps}, nullptr),
               OneByOne(dtype, gathered.data(), 35));
  }
}

TEST(AbsExtremes, OneSpecialValueAnywhere) {
  const Team team{4, RunInTurn};
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> data(200'000, -2.5F);
  const int64_t sizes[] = {200'000}, strides[] = {1};
  const TensorView view{DType::kFloat32, reinterpret_cast<const std::byte*>(data.data()), sizes,
                        strides};
  for (const size_t at : {size_t{0}, size_t{65'535}, size_t{65'536}, size_t{199'999}}) {
    data[at] = -inf;
    ExpectSame(AbsExtremesOf(view, &team), {2.5, inf, false, true});
    data[at] = std::nanf("");
    ExpectSame(AbsExtremesOf(view, &team), {0, 0, true, false});
    data[100'000] = inf;
    ExpectSame(AbsExtremesOf(view, &team), {0, 0, true, true});
    data[100'000] = data[at] = -2.5F;
  }
  data[77] = -0.0F;
  ExpectSame(AbsExtremesOf(view, &team), {0, 2.5, false, false});
}

TEST(AbsExtremes, EmptyComplexAndTruthValues) {
  const int64_t none[] = {0}, two[] = {2}, strides[] = {1};
  ExpectSame(AbsExtremesOf({DType::kFloat32, nullptr, none, strides}, nullptr), {});
  float complex[] = {3, -4, 0, 1};
  const auto* bytes = reinterpret_cast<const std::byte*>(complex);
  ExpectSame(AbsExtremesOf({DType::kComplex64, bytes, two, strides}, nullptr), {1, 5});
  complex[2] = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(AbsExtremesOf({DType::kComplex64, bytes, two, strides}, nullptr).has_inf);
  complex[3] = std::nanf("");
  const AbsExtremes both = AbsExtremesOf({DType::kComplex64, bytes, two, strides}, nullptr);
  EXPECT_TRUE(both.has_inf && both.has_nan && std::isnan(both.max));
  // Its modulus is beyond float32; its parts are finite.
  complex[0] = complex[1] = complex[2] = complex[3] = 3e38F;
  const AbsExtremes wide = AbsExtremesOf({DType::kComplex64, bytes, two, strides}, nullptr);
  EXPECT_FALSE(wide.has_inf);
  EXPECT_GT(wide.max, 4e38);
  const uint8_t truths[] = {0, 1};
  ExpectSame(AbsExtremesOf({DType::kBool, reinterpret_cast<const std::byte*>(truths), two, strides},
                           nullptr),
             {0, 1});
}

}  // namespace
}  // namespace plumbline::kernels
