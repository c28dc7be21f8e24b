#include "measure/residue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plumbline::measure {
namespace {

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

}  // namespace
}  // namespace plumbline::measure
