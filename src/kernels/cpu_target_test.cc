#include "kernels/cpu_target.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace plumbline::kernels {
namespace {

class TargetVariable : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* value = std::getenv("PLUMBLINE_CPU_TARGET");
    if (value != nullptr) saved_ = value;
  }
  void TearDown() override {
    if (saved_.empty()) {
      unsetenv("PLUMBLINE_CPU_TARGET");
    } else {
      setenv("PLUMBLINE_CPU_TARGET", saved_.c_str(), 1);
    }
  }

 private:
  std::string saved_;
};

TEST(CpuTarget, BaselineIsAlwaysUsableAndLast) {
  ASSERT_FALSE(UsableTargets().empty());
  EXPECT_EQ(UsableTargets().back(), CpuTarget::kBaseline);
}

TEST_F(TargetVariable, EveryUsableNameIsTaken) {
  for (const CpuTarget target : UsableTargets()) {
    setenv("PLUMBLINE_CPU_TARGET", std::string(CpuTargetName(target)).c_str(), 1);
    EXPECT_EQ(*ChooseTarget(), target);
  }
}

TEST_F(TargetVariable, UnsetMeansTheBest) {
  unsetenv("PLUMBLINE_CPU_TARGET");
  EXPECT_EQ(*ChooseTarget(), UsableTargets().front());
}

TEST_F(TargetVariable, UnknownNameIsInvalid) {
  setenv("PLUMBLINE_CPU_TARGET", "sse9", 1);
  ASSERT_FALSE(ChooseTarget());
  EXPECT_EQ(ChooseTarget().error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(ChooseTarget().error().message().find("sse9"), std::string::npos);
}

TEST_F(TargetVariable, TargetOfAnotherMachineIsInvalid) {
#if defined(__x86_64__)
  setenv("PLUMBLINE_CPU_TARGET", "neon", 1);
#else
  setenv("PLUMBLINE_CPU_TARGET", "avx2", 1);
#endif
  ASSERT_FALSE(ChooseTarget());
  EXPECT_EQ(ChooseTarget().error().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plumbline::kernels
