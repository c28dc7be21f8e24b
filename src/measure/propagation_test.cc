#include "measure/propagation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace plumbline::measure {

namespace {

constexpr double kRoundoff = 0x1p-24;
using PropagatedValues = std::vector<double>;

// Two channels of mean 100 and -40 with deviation 1 and 2, in four samples.
const PropagatedValues kColumns{101, -38, 99, -42, 101, -42, 99, -38};
const PropagatedValues kNormal{1, 1, -1, -1, 1, -1, -1, 1};

Normalisation OfColumns() { return {kColumns, {}, {}, 2, 1, 0, 0}; }

TEST(Normalised, ByChannel) {
  EXPECT_TRUE(IsNormalised(OfColumns(), kNormal, kRoundoff));
  PropagatedValues off = kNormal;
  off[3] += 1e-6;  // rounding of 42 beside a deviation of 2
  EXPECT_TRUE(IsNormalised(OfColumns(), off, kRoundoff));
  off[3] += 1e-3;
  EXPECT_FALSE(IsNormalised(OfColumns(), off, kRoundoff));
}

TEST(Normalised, ByBlocksWithWeightsAndBiases) {
  const PropagatedValues w{2, 3}, b{10, 20}, x{101, 99, -38, -42};
  const Normalisation layer{x, w, b, 2, 1, 2, 0};
  EXPECT_TRUE(IsNormalised(layer, PropagatedValues{12, 17, 12, 17}, kRoundoff));
  const Normalisation instance{x, w, b, 2, 2, 2, 0};
  EXPECT_TRUE(IsNormalised(instance, PropagatedValues{12, 8, 23, 17}, kRoundoff));
  EXPECT_FALSE(IsNormalised(instance, PropagatedValues{12, 17, 12, 17}, kRoundoff));
  EXPECT_FALSE(IsNormalised({x, {}, b, 2, 2, 2, 0}, PropagatedValues{12, 8, 23, 17}, kRoundoff));
}

TEST(Normalised, EpsilonCounts) {
  Normalisation call = OfColumns();
  call.epsilon = 3;  // sqrt(1 + 3), sqrt(4 + 3)
  const double second = 2 / std::sqrt(7.0);
  const PropagatedValues y{0.5, second, -0.5, -second, 0.5, -second, -0.5, second};
  EXPECT_TRUE(IsNormalised(call, y, kRoundoff));
  EXPECT_FALSE(IsNormalised(OfColumns(), y, kRoundoff));
}

TEST(Normalised, WhatDoesNotFitOrIsNoNumberIsWrong) {
  EXPECT_FALSE(IsNormalised(OfColumns(), PropagatedValues{1, 1}, kRoundoff));
  Normalisation call = OfColumns();
  call.channels = 3;
  EXPECT_FALSE(IsNormalised(call, kNormal, kRoundoff));
  call.channels = 0;
  EXPECT_FALSE(IsNormalised(call, kNormal, kRoundoff));
  PropagatedValues bad = kNormal;
  bad[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(IsNormalised(OfColumns(), bad, kRoundoff));
}

TEST(Normalised, GradientLosesItsMeanAndWhatLiesAlongTheResult) {
  // Of a loss that is the sum of the results, or of their squares, nothing is left.
  const PropagatedValues nothing(8, 0), noise(8, 2e-7);
  EXPECT_TRUE(IsGradientOfNormalised(OfColumns(), PropagatedValues(8, 1), nothing, kRoundoff));
  EXPECT_TRUE(IsGradientOfNormalised(OfColumns(), kNormal, noise, kRoundoff));
  const PropagatedValues incoming{1, 0, 0, 0, 0, 0, 0, 0};
  // 1 - 1/4 - x mean(x g), with x = 1, -1, 1, -1 and mean(x g) = 1/4.
  const PropagatedValues gradient{0.5, 0, 0, 0, -0.5, 0, 0, 0};
  EXPECT_TRUE(IsGradientOfNormalised(OfColumns(), incoming, gradient, kRoundoff));
  PropagatedValues scaled = gradient;
  for (double& value : scaled) value *= 1.01;
  EXPECT_FALSE(IsGradientOfNormalised(OfColumns(), incoming, scaled, kRoundoff));
}

// Four elements of this size.
Item SizedTensor(double size, double least = -1) {
  Item item;
  item.is_tensor = true;
  item.dtype = "torch.float32";
  item.shape = Shape{4};
  item.statistics = {size, least < 0 ? -size : least, 0.0, 2 * size};
  return item;
}

const Item kZeros = SizedTensor(0);
const Item kResidue = SizedTensor(1e-9);
const Item kValue = SizedTensor(0.1);

// What is all rounding on `residue`, as InputError of an operand.
InputError Residue(const Item& item, double residue = 1) { return {&item, 1, residue}; }
InputError Exact(const Item& item) { return {&item, 0, 0}; }

TEST(Residue, AloneItKeepsItsErrorWhateverIsDoneToIt) {
  const std::vector<InputError> alone{Residue(kResidue)};
  EXPECT_EQ(ResidueError(kResidue, "Torch.sqrt.0.forward", alone, 1), 1);
  EXPECT_EQ(ResidueError(kResidue, "Torch.unheard_of.0.forward", alone, 1), 1);
  EXPECT_EQ(ResidueError(kResidue, "Torch.sqrt.0.forward", std::vector{Exact(kResidue)}, 1), 0);
}

TEST(Residue, BesideZerosItIsAllThereIs) {
  const Item tenth = SizedTensor(1e-10);
  const std::vector<InputError> operands{Exact(kZeros), Residue(kResidue)};
  EXPECT_NEAR(ResidueError(tenth, "Tensor.lerp_.0.forward", operands, 0.1), 1, 1e-12);
  EXPECT_NEAR(ResidueError(kResidue, "Tensor.add_.0.forward", operands, 1), 1, 1e-12);
  EXPECT_NEAR(ResidueError(kResidue, "Torch.where.0.forward", operands, 1), 1, 1e-12);
  EXPECT_NEAR(ResidueError(kResidue, "Tensor.copy_.0.forward", operands, 1), 1, 1e-12);
}

TEST(Residue, BesideSomethingLargerItVanishes) {
  const std::vector<InputError> operands{Exact(kValue), Residue(kResidue)};
  EXPECT_NEAR(ResidueError(kValue, "Tensor.add_.0.forward", operands, 1), 1e-8, 1e-12);
  EXPECT_NEAR(ResidueError(kValue, "Tensor.add_.0.forward", operands, -0.01), 1e-10, 1e-14);
  EXPECT_NEAR(ResidueError(kValue, "Torch.cat.0.forward", operands, 1), 1e-8, 1e-12);
  const std::vector<InputError> bias{Exact(kValue), Exact(kValue), Residue(kResidue)};
  EXPECT_NEAR(ResidueError(kValue, "Functional.linear.0.forward", bias, 1), 1e-8, 1e-12);
}

TEST(Residue, FactorsKeepIt) {
  const std::vector<InputError> operands{Residue(kResidue), Exact(kValue)};
  const Item product = SizedTensor(1e-10);
  EXPECT_EQ(ResidueError(product, "Tensor.mul_.0.forward", operands, 1), 1);
  const std::vector<InputError> square{Residue(kResidue), Residue(kResidue)};
  EXPECT_EQ(ResidueError(product, "Tensor.__mul__.0.forward", square, 1), 2);
}

TEST(Residue, OfTheStepsOfAdam) {
  const Item square = SizedTensor(1e-21, 1e-22);
  const std::vector<InputError> squares{Exact(kZeros), Residue(kResidue), Residue(kResidue)};
  EXPECT_NEAR(ResidueError(square, "Tensor.addcmul_.0.forward", squares, 0.001), 2, 1e-12);
  const Item divisor = SizedTensor(1.1e-8, 1e-8);
  const std::vector<InputError> step{Exact(kValue), Residue(kResidue), Residue(divisor, 0.1)};
  // A weight of 0.1 moves by at most 0.01 * 1e-9 / 1e-8.
  EXPECT_NEAR(ResidueError(kValue, "Tensor.addcdiv_.0.forward", step, -0.01), 1.1 * 0.01, 1e-9);
  const std::vector<InputError> quotient{Residue(kResidue), Exact(divisor)};
  EXPECT_NEAR(ResidueError(kValue, "Tensor.div.0.forward", quotient, 1), 1, 1e-12);
  // Of divisors of either sign nothing is known.
  const std::vector<InputError> across{Residue(kResidue), Exact(kValue)};
  EXPECT_EQ(ResidueError(kValue, "Tensor.div.0.forward", across, 1), 0);
}

TEST(Residue, AmongAddendsItExcusesItsShare) {
  const Item divisor = SizedTensor(1.1e-8, 1e-8);
  std::vector<InputError> step{Exact(kValue), Residue(kResidue), Exact(divisor)};
  EXPECT_TRUE(ShareResidues(kValue, "Tensor.addcdiv_.0.forward", -0.01, step));
  EXPECT_NEAR(step[1].error, 0.01, 1e-9);  // 0.01 * 1e-9 / 1e-8 of 0.1
  EXPECT_EQ(step[0].error, 0);
  std::vector<InputError> product{Exact(kValue), Exact(kValue), Residue(kResidue)};
  EXPECT_TRUE(ShareResidues(kValue, "Tensor.addcmul_.0.forward", 1, product));
  EXPECT_NEAR(product[2].error, 1e-9, 1e-12);
  std::vector<InputError> factors{Exact(kValue), Residue(kResidue)};
  EXPECT_FALSE(ShareResidues(kValue, "Tensor.mul_.0.forward", 1, factors));
}

TEST(Residue, OfAModuleCountsAmongItsParameters) {
  Item bias = SizedTensor(0.01), value = SizedTensor(0.1);
  bias.role = ItemRole::kParameter;
  const std::vector<InputError> operands{Exact(value), Residue(bias, 0.5)};
  EXPECT_NEAR(ResidueError(value, "Module.fc.Linear.forward.0", operands, 1), 0.05, 1e-12);
  // What becomes of a value in an unknown module is not known.
  const std::vector<InputError> read{Residue(value, 0.5)};
  EXPECT_EQ(ResidueError(value, "Module.fc.Linear.forward.0", read, 1), 0);
  EXPECT_EQ(ResidueError(value, "Module.fc.Linear.backward.0", read, 1), 0.5);
}

TEST(Residue, NothingIsKnownOfOtherCallsAndOfTheirGradients) {
  const std::vector<InputError> operands{Exact(kValue), Residue(kResidue)};
  EXPECT_EQ(ResidueError(kValue, "Torch.matmul.0.forward", operands, 1), 0);
  EXPECT_EQ(ResidueError(kValue, "Tensor.add_.0.backward", operands, 1), 0);
  EXPECT_EQ(ResidueError(kZeros, "Tensor.add_.0.forward", operands, 1), 0);
}

Item TensorOf(Shape shape, double max, double min, double mean, double norm) {
  Item item;
  item.is_tensor = true;
  item.dtype = "torch.float32";
  item.shape = std::move(shape);
  item.statistics = {max, min, mean, norm};
  return item;
}

TEST(Propagation, CancellingSumAmplifies) {
  const Item a = TensorOf({4}, 10, -10, 0, 20);
  const Item b = TensorOf({4}, 10, -10, 0, 20);
  const Item y = TensorOf({4}, 0.1, -0.1, 0, 0.2);
  const std::vector<InputError> operands{{&a, 1e-6}, {&b, 2e-6}};
  // (1e-6 * 20 + 2e-6 * 20) / 0.2
  EXPECT_NEAR(PropagationTo(y, "Tensor.__sub__.0.forward", operands).from_inputs, 3e-4, 1e-9);
  EXPECT_EQ(PropagationTo(y, "Tensor.reshape.0.forward", operands).from_inputs, 2e-6);
}

TEST(Propagation, SmallPartMayHoldTheErrorOfTheWhole) {
  const Item whole = TensorOf({100}, 50, -50, 0, 200);
  const Item part = TensorOf({4}, 0.1, -0.1, 0, 0.2);
  const Item view = TensorOf({10, 10}, 50, -50, 0, 200);
  const Item zeros = TensorOf({4}, 0, 0, 0, 0);
  const std::vector<InputError> operands{{&whole, 1e-6}};
  const auto explained = [&](const Item& y) {
    return PropagationTo(y, "Tensor.__getitem__.0.forward", operands).from_inputs;
  };
  EXPECT_NEAR(explained(part), 1e-3, 1e-12);
  EXPECT_EQ(explained(view), 1e-6);
  EXPECT_EQ(explained(zeros), 1e-6);
}

TEST(Propagation, CancellingProductAmplifies) {
  const Item x = TensorOf({10, 100}, 1, -1, 0, std::sqrt(1000.0));  // root mean square 1
  const Item w = TensorOf({5, 100}, 1, -1, 0, std::sqrt(500.0));
  const Item usual = TensorOf({10, 5}, 10, -10, 0, 10 * std::sqrt(50.0));
  const Item cancelled = TensorOf({10, 5}, 1, -1, 0, std::sqrt(50.0));
  const std::vector<InputError> operands{{&x, 1e-6}, {&w, 0}};
  EXPECT_NEAR(PropagationTo(usual, "Functional.linear.0.forward", operands).amplification, 1, 1e-9);
  const Propagation found = PropagationTo(cancelled, "Functional.linear.0.forward", operands);
  EXPECT_NEAR(found.amplification, 10, 1e-9);
  EXPECT_NEAR(found.from_inputs, 1e-5, 1e-12);
}

// The first step of Adam, half of whose gradients are nothing but rounding: 0 - 0.005 m / (v +
// eps).
TEST(Propagation, SmallestDivisorsAmplifyWhatIsAddedToZero) {
  const Item zeros = TensorOf({4}, 0, 0, 0, 0);
  const Item m = TensorOf({4}, 0.01, -0.01, 0, 0.02);
  const Item v = TensorOf({4}, 0.1, 1e-6, 0.05, 0.12);
  const Item crossing = TensorOf({4}, 0.1, -1e-6, 0.05, 0.12);
  const Item y = TensorOf({4}, 5e-4, -5e-4, 0, 8e-4);
  const auto explained = [&](const Item& addend, const Item& divisor) {
    const std::vector<InputError> operands{{&addend, 0}, {&m, 1e-8}, {&divisor, 2e-8}};
    return PropagationTo(y, "Tensor.addcdiv_.0.forward", operands).from_inputs;
  };
  // |s| <= 5e-4 * 0.1 / 0.01, so of m: 5e-3 * 1e-8 * 0.01 / 1e-6 = 5e-7; of v: 5e-4 * 2e-8 * 0.06
  // / 1e-6 = 6e-7; over rms(y) = 4e-4.
  EXPECT_NEAR(explained(zeros, v), 1.1e-6 / 4e-4, 1e-9);
  EXPECT_EQ(explained(m, v), 2e-8);             // the addend hides the quotient
  EXPECT_EQ(explained(zeros, crossing), 2e-8);  // nothing known of the smallest divisor
  EXPECT_EQ(explained(zeros, zeros), 2e-8);
}

TEST(Propagation, SmallResultsOfLogarithmsAndBoundedFunctionsAmplify) {
  const Item x = TensorOf({4}, 1.1, 0.9, 1, 2);
  const Item y = TensorOf({4}, 0.01, -0.01, 0, 0.02);  // root mean square 0.01
  const std::vector<InputError> operands{{&x, 1e-6}};
  const Propagation log = PropagationTo(y, "Torch.log.0.forward", operands);
  EXPECT_NEAR(log.from_inputs, 1e-4, 1e-12);
  const Propagation tanh = PropagationTo(y, "Torch.tanh.0.forward", operands);
  EXPECT_NEAR(tanh.own_factor, 100, 1e-9);
  EXPECT_EQ(tanh.from_inputs, 1e-6);
  EXPECT_EQ(PropagationTo(x, "Torch.log.0.forward", operands).amplification, 1);
  EXPECT_EQ(PropagationTo(TensorOf({4}, 0, 0, 0, 0), "Torch.tanh.0.forward", operands).own_factor,
            1);
}

TEST(Propagation, SolutionsAmplifyByTheConditionThatTheyShow) {
  const Item a = TensorOf({4, 4}, 10, -10, 0, 20);
  const Item b = TensorOf({4}, 1, -1, 0, 2);
  const Item x = TensorOf({4}, 10, -10, 0, 15);
  const std::vector<InputError> operands{{&a, 0}, {&b, 1e-7}};
  EXPECT_NEAR(PropagationTo(x, "Torch.linalg.solve.0.forward", operands).amplification, 150, 1e-9);
  const std::vector<InputError> turned{{&b, 1e-7}, {&a, 0}};
  EXPECT_NEAR(PropagationTo(x, "Torch.cholesky_solve.0.forward", turned).amplification, 3000, 1e-9);
}

TEST(Propagation, MeanNearZeroAmplifies) {
  const Item x = TensorOf({100}, 1, -1, 0, 10);  // root mean square 1
  const Item y = TensorOf({1}, 0.001, 0.001, 0.001, 0.001);
  const std::vector<InputError> operands{{&x, 1e-6}};
  EXPECT_NEAR(PropagationTo(y, "Torch.mean.0.forward", operands).amplification, 100, 1e-6);
}

TEST(Propagation, NormalisationOfALargeMeanAmplifies) {
  // Mean 10, deviation 1.
  const Item x = TensorOf({100}, 12, 8, 10, std::sqrt(101.0 * 100));
  const std::vector<InputError> operands{{&x, 1e-6}};
  const Item y = TensorOf({100}, 2, -2, 0, 10);
  EXPECT_NEAR(PropagationTo(y, "Functional.layer_norm.0.forward", operands).amplification,
              std::sqrt(101.0), 1e-6);
}

TEST(Propagation, MaskedSoftmaxLooksAtTheLargestArgument) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Item x = TensorOf({8}, 20, -infinity, -infinity, infinity);
  const Item y = TensorOf({8}, 1, 0, 0.125, 1);
  const std::vector<InputError> operands{{&x, 1e-6}};
  EXPECT_EQ(PropagationTo(y, "Functional.softmax.0.forward", operands).amplification, 20);
}

TEST(Propagation, MaskedArgumentsMakeTheRelativeErrorOfSoftmaxSmall) {
  const Item x = TensorOf({100}, 2, -102, -50, 500);  // root mean square 50, half of them masked
  const Item y = TensorOf({100}, 0.5, 0, 0.1, 1);
  const std::vector<InputError> operands{{&x, 1e-6}};
  const Propagation found = PropagationTo(y, "Functional.softmax.0.forward", operands);
  EXPECT_NEAR(found.from_inputs, 5e-5, 1e-12);
  EXPECT_EQ(found.amplification, 2);  // the call's own rounding has nothing to do with the mask
  const Item filled = TensorOf({100}, 2, -1e9, -5e8, 7e9);
  const std::vector<InputError> hidden{{&filled, 1e-6}};
  EXPECT_NEAR(PropagationTo(y, "Functional.softmax.0.forward", hidden).from_inputs, 2e-6, 1e-12);
}

TEST(Propagation, FilledTensorsHideErrors) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(IsFilled(TensorOf({8}, 3, -3.4e38, -1e38, infinity)));
  EXPECT_TRUE(IsFilled(TensorOf({8}, 3, -infinity, -infinity, infinity)));
  EXPECT_TRUE(IsFilled(TensorOf({8}, 3, -1e4, -1e3, 2e4)));
  EXPECT_FALSE(IsFilled(TensorOf({8}, 3, -5, 0, 8)));
  EXPECT_FALSE(IsFilled(TensorOf({8}, 1e6, -1e6, 0, 2e6)));
}

TEST(Propagation, DivisorsNearZeroAmplify) {
  const Item a = TensorOf({100}, 1, -1, 0, 5);
  const Item b = TensorOf({100}, 1, 1e-4, 0.3, 5);  // root mean square 0.5
  const Item wide = TensorOf({100}, 1, -1, 0, 5);
  const Item y = TensorOf({100}, 1, -1, 0, 10);
  const std::vector<InputError> by_small{{&a, 1e-7}, {&b, 1e-7}};
  // 0.5 / sqrt(1e-4 * 1)
  EXPECT_NEAR(PropagationTo(y, "Tensor.__truediv__.0.forward", by_small).amplification, 50, 1e-9);
  EXPECT_NEAR(PropagationTo(y, "Torch.div.0.forward", by_small).from_inputs, 5e-6, 1e-12);
  const std::vector<InputError> only{{&b, 1e-7}};
  EXPECT_NEAR(PropagationTo(y, "Torch.rsqrt.0.forward", only).amplification, 50, 1e-9);
  EXPECT_EQ(PropagationTo(y, "Tensor.__truediv__.0.forward", only).amplification,
            1);  // by a number
  const std::vector<InputError> across{{&a, 1e-7}, {&wide, 1e-7}};
  EXPECT_EQ(PropagationTo(y, "Tensor.__truediv__.0.forward", across).amplification, 1);
}

TEST(Propagation, GradientsThatCancelLeaveNothingButRounding) {
  const Item gradient = TensorOf({100, 8}, 1, -1, 0, std::sqrt(800.0));  // root mean square 1
  const Item bias = TensorOf({8}, 1e-8, -1e-8, 0, 1e-8 * std::sqrt(8.0));
  const Item weight = TensorOf({8, 4}, 1e-8, -1e-8, 0, 1e-8 * std::sqrt(32.0));
  const std::vector<InputError> operands{{&gradient, 0}};
  const Propagation found = PropagationTo(bias, "Functional.linear.0.backward", operands);
  EXPECT_NEAR(found.cancellation, 1e9, 1);  // sqrt(100) * 1 / 1e-8
  EXPECT_EQ(found.amplification, 1e4);
  EXPECT_EQ(PropagationTo(weight, "Functional.linear.0.backward", operands).cancellation, 1);
  EXPECT_EQ(PropagationTo(bias, "Functional.gelu.0.backward", operands).cancellation, 1);
}

TEST(Propagation, OperandThatWasSpreadGetsASum) {
  const Item gradient = TensorOf({4, 12, 10}, 1, -1, 0, std::sqrt(480.0));
  const Item offset = TensorOf({12, 1}, 1e-8, -1e-8, 0, 1e-8 * std::sqrt(12.0));
  const Item one = TensorOf({1}, 1e-8, -1e-8, 0, 1e-8);
  const Item other = TensorOf({5, 10}, 1e-8, -1e-8, 0, 1e-8 * std::sqrt(50.0));
  const std::vector<InputError> operands{{&gradient, 0}};
  const auto found = [&](const Item& item, const char* name) {
    return PropagationTo(item, name, operands).cancellation;
  };
  EXPECT_NEAR(found(offset, "Tensor.__add__.0.backward"), std::sqrt(40.0) * 1e8, 10);
  EXPECT_NEAR(found(one, "Torch.add.0.backward"), std::sqrt(480.0) * 1e8, 10);
  EXPECT_EQ(found(other, "Torch.add.0.backward"), 1);  // not of a shape that is spread
  EXPECT_EQ(found(offset, "Functional.linear.0.backward"), 1);
  EXPECT_EQ(found(offset, "Torch.add.0.forward"), 1);
}

TEST(Propagation, NormOfOneNumberMayBeNegative) {
  const Item gradient = TensorOf({90}, 1, -1, 0, std::sqrt(90.0));
  const Item sum = TensorOf({}, -1e-8, -1e-8, -1e-8, -1e-8);
  const std::vector<InputError> operands{{&gradient, 0}};
  EXPECT_NEAR(PropagationTo(sum, "Tensor.__sub__.0.backward", operands).cancellation,
              std::sqrt(90.0) * 1e8, 1);
}

TEST(Propagation, OtherFillsStandForTheSame) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Item infinite = TensorOf({8}, 3, -infinity, -infinity, infinity);
  const Item lowest = TensorOf({8}, 3, -3.4e38, -1e38, infinity);
  const Item sixteen = TensorOf({8}, 3, -65504, -3e4, 1e5);
  EXPECT_TRUE(AreOtherFills(infinite, lowest));
  EXPECT_TRUE(AreOtherFills(sixteen, infinite));
  EXPECT_FALSE(AreOtherFills(infinite, infinite));                                  // the same
  EXPECT_FALSE(AreOtherFills(infinite, TensorOf({8}, infinity, -3, 1, infinity)));  // above
  EXPECT_FALSE(AreOtherFills(infinite, TensorOf({8}, 3, -5, 0, 8)));
  EXPECT_FALSE(AreOtherFills(sixteen, TensorOf({8}, 3, -32752, -1e4, 5e4)));  // large values
  EXPECT_FALSE(AreOtherFills(infinite, TensorOf({8}, std::nan(""), std::nan(""), 0, 0)));
  Item number, other;
  number.statistics[0] = -infinity;
  other.statistics[0] = -1e9;
  EXPECT_TRUE(AreOtherFills(number, other));
  other.statistics[0] = 1e9;
  EXPECT_FALSE(AreOtherFills(number, other));
  EXPECT_FALSE(AreOtherFills(number, infinite));
}

TEST(Propagation, StaysFiniteWithoutUsableStatistics) {
  const double nan = std::nan("");
  const Item x = TensorOf({8}, nan, nan, nan, nan);
  Item empty = TensorOf({0}, 0, 0, 0, 0);
  for (const std::string_view call :
       {"Torch.mean.0.forward", "Tensor.__add__.0.forward", "Torch.matmul.0.forward",
        "Functional.layer_norm.0.forward", "Torch.exp.0.forward", "Torch.mean.0.backward"}) {
    const std::vector<InputError> operands{{&x, 1e-6}, {&empty, 0}};
    const Propagation found = PropagationTo(empty, call, operands);
    EXPECT_EQ(found.from_inputs, 1e-6) << call;
    EXPECT_EQ(found.amplification, 1) << call;
    EXPECT_EQ(PropagationTo(empty, call, {}).from_inputs, 0) << call;
  }
}

}  // namespace

}  // namespace plumbline::measure
