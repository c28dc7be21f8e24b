#include "match/call_key.h"

#include <gtest/gtest.h>

#include "match/aten_names.h"

namespace plumbline::match {
namespace {

TEST(CallKey, CallNumbersAreFoundWhereverTheyStand) {
  EXPECT_EQ(WithoutCallNumber("Functional.linear.13.forward"), "Functional.linear.forward");
  EXPECT_EQ(WithoutCallNumber("Module.layers.1.fc.Linear.backward.3"),
            "Module.layers.1.fc.Linear.backward");
  EXPECT_EQ(WithoutCallNumber("Module.fc.Linear.parameters_grad"),
            "Module.fc.Linear.parameters_grad");
  EXPECT_EQ(WithoutCallNumber("Module.fc.Linear.parameters_grad.0"),
            "Module.fc.Linear.parameters_grad");
  EXPECT_EQ(WithoutCallNumber("Module.0.parameters_grad"), "Module.0.parameters_grad");
  EXPECT_EQ(WithoutCallNumber("x.0"), "x.0");
  EXPECT_EQ(WithoutCallNumber(""), "");
}

TEST(CallKey, WrappersAreLeftOutOfModulePathsOnly) {
  EXPECT_EQ(UnwrappedName("Module.module._orig_mod.fc.Linear.forward.0"),
            "Module.fc.Linear.forward.0");
  EXPECT_EQ(UnwrappedName("Module.layers.0._fsdp_wrapped_module.fc.FSDPLinear.backward.1"),
            "Module.layers.0.fc.Linear.backward.1");
  EXPECT_EQ(UnwrappedName("Cell.fc.Dense.parameters_grad"), "Module.fc.Dense.parameters_grad");
  EXPECT_EQ(UnwrappedName("Module.module.fc.Linear.parameters_grad.0"),
            "Module.fc.Linear.parameters_grad.0");
  EXPECT_EQ(UnwrappedName("Torch.module.0.forward"), "Torch.module.0.forward");
  EXPECT_EQ(UnwrappedName("Module.module.FSDP.forward.0"), "Module.FSDP.forward.0");
}

TEST(CallKey, KindsForgetWhoIsCalled) {
  EXPECT_EQ(KindName("Module.a.b.Linear.forward.0"), KindName("Module.c.Linear.forward.7"));
  EXPECT_NE(KindName("Module.a.Linear.forward.0"), KindName("Module.a.Linear.backward.0"));
  EXPECT_EQ(KindName("Tensor.__add__.3.forward"), KindName("Torch.add.0.forward"));
  EXPECT_EQ(KindName("Aten.add.Tensor.1.forward"), KindName("Tensor.add_.0.forward"));
  EXPECT_EQ(KindName("Aten.native_layer_norm.default.1.forward"),
            KindName("Functional.layer_norm.0.forward"));
  EXPECT_NE(KindName("Torch.add.0.forward"), KindName("Torch.sub.0.forward"));
}

TEST(CallKey, AtenNamesFollowTheTable) {
  EXPECT_EQ(TorchNameOfAten("_to_copy"), "to");
  EXPECT_EQ(TorchNameOfAten("mm"), "mm");
  EXPECT_EQ(TorchNameOfAten("zzz"), "zzz");
}

TEST(CallKey, DirectionIsTheLastOrLastButOneSegment) {
  EXPECT_TRUE(HasDirection("Torch.add.0.forward"));
  EXPECT_TRUE(HasDirection("Module.a.Linear.backward.0"));
  EXPECT_TRUE(HasDirection("Module.a.Linear.parameters_grad"));
  EXPECT_FALSE(HasDirection("x.0"));
  EXPECT_FALSE(HasDirection("Torch.forward.add.0.odd"));
}

TEST(CallKey, PartsOfItemsKnowBothSpellingsOfKeywords) {
  EXPECT_EQ(ItemPart("Torch.sum.0.forward.input.0", "Torch.sum.0.forward"), "input.0");
  EXPECT_EQ(ItemPart("elsewhere", "Torch.sum.0.forward"), std::nullopt);
  EXPECT_EQ(ItemPart("x.10", "x.1"), std::nullopt);
  EXPECT_EQ(ItemPart("x.1", "x.1"), "");
  EXPECT_TRUE(SamePart("kwargs.dim", "input.dim"));
  EXPECT_FALSE(SamePart("kwargs.dim", "input.keepdim"));
  EXPECT_FALSE(SamePart("output.0", "input.0"));
}

}  // namespace
}  // namespace plumbline::match
