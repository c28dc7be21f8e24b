#include "kernels/rotary_row.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/cpu_target.h"
#include "kernels/kernel_table.h"

namespace plumbline::kernels {
namespace {

template <class T>
std::vector<T> Random(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<T> uniform(-2, 2);
  std::vector<T> values(count);
  for (T& value : values) value = uniform(engine);
  return values;
}

// Element by element, as the header gives the formulas; what its other half has, `turned`.
void AddByDefinition(const RotaryRow& row) {
  for (size_t i = 0; i < 2 * row.half; ++i) {
    const bool is_first = i < row.half;
    const size_t turned = is_first ? i + row.half : i - row.half;
    const double g = row.g[i], turned_g = row.g[turned];
    const double x = row.x[i], turned_x = row.x[turned];
    const double from_other = row.r2[turned] * turned_g;
    row.dx[i] = static_cast<float>(row.r1[i] * g + (is_first ? from_other : -from_other));
    row.sum1[i] += g * x;
    row.sum2[i] += g * (is_first ? -turned_x : turned_x);
  }
}

TEST(RotaryRow, EveryTargetGivesTheSameBits) {
  for (const CpuTarget target : UsableTargets()) {
    for (const size_t half : {0ul, 1ul, 3ul, 4ul, 7ul, 8ul, 15ul, 16ul, 33ul, 64ul}) {
      const size_t length = 2 * half;
      const auto g = Random<float>(length, 1), x = Random<float>(length, 2);
      const auto r1 = Random<double>(length, 3), r2 = Random<double>(length, 4);
      std::vector<float> dx(length), expected_dx(length);
      std::vector<double> sum1 = Random<double>(length, 5), sum2 = Random<double>(length, 6);
      std::vector<double> expected1 = sum1, expected2 = sum2;
      TableFor(target).add_rotary_row(
          {g.data(), x.data(), r1.data(), r2.data(), dx.data(), sum1.data(), sum2.data(), half});
      AddByDefinition({g.data(), x.data(), r1.data(), r2.data(), expected_dx.data(),
                       expected1.data(), expected2.data(), half});
      EXPECT_EQ(dx, expected_dx) << half;
      EXPECT_EQ(sum1, expected1) << half;
      EXPECT_EQ(sum2, expected2) << half;
    }
  }
}

}  // namespace
}  // namespace plumbline::kernels
