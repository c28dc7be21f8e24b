#include "pipeline/culprit/culprit_text.h"

#include <gtest/gtest.h>

namespace plumbline::pipeline {
namespace {

TEST(UserFrame, FramesOfPyTorchAndToolsAreSkipped) {
  EXPECT_EQ(
      UserFrame({"File /v/site-packages/msprobe/pytorch/wrap.py, line 58, in f, \n return g()",
                 "File /v/site-packages/torch/nn/modules/sparse.py, line 9, in forward, \n F()",
                 "File /home/u/model.py, line 28, in forward, \n x = self.norm(x)",
                 "File /home/u/train.py, line 3, in <module>, \n m(x)"}),
      "File /home/u/model.py, line 28, in forward: x = self.norm(x)");
}

TEST(UserFrame, LibrariesAboveTorchCountAsTheModel) {
  EXPECT_EQ(
      UserFrame({"File /v/site-packages/transformers/models/llama/modeling_llama.py, line 7, "
                 "in forward, \n y"}),
      "File /v/site-packages/transformers/models/llama/modeling_llama.py, line 7, in forward: "
      "y");
}

TEST(UserFrame, OnlyForeignFramesGiveTheInnermost) {
  EXPECT_EQ(UserFrame({"File /v/site-packages/torch/a.py, line 1, in f, \n x"}),
            "File /v/site-packages/torch/a.py, line 1, in f: x");
  EXPECT_EQ(UserFrame({}), "");
}

TEST(NamesOfPasses, AreTurnedIntoEachOther) {
  EXPECT_EQ(ForwardNameOf("Torch.f.0.backward"), "Torch.f.0.forward");
  EXPECT_EQ(BackwardNameOf("Torch.f.0.forward"), "Torch.f.0.backward");
  EXPECT_EQ(BackwardNameOf("Module.a.A.forward.0"), "Module.a.A.backward.0");
  EXPECT_EQ(ForwardNameOf("Torch.f.0.forward"), "");
  EXPECT_EQ(BackwardNameOf("Torch.f.0.backward"), "");
}

}  // namespace
}  // namespace plumbline::pipeline
