#include "pipeline/culprit/next_config.h"

#include <gtest/gtest.h>

#include "base/test_directory.h"
#include "pipeline/comparison_for_test.h"
#include "pipeline/dump_for_test.h"

namespace plumbline::pipeline {
namespace {

const Item kX = TensorForTest({1, -1, 0.1, 2});
const Item kY = TensorForTest({3, -2, 0.5, 4});

std::string NextConfig(const Comparison& comparison) {
  const testing::TestDirectory directory;
  DumpForTest dump(directory.path() + "/step0/rank0");
  Result<plumbline::Run> run =
      plumbline::Run::Open(dump.Add("Torch.f.0.forward", TensorJson(1, -1, 2), "").Write());
  EXPECT_TRUE(run) << run.error().message();
  return NextConfigText(*run, comparison);
}

ComparisonForTest WithWrongRow(CompareMode mode, const char* reason) {
  ComparisonForTest calls(mode);
  calls.Pair("Torch.f.0.forward").Out(kX).Pair("Torch.f.0.backward").Out(kX, kY);
  calls.last_row().verdict = Verdict::kBroken;
  calls.last_row().reason = reason;
  return calls;
}

TEST(NextConfig, TensorsOfCallsThatDifferWhereNoneIsNamed) {
  const ComparisonForTest calls = WithWrongRow(CompareMode::kStatistics, "exceeds-noise");
  const std::string text = NextConfig(calls.get());
  EXPECT_NE(text.find(R"("task": "tensor")"), text.npos) << text;
  EXPECT_NE(text.find(R"("list": ["Torch.f.0.backward", "Torch.f.0.forward"])"), text.npos) << text;
}

TEST(NextConfig, CallsOfAnotherFormComeFirstWhereNoneIsNamed) {
  ComparisonForTest calls = WithWrongRow(CompareMode::kStatistics, "exceeds-noise");
  calls.Target("Torch.g.0.forward", "structure-differs").TargetOut(kX);
  const std::string text = NextConfig(calls.get());
  EXPECT_NE(text.find(R"("list": ["Torch.g.0.forward", "Torch.f.0.backward")"), text.npos) << text;
}

TEST(NextConfig, WhatDiffersIsNotCalledRight) {
  ComparisonForTest calls = WithWrongRow(CompareMode::kTensor, "exceeds-noise");
  Comparison comparison = calls.get();
  ASSERT_TRUE(WriteNextConfig("next.json", comparison));
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(comparison.warnings[0],
            "next.json: not written, the tensors of the calls that differ are recorded already");
}

TEST(NextConfig, NothingWhereNothingFinerOrNothingOwnDiffers) {
  EXPECT_EQ(NextConfig(WithWrongRow(CompareMode::kTensor, "exceeds-noise").get()), "");
  EXPECT_EQ(NextConfig(WithWrongRow(CompareMode::kStatistics, "inherited").get()), "");
  EXPECT_EQ(NextConfig(ComparisonForTest().Pair("Torch.f.0.forward").Out(kX).get()), "");
}

}  // namespace
}  // namespace plumbline::pipeline
