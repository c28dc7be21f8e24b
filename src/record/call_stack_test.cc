#include "record/call_stack.h"

#include <gtest/gtest.h>

namespace plumbline {
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

}  // namespace
}  // namespace plumbline
