#include "measure/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measure/array_verdict.h"
#include "measure/item_for_test.h"
#include "tensor/half.h"

namespace plumbline::measure {

namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfiniteDouble = std::numeric_limits<double>::infinity();

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
  const ElementMatch match = Doubles({kNotANumber, kInfiniteDouble, kInfiniteDouble, 1},
                                     {kNotANumber, kInfiniteDouble, -kInfiniteDouble, 1});
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

constexpr double kRounding = 1e-6;
constexpr double kError = 1e-6;

Item TensorOf(Shape shape, double rms, double min = 0) {
  return TensorForTest(std::move(shape), rms, min, rms);
}

const Item& Rows() {
  static const Item kRows = TensorOf({40, 16}, 2);
  return kRows;
}

double ErrorOf(const std::string& api, const Item& output) {
  const InputError operands[] = {{&Rows(), kError}, {&Rows(), kError}};
  return DistanceError(output, "Functional." + api + ".0.forward", operands, kRounding);
}

double GradientErrorOf(const std::string& api, const Item& output, const Item& gradient,
                       const Item& incoming = TensorOf({}, 1)) {
  const InputError operands[] = {{&Rows(), kError}, {&Rows(), kError}};
  return DistanceGradientError({gradient, incoming, output}, "Functional." + api + ".0.forward",
                               operands, kRounding);
}

TEST(DistanceError, ErrorsOfWhatIsComparedCountByTheDistance) {
  // Elements 0.01 apart, of size 2: 2 * 2 * 1e-6 of 0.01.
  EXPECT_NEAR(ErrorOf("l1_loss", TensorOf({}, 0.01)), 4e-4, 1e-9);
  EXPECT_NEAR(ErrorOf("mse_loss", TensorOf({}, 1e-4)), 8e-4 + 16e-8, 1e-9);
  EXPECT_NEAR(ErrorOf("pairwise_distance", TensorOf({40}, 0.04)), 4e-4, 1e-9);
  EXPECT_NEAR(ErrorOf("sub", TensorOf({40, 16}, 0.01)), 4e-4, 1e-9);
}

TEST(DistanceError, FarApartNothingIsAdded) {
  for (const char* api : {"l1_loss", "mse_loss", "sub", "cosine_embedding_loss"}) {
    EXPECT_EQ(ErrorOf(api, TensorOf({}, 1)), 0) << api;
  }
  EXPECT_EQ(ErrorOf("linear", TensorOf({40, 16}, 1e-6)), 0);
  EXPECT_EQ(ErrorOf("mse_loss", TensorOf({}, std::nan(""))), 0);
}

TEST(DistanceError, OneLessACosineIsOffByTheRoundingOfOne) {
  EXPECT_NEAR(ErrorOf("cosine_embedding_loss", TensorOf({}, 1e-4)), 0.02, 1e-9);
}

TEST(DistanceError, DistancesOfAllPairsAreRootsOfDifferencesOfSquares) {
  // |a|^2 is 64; the squares are off by 1.3e-4, near pairs by the root of it.
  EXPECT_NEAR(ErrorOf("cdist", TensorOf({40, 40}, 8, 4)), 2e-6, 1e-9);
  const double nearest = std::sqrt(64 * 2e-6);
  EXPECT_NEAR(ErrorOf("cdist", TensorOf({40, 40}, 8)), nearest / std::sqrt(40.0) / 8, 1e-9);
}

TEST(DistanceError, GradientsOfWhatIsNearAreOffLikeTheDistance) {
  const Item gradient = TensorOf({40, 16}, 1e-5);
  EXPECT_NEAR(GradientErrorOf("mse_loss", TensorOf({}, 1e-4), gradient), 4e-4, 1e-9);
  // A share of the signs may be another.
  EXPECT_NEAR(GradientErrorOf("l1_loss", TensorOf({}, 0.01), gradient), 0.04, 1e-9);
  EXPECT_EQ(GradientErrorOf("mse_loss", TensorOf({}, 1), gradient), 0);
}

TEST(DistanceError, GradientsOfCosinesVanishWhereTheseAreOne) {
  const double natural = 1 / (2 * std::sqrt(640.0));  // one over the norm of what is compared
  const Item gradient = TensorOf({40, 16}, 1e-3 * natural / std::sqrt(640.0));
  EXPECT_NEAR(GradientErrorOf("cosine_similarity", TensorOf({}, 1), gradient), 2e-3, 1e-9);
}

TEST(DistanceError, GradientsOfDistancesOfPairsHangOnTheNearest) {
  const Item gradient = TensorOf({40, 16}, 1e-2), incoming = TensorOf({40, 40}, 1e-3);
  const double share = 1e-3 * 40 / (1e-2 * std::sqrt(640.0));
  EXPECT_NEAR(GradientErrorOf("cdist", TensorOf({40, 40}, 8), gradient, incoming), share, 1e-9);
  EXPECT_LT(GradientErrorOf("cdist", TensorOf({40, 40}, 8, 4), gradient, incoming), 1e-5);
}

constexpr double kFloat32 = 0x1p-24;

ElementOperand Of(std::vector<double> values) { return {std::move(values), 0}; }
ElementOperand Number(double number) { return {{}, number}; }

bool Follows(std::string_view api, const std::vector<ElementOperand>& operands,
             const std::vector<double>& result, double roundoff = kFloat32) {
  const std::string name = "Tensor." + std::string(api) + ".0.forward";
  const ElementFunction function = ElementFunctionOf(name, operands.size());
  return function != nullptr && IsResultOf(function, operands, result, roundoff);
}

TEST(Elementwise, CallsOfOptimizers) {
  const ElementOperand a = Of({1, -2}), b = Of({4, 8}), c = Of({2, 16});
  EXPECT_TRUE(Follows("add_", {a, b}, {5, 6}));
  EXPECT_TRUE(Follows("add_", {a, b, Number(0.5)}, {3, 2}));
  EXPECT_TRUE(Follows("__sub__", {a, b}, {-3, -10}));
  EXPECT_TRUE(Follows("__rsub__", {a, Number(1)}, {0, 3}));
  EXPECT_TRUE(Follows("mul", {a, Number(3)}, {3, -6}));
  EXPECT_TRUE(Follows("__rtruediv__", {b, Number(1)}, {0.25, 0.125}));
  EXPECT_TRUE(Follows("lerp_", {a, b, Number(0.5)}, {2.5, 3}));
  EXPECT_TRUE(Follows("addcmul_", {a, b, c, Number(0.5)}, {5, 62}));
  EXPECT_TRUE(Follows("addcdiv_", {a, b, c, Number(-1)}, {-1, -2.5}));
  EXPECT_TRUE(Follows("sqrt", {b}, {2, std::sqrt(8.0)}));
  EXPECT_TRUE(Follows("sign_", {Of({1e-30, -3, 0})}, {1, -1, 0}));
  EXPECT_TRUE(Follows("gt", {a, Number(0)}, {1, 0}));
  EXPECT_TRUE(Follows("clamp_", {b, Number(5), Number(7)}, {5, 7}));
  EXPECT_TRUE(Follows("maximum", {a, c}, {2, 16}));
  EXPECT_TRUE(Follows("where", {Of({1, 0}), a, b}, {1, 8}));
}

TEST(Elementwise, RoundingIsMeasuredByWhatIsAdded) {
  const double one_unit = 1e8 * 0x1p-23;
  EXPECT_TRUE(Follows("add", {Of({1e8}), Of({-1e8})}, {one_unit}));
  EXPECT_FALSE(Follows("add", {Of({1e8}), Of({-1e8})}, {16 * one_unit}));
  EXPECT_FALSE(Follows("mul", {Of({1}), Of({1})}, {1.00001}));
  EXPECT_TRUE(Follows("mul", {Of({1}), Of({1})}, {1.00001}, 0x1p-8));
}

TEST(Elementwise, OneWrongElementIsSeen) {
  EXPECT_FALSE(Follows("sign_", {Of({1e-30, -3})}, {1, 1}));
  EXPECT_FALSE(Follows("addcdiv_", {Of({1, 1}), Of({1, 1}), Of({1, 1}), Number(0.5)}, {1.5, 1.4}));
  EXPECT_FALSE(Follows("add_", {Of({1}), Of({4}), Number(0.5)}, {5}));  // without the factor
  EXPECT_FALSE(Follows("gt", {Of({0}), Number(0)}, {1}));
}

TEST(Elementwise, NanIsNeverRightAndInfinityOnlyWhereItMustBe) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(Follows("div", {Of({0}), Of({0})}, {nan}));
  EXPECT_FALSE(Follows("mul", {Of({2}), Of({2})}, {nan}));
  EXPECT_TRUE(Follows("div", {Of({1}), Of({0})}, {infinity}));
  EXPECT_FALSE(Follows("mul", {Of({2}), Of({2})}, {infinity}));
}

TEST(Elementwise, HowFarOffIsCountedInRoundings) {
  const auto off = [](std::string_view api, const std::vector<ElementOperand>& operands,
                      const std::vector<double>& result) {
    const std::string name = "Tensor." + std::string(api) + ".0.forward";
    return RoundingsOff(ElementFunctionOf(name, operands.size()), operands, result, kFloat32);
  };
  EXPECT_EQ(off("add", {Of({1, 2}), Of({3, 4})}, {4, 6}), 0);
  EXPECT_NEAR(*off("add", {Of({1, 2}), Of({3, 4})}, {4 + 4 * 0x1p-20, 6}), 16, 1e-6);
  EXPECT_TRUE(std::isinf(*off("sign_", {Of({-1e-20})}, {1})));
  EXPECT_TRUE(std::isinf(*off("mul", {Of({2}), Of({2})}, {std::nan("")})));
  // What would have to be infinite may be reached in another way.
  EXPECT_FALSE(off("div", {Of({1}), Of({0})}, {7}));
}

TEST(Elementwise, OtherCallsAreNotKnown) {
  EXPECT_EQ(ElementFunctionOf("Torch.matmul.0.forward", 2), nullptr);
  EXPECT_EQ(ElementFunctionOf("Tensor.add_.0.backward", 2), nullptr);
  EXPECT_EQ(ElementFunctionOf("Tensor.add_.0.forward", 1), nullptr);
  EXPECT_EQ(ElementFunctionOf("Module.add.Linear.forward.0", 2), nullptr);
  for (const char* name :
       {"abs", "add",   "addcdiv", "addcmul", "clamp",   "clip",    "eq",      "ge",
        "gt",  "le",    "lerp",    "lt",      "maximum", "minimum", "mul",     "ne",
        "neg", "rsqrt", "sign",    "sqrt",    "square",  "sub",     "truediv", "where"}) {
    const std::string call = std::string("Torch.") + name + ".0.forward";
    bool is_known = false;
    for (const size_t arguments : {size_t{1}, size_t{2}, size_t{3}}) {
      is_known = is_known || ElementFunctionOf(call, arguments) != nullptr;
    }
    EXPECT_TRUE(is_known) << name;  // the table is sorted, or it would not be found
  }
}

}  // namespace

}  // namespace plumbline::measure
