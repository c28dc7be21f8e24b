#include "measure/lone_element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "measure/array_verdict.h"
#include "tensor/half.h"

namespace plumbline::measure {
namespace {

constexpr size_t kCount = 10000, kOff = 77;

// Two arrays as floats whose type that counts is float16.
struct Pair {
  std::vector<float> target, golden;
  std::mt19937 random{5};
  std::normal_distribution<float> normal;

  // Golden at random, the target equal.
  explicit Pair(float column_scale = 1) {
    for (size_t i = 0; i < kCount; ++i) {
      golden.push_back(normal(random) * (i % 100 == 3 ? column_scale : 1));
    }
    golden[kOff] = 0.1F;
    target = golden;
  }
  void Round() {
    const NarrowFormat half = *NarrowFormatOf(DType::kFloat16);
    for (float& value : target) value = NarrowToFloat(half, FloatToNarrow(half, value));
  }
  // Noise of sums: no smaller where the sum is. In units of rounding.
  void AddNoise(float units, float column_scale = 1) {
    for (size_t i = 0; i < kCount; ++i) {
      const float scale = i % 100 == 3 ? column_scale : 1;
      target[i] += units * 0x1p-11F * scale * normal(random);
    }
  }
  [[nodiscard]] ArrayVerdict Judge() const {
    const std::vector<int64_t> sizes{kCount}, strides{1};
    const auto view = [&](const std::vector<float>& values) {
      return TensorView{DType::kFloat32, reinterpret_cast<const std::byte*>(values.data()), sizes,
                        strides};
    };
    const auto sums = kernels::PairwiseOf(
        {DType::kFloat32, target.data(), DType::kFloat32, golden.data(), kCount});
    return JudgeElements(DifferenceOf(sums), view(target), view(golden), DType::kFloat16,
                         DType::kFloat32);
  }
};

TEST(LoneElement, ASmallOneAmongRoundedOnesIsSeen) {
  Pair pair;
  pair.Round();
  EXPECT_EQ(pair.Judge().verdict, Verdict::kWithinNoise);
  pair.target[kOff] *= 1.06F;
  EXPECT_EQ(pair.Judge().reason, "outlier");
  EXPECT_EQ(pair.Judge().verdict, Verdict::kSuspicious);
}

TEST(LoneElement, OneAmongEqualOnesIsSeen) {
  Pair pair;
  pair.target[kOff] *= 1.06F;
  EXPECT_EQ(pair.Judge().reason, "outlier");
}

// Each is as far off as the element above.
TEST(LoneElement, NoiseOfSumsIsNone) {
  for (const float scale : {1.0F, 100.0F, 1000.0F}) {
    for (const float units : {0.6F, 2.0F, 7.0F}) {
      Pair pair(scale);
      pair.AddNoise(units, scale);
      EXPECT_EQ(pair.Judge().verdict, Verdict::kWithinNoise) << scale << ' ' << units;
      pair.Round();
      EXPECT_EQ(pair.Judge().verdict, Verdict::kWithinNoise) << scale << ' ' << units;
    }
  }
}

// A row that was computed again among others that were copied.
TEST(LoneElement, NoiseInAFewPlacesIsNone) {
  Pair noisy;
  noisy.AddNoise(7);
  for (const size_t first : {size_t{0}, size_t{500}, size_t{7000}}) {
    Pair pair;
    for (size_t i = first; i < first + 40; ++i) pair.target[i] = noisy.target[i];
    EXPECT_EQ(pair.Judge().verdict, Verdict::kWithinNoise) << first;
  }
}

}  // namespace
}  // namespace plumbline::measure
