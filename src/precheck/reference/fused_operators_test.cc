#include "precheck/reference/fused_operators.h"

#include <gtest/gtest.h>

#include "base/process/parallel.h"
#include "precheck/reference/gradient_for_test.h"

namespace plumbline::precheck::reference::fused_operators_test {
namespace {

Doubles Row(std::vector<double> values) {
  const auto size = static_cast<int64_t>(values.size());
  return {{size}, std::move(values)};
}
Operand Bools(const std::vector<uint8_t>& values, const Shape& shape) {
  return {DType::kBool, reinterpret_cast<const std::byte*>(values.data()), shape};
}

// ---- Printed values

TEST(FastGelu, PrintedValues) {
  const Doubles x = Row({1, -1}), one = Row({1, 1});
  ExpectNear(ValuesIn(Must(FastGelu(x.operand()))), {0.8457957659, -0.1542042341}, 1e-10);
  ExpectNear(ValuesIn(Must(FastGeluGrad(one.operand(), x.operand()))),
             {1.0677796066, -0.0677796066}, 1e-10);
}

TEST(Mish, PrintedValueAndTails) {
  const Doubles x = Row({1, 1000, -1000, 0});
  ExpectNear(ValuesIn(Must(Mish(x.operand()))), {0.8650983883, 1000, 0, 0}, 1e-10);
}

TEST(Swiglu, PrintedValues) {
  const Doubles x = Row({1, 2}), one = Row({1});
  ExpectNear(ValuesIn(Must(Swiglu(x.operand(), -1, std::nullopt))), {1.4621171573}, 1e-10);
  ExpectNear(ValuesIn(Must(SwigluGrad(one.operand(), x.operand(), -1, std::nullopt))),
             {1.8553410237, 0.7310585786}, 1e-10);
}

TEST(Swiglu, DeviceRoundsSiluWhereSixteenBitsWereRecorded) {
  const Doubles x = Row({1, 2}), one = Row({1});
  // silu(1) = 0.7310585786 lies between the bfloat16 0.73046875 and 0.734375.
  ExpectNear(ValuesIn(Must(Swiglu(x.operand(), 0, DType::kBFloat16))), {2 * 0.73046875}, 0);
  ExpectNear(ValuesIn(Must(SwigluGrad(one.operand(), x.operand(), 0, DType::kBFloat16))),
             {2 * 0.92578125, 0.73046875}, 0);
  // float16 rounds nothing in between on the way back.
  ExpectNear(ValuesIn(Must(SwigluGrad(one.operand(), x.operand(), 0, DType::kFloat16))),
             {1.8553410237, 0.7310585786}, 1e-10);
  ExpectNear(ValuesIn(Must(Swiglu(x.operand(), 0, DType::kFloat32))), {1.4621171573}, 1e-10);
}

TEST(RmsNorm, PrintedValues) {
  const Doubles x = Row({3, 4}), gamma = Row({1, 1});
  const RmsNormResult result = Must(RmsNorm(x.operand(), gamma.operand(), 1e-5, std::nullopt));
  ExpectNear(ValuesIn(result.rstd), {0.2828425993}, 1e-10);
  ExpectNear(ValuesIn(result.y), {0.8485277980, 1.1313703973}, 1e-10);
  EXPECT_EQ(result.rstd.shape(), (Shape{1}));
}

TEST(RmsNorm, RstdOfNarrowTensorsIsFloat32) {
  const std::vector<uint16_t> ones = {0x3C00, 0x3C00};
  const Operand x{DType::kFloat16, reinterpret_cast<const std::byte*>(ones.data()), {2}};
  const RmsNormResult result = Must(RmsNorm(x, x, 1e-6, std::nullopt));
  EXPECT_EQ(result.rstd.dtype(), DType::kFloat32);
  EXPECT_EQ(result.y.dtype(), DType::kFloat16);
}

TEST(ScaledMaskedSoftmax, PrintedValues) {
  const Doubles x = Row({1, 2, 3});
  ExpectNear(ValuesIn(Must(ScaledMaskedSoftmax(x.operand(), {}, std::nullopt))),
             {0.0900305732, 0.2447284711, 0.6652409558}, 1e-10);
}

TEST(ScaledMaskedSoftmax, HiddenRowIsUniformAndTriangleHidesAbove) {
  const Doubles x{{2, 2}, {1, 2, 3, 4}};
  const std::vector<uint8_t> mask = {1, 1, 0, 0};
  MaskedSoftmaxOptions options;
  options.mask = Bools(mask, {2, 2});
  const double e = std::exp(1.0);
  ExpectNear(ValuesIn(Must(ScaledMaskedSoftmax(x.operand(), options, std::nullopt))),
             {0.5, 0.5, 1 / (1 + e), e / (1 + e)}, 1e-12);
  options.fixed_triu_mask = true;
  ExpectNear(ValuesIn(Must(ScaledMaskedSoftmax(x.operand(), options, std::nullopt))),
             {1, 0, 1 / (1 + e), e / (1 + e)}, 1e-12);
}

TEST(MoeGating, PrintedIndicesTiesAndFinishedRows) {
  const Doubles x{{2, 3}, {1, 3, 2, 0, 0, 0}};
  const std::vector<uint8_t> finished = {0, 1};
  const MoeGatingResult result =
      Must(MoeGatingTopKSoftmax({x.operand(), Bools(finished, {2}), 2}, std::nullopt));
  ExpectNear(ValuesIn(result.expert_idx), {1, 2, 3, 3}, 0);
  ExpectNear(ValuesIn(result.row_idx), {0, 2, 1, 3}, 0);
  EXPECT_EQ(result.expert_idx.dtype(), DType::kInt64);
  const MoeGatingResult open =
      Must(MoeGatingTopKSoftmax({x.operand(), std::nullopt, 2}, std::nullopt));
  ExpectNear(ValuesIn(open.expert_idx), {1, 2, 0, 1}, 0);
  ExpectNear(ValuesIn(open.y), {0.6652409558, 0.2447284711, 1.0 / 3, 1.0 / 3}, 1e-10);
}

AdamState StateOf(const Doubles& var, const Doubles& m, const Doubles& v, const Doubles& grad) {
  return {var.operand(), m.operand(), v.operand(), grad.operand(), 0.9,
          0.999,         1e-3,        0.9,         0.999,          1e-8};
}

TEST(ApplyAdam, PrintedValues) {
  const Doubles zero = Row({0, 0, 0}), grad = Row({1, 2, 3});
  const AdamState state = StateOf(zero, zero, zero, grad);
  const std::array<Array, 3> plain = Must(ApplyAdam(state, false));
  ExpectNear(ValuesIn(plain[0]), {-9.999996838e-4, -9.999998419e-4, -9.999998946e-4}, 1e-12);
  ExpectNear(ValuesIn(plain[1]), {0.1, 0.2, 0.3}, 1e-15);
  ExpectNear(ValuesIn(plain[2]), {0.001, 0.004, 0.009}, 1e-15);
  ExpectNear(ValuesIn(Must(ApplyAdam(state, true))[0]),
             {-1.8999993992e-3, -1.8999996996e-3, -1.8999997997e-3}, 1e-12);
}

TEST(ApplyAdamW, PrintedValuesAndAmsgrad) {
  const Doubles var = Row({1}), m = Row({0.1}), v = Row({0.01}), grad = Row({0.5}), one = Row({1});
  AdamState state = StateOf(var, m, v, grad);
  state.lr = 0.01;
  AdamWOptions options;
  options.weight_decay = 0.1;
  const std::array<Array, 3> plain = Must(ApplyAdamW(state, options));
  ExpectNear(ValuesIn(plain[0]), {0.99574440141}, 1e-11);
  ExpectNear(ValuesIn(plain[1]), {0.14}, 1e-15);
  ExpectNear(ValuesIn(plain[2]), {0.01024}, 1e-15);
  options.amsgrad = true;
  EXPECT_NE(ErrorOf(ApplyAdamW(state, options)).find("max_grad_norm"), std::string::npos);
  options.max_grad_norm = one.operand();
  const double rest1 = 1 - 0.81, rest2 = 1 - 0.999 * 0.999;
  const double expected = 0.999 - 0.01 * 0.14 / rest1 / (std::sqrt(1 / rest2) + 1e-8);
  ExpectNear(ValuesIn(Must(ApplyAdamW(state, options))[0]), {expected}, 1e-13);
  options.maximize = true;
  ExpectNear(ValuesIn(Must(ApplyAdamW(state, options))[1]), {0.04}, 1e-15);
}

TEST(ApplyAdamW, BiasOfOneIsKeptFromNothing) {
  const Doubles one = Row({1});
  AdamState state = StateOf(one, one, one, one);
  state.beta1_power = state.beta2_power = state.beta1 = state.beta2 = 1;
  EXPECT_TRUE(std::isfinite(ValuesIn(Must(ApplyAdamW(state, {}))[0])[0]));
}

// ---- Gradients against central differences

TEST(Gradient, ActivationsFollowTheirSlopes) {
  Doubles x = Random({3, 5}, 1);
  const Doubles g = Random({3, 5}, 2);
  ExpectGradient(
      x, g, [&] { return Must(FastGelu(x.operand())); },
      Must(FastGeluGrad(g.operand(), x.operand())));
  ExpectGradient(
      x, g, [&] { return Must(Mish(x.operand())); }, Must(MishGrad(g.operand(), x.operand())));
}

TEST(Gradient, SwigluAlongEveryDimension) {
  for (int64_t dim = -3; dim < 3; ++dim) {
    Doubles x = Random({2, 4, 6}, 3);
    const Array y = Must(Swiglu(x.operand(), dim, std::nullopt));
    const Doubles g = Random(y.shape(), 4);
    ExpectGradient(
        x, g, [&] { return Must(Swiglu(x.operand(), dim, std::nullopt)); },
        Must(SwigluGrad(g.operand(), x.operand(), dim, std::nullopt)));
  }
}

TEST(Gradient, RmsNormOfTwoDimensions) {
  Doubles x = Random({3, 2, 4}, 5), gamma = Random({2, 4}, 6);
  const Doubles g = Random({3, 2, 4}, 7);
  const auto forward = [&] {
    return Must(RmsNorm(x.operand(), gamma.operand(), 1e-5, std::nullopt));
  };
  const Array rstd = std::move(forward().rstd);
  EXPECT_EQ(rstd.shape(), (Shape{3, 1, 1}));
  const auto grads = Must(RmsNormGrad(g.operand(), x.operand(), gamma.operand(), rstd.operand()));
  ExpectGradient(
      x, g, [&] { return std::move(forward().y); }, grads[0]);
  ExpectGradient(
      gamma, g, [&] { return std::move(forward().y); }, grads[1]);
}

TEST(Gradient, LayerNormWithWeightAndBias) {
  Doubles x = Random({4, 2, 3}, 8), weight = Random({2, 3}, 9), bias = Random({2, 3}, 10);
  const Doubles g = Random({4, 2, 3}, 11);
  const LayerNormCall call{x.operand(), {2, 3}, weight.operand(), bias.operand(), 1e-3};
  const auto grads = Must(LayerNormGrad(g.operand(), call));
  const auto forward = [&] { return Must(LayerNorm(call)); };
  ExpectGradient(x, g, forward, grads[0]);
  ExpectGradient(weight, g, forward, grads[1]);
  ExpectGradient(bias, g, forward, grads[2]);
}

TEST(Gradient, GroupNormSiluOfRanksTwoToFive) {
  for (const Shape& shape : {Shape{2, 4}, Shape{2, 4, 3}, Shape{1, 6, 2, 2, 2}}) {
    Doubles x = Random(shape, 12), weight = Random({shape[1]}, 13), bias = Random({shape[1]}, 14);
    const Doubles g = Random(shape, 15);
    const GroupNormCall call{x.operand(), weight.operand(), bias.operand(), 2, 1e-3};
    const auto grads = Must(GroupNormSiluGrad(g.operand(), call));
    const auto forward = [&] { return std::move(Must(GroupNormSilu(call))[0]); };
    ExpectGradient(x, g, forward, grads[0]);
    ExpectGradient(weight, g, forward, grads[1]);
    ExpectGradient(bias, g, forward, grads[2]);
    EXPECT_EQ(Must(GroupNormSilu(call))[1].shape(), (Shape{shape[0], 2}));
  }
}

TEST(Gradient, ScaledMaskedSoftmaxWithBroadcastMask) {
  Doubles x = Random({2, 2, 3, 4}, 16);
  const Doubles g = Random({2, 2, 3, 4}, 17);
  const std::vector<uint8_t> mask = {0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0};
  MaskedSoftmaxOptions options;
  options.mask = Bools(mask, {1, 1, 3, 4});
  options.scale = 0.7;
  const auto forward = [&] {
    return Must(ScaledMaskedSoftmax(x.operand(), options, std::nullopt));
  };
  const Array y = forward();
  ExpectGradient(x, g, forward, Must(ScaledMaskedSoftmaxGrad(g.operand(), y.operand(), options)));
}

TEST(Gradient, MoeGatingOfThreeDimensions) {
  Doubles x = Random({2, 2, 5}, 18);
  const Doubles g = Random({2, 2, 3}, 19);
  const MoeGatingCall call{x.operand(), std::nullopt, 3};
  const auto forward = [&] { return std::move(Must(MoeGatingTopKSoftmax(call, std::nullopt)).y); };
  ExpectGradient(x, g, forward, Must(MoeGatingTopKSoftmaxGrad(g.operand(), call, std::nullopt)));
}

void ExpectRotaryGradients(const Shape& shape, const Shape& first, const Shape& second) {
  for (const RotaryMode mode : {RotaryMode::kHalf, RotaryMode::kInterleave}) {
    Doubles x = Random(shape, 20), r1 = Random(first, 21), r2 = Random(second, 22);
    const Doubles g = Random(shape, 23);
    const auto forward = [&] {
      return Must(RotaryMul(x.operand(), r1.operand(), r2.operand(), mode));
    };
    const auto grads =
        Must(RotaryMulGrad(g.operand(), {x.operand(), r1.operand(), r2.operand(), mode}));
    ExpectGradient(x, g, forward, grads[0]);
    ExpectGradient(r1, g, forward, grads[1]);
    ExpectGradient(r2, g, forward, grads[2]);
  }
}

TEST(Gradient, RotaryMulOfEveryBroadcast) {
  const Shape shape{2, 3, 2, 4};
  for (const Shape& factor : {Shape{1, 3, 1, 4}, Shape{2, 3, 2, 4}, Shape{4}, Shape{1, 1, 2, 4},
                              Shape{2, 1, 1, 1}, Shape{3, 1, 4}}) {
    ExpectRotaryGradients(shape, factor, factor);
    ExpectRotaryGradients(shape, factor, {2, 1, 2, 4});
  }
}

TEST(Gradient, LinearOfThreeDimensions) {
  Doubles x = Random({2, 3, 4}, 24), weight = Random({5, 4}, 25), bias = Random({5}, 26);
  const Doubles g = Random({2, 3, 5}, 27);
  const auto forward = [&] { return Must(Linear(x.operand(), weight.operand(), bias.operand())); };
  const LinearGradients grads = Must(LinearGrad(g.operand(), x.operand(), weight.operand()));
  ExpectGradient(x, g, forward, grads.input);
  ExpectGradient(weight, g, forward, grads.weight);
  ExpectGradient(bias, g, forward, grads.bias);
}

// ---- Products: matmul by its definition

// Broadcast matmul of matrices, element by element.
Doubles Product(const Doubles& a, const Doubles& b, const Shape& batch) {
  const size_t m = static_cast<size_t>(a.shape[a.shape.size() - 2]), depth = a.operand().last();
  const size_t n = b.operand().last();
  Shape shape = batch;
  shape.push_back(static_cast<int64_t>(m));
  shape.push_back(static_cast<int64_t>(n));
  Doubles out{shape, std::vector<double>(CountOf(shape))};
  const auto matrix_of = [&](const Doubles& side, size_t index) {
    Shape rows = batch, own(side.shape.begin(), side.shape.end() - 2);
    rows.push_back(1);
    own.push_back(1);
    const Operand place{DType::kFloat64, nullptr, own};
    return Broadcast(place, rows).Start(index);
  };
  for (size_t i = 0; i < CountOf(batch); ++i) {
    const double* const x = a.values.data() + matrix_of(a, i) * m * depth;
    const double* const y = b.values.data() + matrix_of(b, i) * depth * n;
    for (size_t r = 0; r < m; ++r) {
      for (size_t c = 0; c < n; ++c) {
        double& sum = out.values[(i * m + r) * n + c];
        for (size_t k = 0; k < depth; ++k) sum += x[r * depth + k] * y[k * n + c];
      }
    }
  }
  return out;
}

Array ArrayOf(const Doubles& doubles) {
  Array array(DType::kFloat64, doubles.shape);
  Write(array, 0, doubles.values.size(), doubles.values.data());
  return array;
}

TEST(MatmulGrad, BatchesAreSummedWhereBroadcast) {
  struct Case {
    Shape self, other, batch;
  };
  for (const Case& c : {Case{{2, 3}, {3, 4}, {}}, Case{{5, 2, 3}, {3, 4}, {5}},
                        Case{{2, 3}, {5, 3, 4}, {5}}, Case{{2, 1, 2, 3}, {3, 3, 4}, {2, 3}},
                        Case{{1, 2, 3}, {4, 3, 2}, {4}}, Case{{4, 2, 3}, {1, 3, 2}, {4}}}) {
    Doubles a = Random(c.self, 28), b = Random(c.other, 29);
    const Doubles g = Random(Product(a, b, c.batch).shape, 30);
    const auto grads = Must(MatmulGrad(g.operand(), a.operand(), b.operand(), {true, true}));
    const auto forward = [&] { return ArrayOf(Product(a, b, c.batch)); };
    ExpectGradient(a, g, forward, *grads[0]);
    ExpectGradient(b, g, forward, *grads[1]);
  }
}

TEST(MatmulGrad, VectorsAndUnwantedGradients) {
  const Doubles a{{2}, {1, 2}}, b{{2}, {3, 4}}, g{{}, {10}};
  const auto grads = Must(MatmulGrad(g.operand(), a.operand(), b.operand(), {true, true}));
  ExpectNear(ValuesIn(*grads[0]), {30, 40}, 0);
  ExpectNear(ValuesIn(*grads[1]), {10, 20}, 0);
  const Doubles matrix{{2, 2}, {1, 2, 3, 4}}, row{{2}, {5, 6}};
  const auto outer = Must(MatmulGrad(row.operand(), matrix.operand(), b.operand(), {true, false}));
  ExpectNear(ValuesIn(*outer[0]), {15, 20, 18, 24}, 0);
  EXPECT_FALSE(outer[1]);
  const auto left = Must(MatmulGrad(row.operand(), a.operand(), matrix.operand(), {true, true}));
  ExpectNear(ValuesIn(*left[0]), {17, 39}, 0);
  ExpectNear(ValuesIn(*left[1]), {5, 6, 10, 12}, 0);
}

TEST(Linear, LargeProductsAreSumsOfTheirTerms) {
  const Doubles x = Random({150, 600}, 31), w = Random({137, 600}, 32);
  const std::vector<double> y = ValuesIn(Must(Linear(x.operand(), w.operand(), std::nullopt)));
  for (const size_t i : {0ul, 136ul, 137ul * 149 + 5, 137ul * 128 + 130}) {
    long double sum = 0;
    for (size_t k = 0; k < 600; ++k) {
      sum += static_cast<long double>(x.values[i / 137 * 600 + k]) *
             static_cast<long double>(w.values[i % 137 * 600 + k]);
    }
    EXPECT_NEAR(y[i], static_cast<double>(sum), 1e-12);
  }
}

TEST(Threads, ResultsDoNotDependOnTheirNumber) {
  const Doubles x = Random({700, 40}, 33), gamma = Random({40}, 34);
  std::array<std::vector<double>, 3> dgamma;
  for (size_t i = 0; i < 3; ++i) {
    RunWithThreads(i == 0 ? 1 : static_cast<int>(3 * i), [&] {
      const RmsNormResult y = Must(RmsNorm(x.operand(), gamma.operand(), 1e-6, std::nullopt));
      dgamma[i] = ValuesIn(
          Must(RmsNormGrad(x.operand(), x.operand(), gamma.operand(), y.rstd.operand()))[1]);
    });
  }
  EXPECT_EQ(dgamma[0], dgamma[1]);
  EXPECT_EQ(dgamma[0], dgamma[2]);
}

// ---- Edges

TEST(Edges, EmptyTensorsGiveEmptyResults) {
  const Doubles none{{0, 4}, {}}, gamma = Random({4}, 35);
  EXPECT_EQ(Must(FastGelu(none.operand())).shape(), (Shape{0, 4}));
  EXPECT_EQ(Must(Swiglu(none.operand(), -1, std::nullopt)).shape(), (Shape{0, 2}));
  EXPECT_EQ(Must(RmsNorm(none.operand(), gamma.operand(), 1e-6, std::nullopt)).y.shape(),
            (Shape{0, 4}));
  EXPECT_EQ(Must(ScaledMaskedSoftmax(none.operand(), {}, std::nullopt)).shape(), (Shape{0, 4}));
  const Doubles weight = Random({3, 4}, 36);
  EXPECT_EQ(Must(Linear(none.operand(), weight.operand(), std::nullopt)).shape(), (Shape{0, 3}));
}

TEST(Edges, NaNAndInfGoThrough) {
  const double nan = std::nan(""), inf = INFINITY;
  const Doubles x = Row({nan, inf});
  EXPECT_TRUE(std::isnan(ValuesIn(Must(FastGelu(x.operand())))[0]));
  EXPECT_EQ(ValuesIn(Must(FastGelu(x.operand())))[1], inf);
  EXPECT_TRUE(std::isnan(ValuesIn(Must(Mish(x.operand())))[0]));
  for (const double p :
       ValuesIn(Must(ScaledMaskedSoftmax(Row({1, nan}).operand(), {}, std::nullopt)))) {
    EXPECT_TRUE(std::isnan(p));
  }
}

TEST(Errors, EachNamesItsArgument) {
  const Doubles x = Random({2, 3}, 37), gamma = Random({2}, 38), wide = Random({2, 4}, 39);
  const std::vector<int64_t> numbers = {1, 2};
  const Operand integers{DType::kInt64, reinterpret_cast<const std::byte*>(numbers.data()), {2}};
  const auto starts = [](const std::string& text, const std::string& start) {
    EXPECT_EQ(text.substr(0, start.size()), start) << text;
  };
  starts(ErrorOf(FastGelu(integers)), "self: ");
  starts(ErrorOf(Swiglu(x.operand(), -1, std::nullopt)), "x: dimension 1 of shape (2, 3)");
  starts(ErrorOf(Swiglu(x.operand(), 2, std::nullopt)), "dim: 2");
  starts(ErrorOf(RmsNorm(x.operand(), gamma.operand(), 1e-6, std::nullopt)), "gamma: ");
  starts(ErrorOf(LayerNorm({x.operand(), {2}, {}, {}, 1e-5})), "normalized_shape: ");
  starts(ErrorOf(LayerNorm({x.operand(), {3}, gamma.operand(), {}, 1e-5})), "weight: ");
  starts(ErrorOf(GroupNormSilu({wide.operand(), {}, {}, 3, 1e-5})), "group: ");
  starts(ErrorOf(MoeGatingTopKSoftmax({x.operand(), std::nullopt, 4}, std::nullopt)), "k: ");
  starts(ErrorOf(RotaryMul(x.operand(), x.operand(), x.operand(), RotaryMode::kHalf)), "input: ");
  starts(ErrorOf(RotaryMul(wide.operand(), x.operand(), wide.operand(), RotaryMode::kHalf)),
         "r1: ");
  starts(ErrorOf(Linear(x.operand(), wide.operand(), std::nullopt)), "weight: ");
  starts(ErrorOf(MatmulGrad(x.operand(), x.operand(), x.operand(), {true, true})), "other: ");
  starts(ErrorOf(ApplyAdam(StateOf(x, x, wide, x), false)), "v: ");
}

}  // namespace
}  // namespace plumbline::precheck::reference::fused_operators_test
