#include "run_config/launch_script.h"

#include <gtest/gtest.h>

#include <string>

namespace plumbline::run_config {
namespace {

TEST(LaunchScript, VariablesStandForWhatWasAssigned) {
  LaunchArguments found;
  ASSERT_TRUE(
      ReadLaunchScript("LR=0.1\nALL=\"--lr $LR\"\ntorchrun train.py ${ALL} --fp16\n", found));
  EXPECT_EQ(found.ValuesOf("lr"), std::vector<std::string>{"\"0.1\""});
  EXPECT_EQ(found.ValuesOf("fp16"), std::vector<std::string>{"true"});
}

TEST(LaunchScript, VariablesThatGrowWithoutEndAreLeftInPlace) {
  std::string script = "A=" + std::string(60000, 'a') + "\n";
  for (int i = 0; i < 200; ++i) script += "echo $A\n";
  LaunchArguments found;
  ASSERT_TRUE(ReadLaunchScript(script + "python train.py --name $A --lr 1\n", found));
  EXPECT_EQ(found.ValuesOf("name"), std::vector<std::string>{"\"$A\""});
  EXPECT_EQ(found.ValuesOf("lr"), std::vector<std::string>{"\"1\""});
}

TEST(LaunchScript, WithoutLaunchIsAnError) {
  LaunchArguments found;
  EXPECT_FALSE(ReadLaunchScript("echo nothing\n", found));
  EXPECT_TRUE(found.empty());
}

}  // namespace
}  // namespace plumbline::run_config
