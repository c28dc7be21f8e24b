#include "kernels/magnitude_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/deviation_sums.h"
#include "kernels/inputs_for_test.h"
#include "tensor/element_value.h"

namespace plumbline::kernels {
namespace {

struct Result {
  MagnitudeSums sums;
  RangeCount range{-0.5, 1e-3, 0, 0};
  ChangeSums changes;
  ChangeLimit limit{0.01, 1e-6, 0};
};

Result RunOn(CpuTarget target, DType dtype, const std::vector<std::byte>& x,
             const std::vector<std::byte>& p) {
  Result result;
  const size_t count = x.size() / InfoOf(dtype).size_bytes;
  const KernelTable& table = TableFor(target);
  table.magnitudes(dtype, x.data(), count, &result.sums);
  table.count_range(dtype, x.data(), count, &result.range);
  table.changes({dtype, x.data(), dtype, p.data(), count}, &result.changes, &result.limit, 1);
  return result;
}

TEST(MagnitudeSums, EveryTargetGivesTheSameBits) {
  for (int number = 0; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    for (const Fill fill : kAllFills) {
      for (const size_t count : {0U, 5U, 48U, 3001U}) {
        const auto x = MakeInput(dtype, count, fill, 1), p = MakeInput(dtype, count, fill, 2);
        const Result expected = RunOn(UsableTargets().back(), dtype, x, p);
        for (const CpuTarget target : UsableTargets()) {
          const Result result = RunOn(target, dtype, x, p);
          EXPECT_EQ(std::memcmp(&result.sums, &expected.sums, sizeof(MagnitudeSums)), 0) << number;
          EXPECT_EQ(std::memcmp(&result.changes, &expected.changes, sizeof(ChangeSums)), 0);
          EXPECT_EQ(result.range.below, expected.range.below);
          EXPECT_EQ(result.range.above, expected.range.above);
          EXPECT_EQ(result.limit.above, expected.limit.above);
        }
      }
    }
  }
}

TEST(MagnitudeSums, AreThoseOfAPlainLoop) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64,
                            DType::kInt8, DType::kInt32, DType::kBool}) {
    const size_t count = 1000, bytes = InfoOf(dtype).size_bytes;
    std::vector<std::byte> x = MakeInput(dtype, count, Fill::kFewSpecials, 3);
    std::vector<std::byte> p = MakeInput(dtype, count, Fill::kFewSpecials, 4);
    if (dtype == DType::kBool) {
      for (std::byte& b : x) b &= std::byte{1};
      for (std::byte& b : p) b &= std::byte{1};
    }
    double absolute = 0, change = 0;
    uint64_t below = 0, above = 0, beyond = 0;
    for (size_t i = 0; i < count; ++i) {
      const double a = ElementAsDouble(dtype, x.data() + i * bytes);
      const double b = ElementAsDouble(dtype, p.data() + i * bytes);
      below += a < -0.5 ? 1 : 0;
      above += a > 1e-3 ? 1 : 0;
      if (!std::isfinite(a)) continue;
      absolute += std::fabs(a);
      if (!std::isfinite(b)) continue;
      change += std::fabs(a - b);
      beyond += std::fabs(a - b) > 1e-6 + 0.01 * std::fabs(b) ? 1 : 0;
    }
    const Result result = RunOn(UsableTargets().front(), dtype, x, p);
    EXPECT_NEAR(SumOfLanes(result.sums.absolute), absolute, absolute * 1e-12);
    EXPECT_NEAR(SumOfLanes(result.changes.change), change, change * 1e-12);
    EXPECT_EQ(result.range.below, below);
    EXPECT_EQ(result.range.above, above);
    EXPECT_EQ(result.limit.above, beyond);
  }
}

}  // namespace
}  // namespace plumbline::kernels
