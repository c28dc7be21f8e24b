#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/inputs_for_test.h"
#include "kernels/kernel_table.h"
#include "kernels/reference_for_test.h"

namespace plumbline::kernels {
namespace {

Moments RunOn(CpuTarget target, DType dtype, const std::byte* data, size_t count) {
  MomentsState state;
  UpdateMoments(TableFor(target), dtype, data, count, &state);
  return FinishMoments(state);
}

class EveryDType : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static DType dtype() { return static_cast<DType>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Moments, EveryDType, ::testing::Range(0, kDTypeCount),
                         [](const auto& one) {
                           return std::string(InfoOf(static_cast<DType>(one.param)).name);
                         });

TEST_P(EveryDType, ShortRunsEqualTheScalarReference) {
  for (const Fill fill : kAllFills) {
    for (size_t count = 0; count <= 67; ++count) {
      const auto input = MakeInput(dtype(), count, fill, count * 7 + 1);
      const Moments expected = ReferenceMoments(dtype(), input.data(), count);
      for (const CpuTarget target : UsableTargets()) {
        ASSERT_EQ(Difference(RunOn(target, dtype(), input.data(), count), expected), "")
            << CpuTargetName(target) << " count " << count << " fill " << static_cast<int>(fill);
      }
    }
  }
}

TEST_P(EveryDType, LengthsAroundTheSliceEqualTheScalarReference) {
  for (const Fill fill : kAllFills) {
    for (const size_t count : {1023u, 1024u, 1025u, 2047u, 2048u, 2049u, 6000u}) {
      const auto input = MakeInput(dtype(), count, fill, count);
      const Moments expected = ReferenceMoments(dtype(), input.data(), count);
      for (const CpuTarget target : UsableTargets()) {
        ASSERT_EQ(Difference(RunOn(target, dtype(), input.data(), count), expected), "")
            << CpuTargetName(target) << " count " << count << " fill " << static_cast<int>(fill);
      }
    }
  }
}

TEST_P(EveryDType, LengthsAroundTheBlockEqualTheScalarReference) {
  for (const size_t count : {kBlockElements, kBlockElements + 5}) {
    const auto input = MakeInput(dtype(), count, Fill::kModerate, count);
    const Moments expected = ReferenceMoments(dtype(), input.data(), count);
    for (const CpuTarget target : UsableTargets()) {
      ASSERT_EQ(Difference(RunOn(target, dtype(), input.data(), count), expected), "")
          << CpuTargetName(target) << " count " << count;
    }
  }
}

TEST_P(EveryDType, MisalignedDataGivesTheSameResult) {
  constexpr size_t kCount = 3001;
  const auto input = MakeInput(dtype(), kCount, Fill::kFewSpecials, 5);
  const Moments expected = ReferenceMoments(dtype(), input.data(), kCount);
  std::vector<std::byte> memory(input.size() + 3);
  for (const size_t shift : {0u, 1u, 3u}) {
    std::copy(input.begin(), input.end(), memory.begin() + static_cast<std::ptrdiff_t>(shift));
    for (const CpuTarget target : UsableTargets()) {
      ASSERT_EQ(Difference(RunOn(target, dtype(), memory.data() + shift, kCount), expected), "")
          << CpuTargetName(target) << " shift " << shift;
    }
  }
}

TEST_P(EveryDType, ChunksGiveTheResultOfOneRun) {
  const size_t count = kBlockElements + 12345;
  const auto input = MakeInput(dtype(), count, Fill::kFewSpecials, 11);
  const size_t size = InfoOf(dtype()).size_bytes;
  const Moments whole = MomentsOf(dtype(), input.data(), count);
  for (const size_t chunk : {16u, 1024u, 4112u, 500000u}) {
    MomentsState state;
    for (size_t at = 0; at < count; at += chunk) {
      UpdateMoments(ActiveTable(), dtype(), input.data() + at * size, std::min(chunk, count - at),
                    &state);
    }
    ASSERT_EQ(Difference(FinishMoments(state), whole), "") << "chunk " << chunk;
  }
}

TEST_P(EveryDType, BlocksCombinedInOrderGiveTheResultOfOneRun) {
  const size_t count = 2 * kBlockElements + 77;
  const auto input = MakeInput(dtype(), count, Fill::kModerate, 13);
  const size_t size = InfoOf(dtype()).size_bytes;
  Moments combined;
  for (size_t at = 0; at < count; at += kBlockElements) {
    combined = Combine(combined, MomentsOf(dtype(), input.data() + at * size,
                                           std::min(kBlockElements, count - at)));
  }
  EXPECT_EQ(Difference(combined, MomentsOf(dtype(), input.data(), count)), "");
}

TEST(Moments, EmptyRunHasIdentities) {
  const Moments m = MomentsOf(DType::kFloat32, nullptr, 0);
  EXPECT_EQ(m.count, 0u);
  EXPECT_EQ(m.max, -kReferenceInf);
  EXPECT_EQ(m.min, kReferenceInf);
  EXPECT_EQ(m.sum, 0);
}

TEST(Moments, SingleNaNIsFoundAtEveryPosition) {
  std::vector<float> input(5000, 1.0f);
  for (const size_t at : {0u, 1u, 15u, 16u, 2047u, 2048u, 4990u, 4999u}) {
    input[at] = std::numeric_limits<float>::quiet_NaN();
    const Moments m = MomentsOf(DType::kFloat32, input.data(), input.size());
    EXPECT_EQ(m.nan_count, 1u) << at;
    EXPECT_TRUE(std::isnan(m.sum)) << at;
    EXPECT_EQ(m.max, 1) << at;
    input[at] = 1.0f;
  }
}

TEST(Moments, OppositeInfinitiesAreCountedAndSumIsNaN) {
  std::vector<double> input(40, 2.0);
  input[3] = kReferenceInf;
  input[30] = -kReferenceInf;
  const Moments m = MomentsOf(DType::kFloat64, input.data(), input.size());
  EXPECT_EQ(m.inf_count, 2u);
  EXPECT_EQ(m.nan_count, 0u);
  EXPECT_EQ(m.max, kReferenceInf);
  EXPECT_EQ(m.finite_max, 2);
  EXPECT_FALSE(std::signbit(m.sum));
  EXPECT_TRUE(std::isnan(m.sum));
}

TEST(Moments, Float64SquaresThatOverflowAreNotCountedAsInfinities) {
  const std::vector<double> input(100, 1e200);
  const Moments m = MomentsOf(DType::kFloat64, input.data(), input.size());
  EXPECT_EQ(m.inf_count, 0u);
  EXPECT_EQ(m.sum_squares, kReferenceInf);
  EXPECT_EQ(m.finite_max, 1e200);
}

TEST(Moments, BoolBytesOtherThanOneCountAsTrue) {
  const uint8_t input[] = {0, 1, 2, 255};
  const Moments m = MomentsOf(DType::kBool, input, 4);
  EXPECT_EQ(m.sum, 3);
  EXPECT_EQ(m.zero_count, 1u);
  EXPECT_EQ(m.uint_max, 1u);
  EXPECT_EQ(m.uint_min, 0u);
}

TEST(Moments, ComplexWithOneInfinitePartIsInfinite) {
  const float input[] = {std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::infinity(), 3, 4};
  const Moments m = MomentsOf(DType::kComplex64, input, 2);
  EXPECT_EQ(m.inf_count, 1u);
  EXPECT_EQ(m.nan_count, 0u);
  EXPECT_EQ(m.min, 5);
}

}  // namespace
}  // namespace plumbline::kernels
