#include "pipeline/culprit/culprit_text.h"

#include <gtest/gtest.h>

namespace plumbline::pipeline {
namespace {

TEST(NamesOfPasses, AreTurnedIntoEachOther) {
  EXPECT_EQ(ForwardNameOf("Torch.f.0.backward"), "Torch.f.0.forward");
  EXPECT_EQ(BackwardNameOf("Torch.f.0.forward"), "Torch.f.0.backward");
  EXPECT_EQ(BackwardNameOf("Module.a.A.forward.0"), "Module.a.A.backward.0");
  EXPECT_EQ(ForwardNameOf("Torch.f.0.forward"), "");
  EXPECT_EQ(BackwardNameOf("Torch.f.0.backward"), "");
}

}  // namespace
}  // namespace plumbline::pipeline
