#include "watch/gradients/gradient_probe.h"

#include <gtest/gtest.h>

#include "base/file/test_directory.h"

namespace plumbline::gradients {
namespace {

using plumbline::testing::TestDirectory;

std::vector<int64_t> StepsOf(StepCounter& counter, const std::vector<int>& optimizers,
                             std::string* ends = nullptr) {
  std::vector<int64_t> steps;
  for (const int optimizer : optimizers) {
    const StepCounter::Turn turn = counter.Next(static_cast<uintptr_t>(optimizer));
    steps.push_back(turn.step);
    if (ends != nullptr) *ends += turn.ends ? 'e' : '-';
  }
  return steps;
}

TEST(StepCounter, ByOptimizerEveryCallIsAStep) {
  StepCounter counter(false);
  counter.SetFirst(4);
  EXPECT_EQ(StepsOf(counter, {1, 2, 1}), (std::vector<int64_t>{4, 5, 6}));
  EXPECT_TRUE(counter.has_several());
}

TEST(StepCounter, AnIterationBeginsWithAnOptimizerThatHasStepped) {
  StepCounter counter(true);
  std::string ends;
  EXPECT_EQ(StepsOf(counter, {1, 2, 1, 2, 1, 1, 2, 3, 1, 2, 3}, &ends),
            (std::vector<int64_t>{0, 0, 1, 1, 2, 3, 3, 3, 4, 4, 4}));
  // The first iteration is over when the second one begins; so is one that an optimizer left out.
  EXPECT_EQ(ends, "---e-eee--e");
}

Config ProbeConfig(const std::string& path, GradLevel level) {
  Config config;
  config.task = Task::kGradProbe;
  config.dump_path = path;
  config.grad_probe.level = level;
  return config;
}

TensorView ViewOf(const std::vector<float>& values, const Shape& sizes,
                  const std::vector<int64_t>& strides) {
  return {DType::kFloat32, reinterpret_cast<const std::byte*>(values.data()), sizes, strides};
}

TEST(GradientProbe, AStepIsWrittenWithWhatWasTaken) {
  const TestDirectory directory;
  GradientProbe probe(ProbeConfig(directory.path(), GradLevel::kL2));
  probe.AddParameters(std::vector<std::string>{"a", "b", "a"});
  const std::vector<float> values = {-2, -1, 0, 0.5F, 1, 1.5F};
  const Shape sizes = {2, 3};
  const std::vector<int64_t> strides = {3, 1};
  EXPECT_EQ(probe.Begin(1, {}, std::nullopt), (std::vector<size_t>{0, 1, 2}));
  probe.Take(std::vector<Gradient>{{2, ViewOf(values, sizes, strides)}}, {});
  probe.End();
  probe.Close();
  const auto text = ReadFile(directory.Path("rank0/grad_summary_0.csv"));
  ASSERT_TRUE(text);
  // A name that is taken gets a number.
  EXPECT_EQ(*text,
            "\xEF\xBB\xBFparam_name,\"(-inf, -1]\",\"(-1, 0]\",\"(0, 1]\",\"(1, inf)\",=0,max,min,"
            "norm,shape\r\na.1,0.3333333333333333,0.16666666666666666,0.3333333333333333,"
            "0.16666666666666666,0.16666666666666666,1.5,-2.0,2.915475845336914,\"[2, 3]\"\r\n");
  const auto signs = ReadFile(directory.Path("rank0/step0/a.1.npy"));
  ASSERT_TRUE(signs);
  EXPECT_EQ(signs->substr(signs->size() - 6), std::string("\0\0\0\1\1\1", 6));
}

TEST(GradientProbe, AFullDirectoryEndsRecordingOnly) {
  const TestDirectory directory;
  ASSERT_TRUE(WriteFileAtomically(directory.Path("rank3"), "in the way", false));
  GradientProbe probe(ProbeConfig(directory.path(), GradLevel::kL1));
  probe.AddParameters(std::vector<std::string>{"a"});
  EXPECT_TRUE(probe.Begin(1, {}, 3).empty());
  probe.End();
  EXPECT_TRUE(probe.Begin(1, {}, 3).empty());
  EXPECT_EQ(probe.directory(), "");
}

TEST(GradientProbe, OnlyListedRanksRecord) {
  const TestDirectory directory;
  Config config = ProbeConfig(directory.path(), GradLevel::kL1);
  config.ranks = {1};
  GradientProbe probe(config);
  probe.AddParameters(std::vector<std::string>{"a"});
  EXPECT_TRUE(probe.Begin(1, {}, 0).empty());
  EXPECT_EQ(KindOf(directory.Path("rank0")), PathKind::kMissing);
}

}  // namespace
}  // namespace plumbline::gradients
