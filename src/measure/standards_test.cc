#include "measure/standards.h"

#include <gtest/gtest.h>

namespace plumbline::measure {
namespace {

TEST(Standards, EveryNameFormFindsItsClass) {
  // A table that is not sorted would lose names; these lie at its ends and in its middle.
  EXPECT_EQ(ClassOfApi("abs"), CallClass::kElementwise);
  EXPECT_EQ(ClassOfApi("linear"), CallClass::kProduct);
  EXPECT_EQ(ClassOfApi("multi_head_attention_forward"), CallClass::kProduct);
  EXPECT_EQ(ClassOfApi("view"), CallClass::kCopy);
  EXPECT_EQ(ClassOfApi("where"), CallClass::kCopy);
  EXPECT_EQ(ClassOfApi("view_as"), CallClass::kCopy);
  EXPECT_EQ(ClassOfApi("empty_like"), CallClass::kUninitialised);
  EXPECT_EQ(ClassOfApi("new_empty_strided"), CallClass::kUninitialised);
  EXPECT_EQ(ClassOfApi("__iadd__"), CallClass::kElementwise);
  EXPECT_EQ(ClassOfApi("__getitem__"), CallClass::kCopy);
  EXPECT_EQ(ClassOfApi("mul_"), CallClass::kElementwise);
  EXPECT_EQ(ClassOfApi("linalg.norm"), CallClass::kReduction);
  EXPECT_EQ(ClassOfApi("never_heard_of"), CallClass::kDefault);
}

TEST(Standards, CallNamesAreTakenApart) {
  EXPECT_EQ(ClassOfCall("Functional.linear.12.forward"), CallClass::kProduct);
  EXPECT_EQ(ClassOfCall("Torch.linalg.norm.0.backward"), CallClass::kReduction);
  EXPECT_EQ(ClassOfCall("Module.linear.Linear.forward.0"), CallClass::kDefault);
  EXPECT_EQ(ClassOfCall("nonsense"), CallClass::kDefault);
  EXPECT_EQ(ClassOfCall(""), CallClass::kDefault);
}

TEST(Standards, ReductionLengthOfProductsAndSums) {
  EXPECT_DOUBLE_EQ(ReductionLength(6 * 100, 100 * 7, 6 * 7), 100);  // [6,100] x [100,7]
  EXPECT_DOUBLE_EQ(ReductionLength(1000, 0, 1), 1000);
  EXPECT_DOUBLE_EQ(ReductionLength(0, 0, 10), 1);
  EXPECT_DOUBLE_EQ(ReductionLength(10, 10, 0), 1);
}

TEST(Standards, OwnErrorGrowsWithLengthByClass) {
  const double u = 1.0 / (1 << 24);
  EXPECT_DOUBLE_EQ(OwnError(CallClass::kElementwise, u, 1024), u);
  EXPECT_DOUBLE_EQ(OwnError(CallClass::kReduction, u, 1024), 11 * u);
  EXPECT_DOUBLE_EQ(OwnError(CallClass::kProduct, u, 1024), 33 * u);
  EXPECT_DOUBLE_EQ(OwnError(CallClass::kDefault, u, 1024), 33 * u);
  EXPECT_GT(OwnError(CallClass::kComposite, u, 1024), OwnError(CallClass::kDefault, u, 1024));
  EXPECT_EQ(OwnError(CallClass::kProduct, 0, 1024), 0);  // integers are exact
}

TEST(Standards, HalfPrecisionProductsSumInFloat32) {
  const double bfloat16 = 1.0 / (1 << 8);
  const double own = OwnError(CallClass::kProduct, bfloat16, 4096);
  EXPECT_GT(own, bfloat16);
  EXPECT_LT(own, 1.01 * bfloat16);
  EXPECT_LT(kNoiseFactor * own, 0.05);
}

TEST(Standards, NamesOfConvolutionsAndOfSums) {
  EXPECT_TRUE(IsConvolution("Functional.conv2d.0.forward"));
  EXPECT_TRUE(IsConvolution("Functional.conv_transpose2d.3.backward"));
  EXPECT_FALSE(IsConvolution("Functional.linear.0.forward"));
  EXPECT_FALSE(IsConvolution("Module.conv.Conv2d.forward.0"));
  EXPECT_TRUE(SumsGradients("Functional.linear.0.backward"));
  EXPECT_TRUE(SumsGradients("Functional.layer_norm.0.backward"));
  EXPECT_FALSE(SumsGradients("Functional.linear.0.forward"));
  EXPECT_FALSE(SumsGradients("Functional.gelu.0.backward"));
}

TEST(Standards, NoiseHasACeiling) {
  EXPECT_NEAR(LargestNoise(1.0 / (1 << 24)), 0.0078, 1e-4);  // float32
  EXPECT_DOUBLE_EQ(LargestNoise(1.0 / (1 << 8)), 0.1);       // bfloat16
  EXPECT_DOUBLE_EQ(LargestNoise(0.0625), 0.25);              // float8_e4m3fn
}

TEST(Standards, HowCallsMixValues) {
  EXPECT_EQ(MixingOfCall("Tensor.lerp_.0.forward"), Mixing::kSum);
  EXPECT_EQ(MixingOfCall("Tensor.__iadd__.0.forward"), Mixing::kSum);
  EXPECT_EQ(MixingOfCall("Tensor.mul_.3.forward"), Mixing::kFactors);
  EXPECT_EQ(MixingOfCall("Torch.div.0.forward"), Mixing::kQuotient);
  EXPECT_EQ(MixingOfCall("Tensor.addcmul_.0.forward"), Mixing::kAddedProduct);
  EXPECT_EQ(MixingOfCall("Tensor.addcdiv_.0.forward"), Mixing::kAddedQuotient);
  EXPECT_EQ(MixingOfCall("Torch.where.0.forward"), Mixing::kSelection);
  EXPECT_EQ(MixingOfCall("Tensor.copy_.0.forward"), Mixing::kSelection);
  EXPECT_EQ(MixingOfCall("Functional.conv2d.0.forward"), Mixing::kBias);
  EXPECT_EQ(MixingOfCall("Torch.matmul.0.forward"), Mixing::kNone);
  EXPECT_EQ(MixingOfCall("Tensor.mul_.3.backward"), Mixing::kNone);
  EXPECT_EQ(MixingOfCall("Module.add.Add.forward.0"), Mixing::kNone);
}

TEST(Standards, PrimitivesOfCellsAreKnownByTheirKernels) {
  EXPECT_EQ(ApiOfCall("Primitive.conv2d.Conv2D.0.forward"), "conv2d");
  EXPECT_EQ(MixingOfCall("Primitive.convolution.Conv2D.0.forward"), Mixing::kBias);
  EXPECT_TRUE(SumsGradients("Primitive.bias_add.BiasAdd.3.backward"));
  EXPECT_EQ(ApiOfCall("Torch.linalg.solve.0.forward"), "linalg.solve");
}

TEST(Standards, ShapeOnlyCalls) {
  for (const char* name : {"Torch.ones_like.0.forward", "Tensor.new_full.1.forward"}) {
    EXPECT_TRUE(ReadsShapeOnly(name)) << name;
  }
  for (const char* name : {"Torch.clamp.0.forward", "Torch.empty_like.0.forward", "loss"}) {
    EXPECT_FALSE(ReadsShapeOnly(name)) << name;
  }
}

}  // namespace
}  // namespace plumbline::measure
