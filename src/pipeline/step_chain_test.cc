#include "pipeline/step_chain.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "base/test_directory.h"
#include "pipeline/dump_for_test.h"
#include "pipeline/ranks/compare_ranks.h"

namespace plumbline::pipeline {
namespace {

constexpr double kNoise = 1e-6;  // of a product: allowed there, too much for a weight by itself

// Two recordings of the same training, a directory for each step. One side of a step is a product,
// whose result and whose weight may be off.
class StepChainTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }

  // `weight`, `result`: relative errors.
  std::string Write(const std::string& side, int step, double weight = 0, double result = 0) {
    const auto tensor = [](double value, double error) {
      const double wrong = value * (1 + error);
      return TensorJson(wrong, -wrong, 2 * wrong, "[64, 64]");
    };
    return DumpForTest(Path(fmt::format("{}/step{}/rank0", side, step)))
        .Add("Torch.matmul.0.forward", tensor(3, 0) + ", " + tensor(2 + step, weight),
             tensor(7, result))
        .Add("Torch.abs.0.forward", tensor(7, result), tensor(7, result))
        .Write();
  }
  void WriteGolden() {
    for (const int step : {0, 1, 2}) Write("golden", step);
  }
  Comparison Compare(int step) {
    const auto path = [&](const char* side) {
      return Path(fmt::format("{}/step{}/rank0", side, step));
    };
    auto result = CompareRuns(path("target"), path("golden"));
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    return result ? std::move(*result) : Comparison();
  }
  static std::string Named(const Comparison& comparison) {
    return comparison.first_wrong_call ? comparison.first_wrong_call->name : "";
  }
  Result<RanksReport> CompareAll(const std::string& output, int threads = 4) {
    CompareRanksOptions options;
    options.compare.output_dir = Path(output);
    options.compare.formats = {ReportFormat::kCsv};
    options.compare.threads = threads;
    return CompareRanks(Path("target"), Path("golden"), options);
  }

  testing::TestDirectory directory_;
};

TEST_F(StepChainTest, NoiseOfAStepExplainsTheNext) {
  WriteGolden();
  Write("target", 0, 0, kNoise);
  Write("target", 1, kNoise, kNoise);
  EXPECT_EQ(Named(Compare(0)), "");
  const Comparison behind = Compare(1);
  EXPECT_EQ(Named(behind), "");
  std::filesystem::remove_all(Path("target/step0"));
  const Comparison alone = Compare(1);
  EXPECT_EQ(Named(alone), "Torch.matmul.0.forward");
  // Nothing of the earlier step is left in what is shown.
  ASSERT_EQ(behind.rows.size(), alone.rows.size());
  ASSERT_EQ(behind.calls.size(), alone.calls.size());
  EXPECT_EQ(behind.counts.calls, alone.counts.calls);
  EXPECT_TRUE(behind.earlier.empty());
  for (size_t i = 0; i < alone.rows.size(); ++i) {
    EXPECT_EQ(behind.rows[i].target->name.view(), alone.rows[i].target->name.view());
    EXPECT_EQ(behind.rows[i].call, alone.rows[i].call);
  }
  for (size_t i = 0; i < alone.calls.size(); ++i) {
    EXPECT_EQ(behind.calls[i].target_name, alone.calls[i].target_name);
    EXPECT_EQ(behind.calls[i].first_row, alone.calls[i].first_row);
  }
}

TEST_F(StepChainTest, MoreThanNoiseIsNamed) {
  WriteGolden();
  Write("target", 0, 0, kNoise);
  Write("target", 1, 1e-3, kNoise);
  const Comparison comparison = Compare(1);
  ASSERT_EQ(Named(comparison), "Torch.matmul.0.forward");
  EXPECT_EQ(comparison.first_wrong_call->item, "Torch.matmul.0.forward.input.1");
}

TEST_F(StepChainTest, BehindAWrongStepNothingIsExplained) {
  WriteGolden();
  Write("target", 0, 0, 0.1);
  Write("target", 1, kNoise, kNoise);
  EXPECT_EQ(Named(Compare(1)), "Torch.matmul.0.forward");
}

TEST_F(StepChainTest, StepsMustFollowEachOther) {
  WriteGolden();
  Write("target", 0, 0, kNoise);
  Write("target", 2, kNoise, kNoise);
  EXPECT_EQ(Named(Compare(2)), "Torch.matmul.0.forward");
  Write("target", 1, kNoise, kNoise);
  EXPECT_EQ(Named(Compare(2)), "");
  std::ofstream(Path("target/step1/rank0/dump.json")) << "{";
  EXPECT_EQ(Named(Compare(2)), "Torch.matmul.0.forward");
}

TEST_F(StepChainTest, VariantsInOneDumpAreNoHistory) {
  Write("target", 0, 0, 0);
  Write("target", 1, kNoise, kNoise);
  Write("target", 2, 0, 0);
  StepDirectories directories;
  EXPECT_TRUE(StepsBefore(PlaceOfRank(Path("target/step2/rank0")),
                          PlaceOfRank(Path("target/step1/rank0")), directories)
                  .steps.empty());
}

TEST_F(StepChainTest, StepOfOneSideAloneIsTold) {
  WriteGolden();
  Write("target", 0, 0, kNoise);
  Write("target", 2, kNoise, kNoise);
  const Comparison gap = Compare(2);
  EXPECT_NE(Named(gap), "");
  EXPECT_EQ(gap.warnings, (std::vector<std::string>{
                              "only the golden has step 1: whether something was wrong there is "
                              "not known, and what is named here may have begun there"}));
  EXPECT_NE(SummaryText(gap).find("warning: only the golden has step 1"), std::string::npos);
  // A step without the rank's directory is none.
  std::filesystem::create_directories(Path("target/step1/rank1"));
  EXPECT_EQ(Compare(2).warnings, gap.warnings);
  // Nothing is named: nothing can have begun there.
  Write("target", 2, 0, 0);
  EXPECT_TRUE(Compare(2).warnings.empty());
  // Steps that neither side has were not asked for.
  std::filesystem::remove_all(Path("golden/step1"));
  std::filesystem::remove_all(Path("target/step1"));
  Write("target", 2, kNoise, kNoise);
  EXPECT_NE(Named(Compare(2)), "");
  EXPECT_TRUE(Compare(2).warnings.empty());
}

TEST_F(StepChainTest, StepThatCannotBeReadIsTold) {
  WriteGolden();
  Write("target", 0, 0, kNoise);
  Write("target", 1, kNoise, kNoise);
  Write("target", 2, kNoise, kNoise);
  std::ofstream(Path("golden/step1/rank0/dump.json")) << "{";
  const Comparison comparison = Compare(2);
  EXPECT_NE(Named(comparison), "");
  ASSERT_EQ(comparison.warnings.size(), 1U);
  EXPECT_TRUE(comparison.warnings[0].starts_with("step 1 cannot be compared, so what is named "));
  EXPECT_NE(comparison.warnings[0].find("golden/step1/rank0/dump.json"), std::string::npos);
  // Damage further back is a beginning of the chain.
  for (const int step : {0, 1, 2, 3}) Write("golden", step);
  Write("target", 3, kNoise, kNoise);
  std::filesystem::remove(Path("target/step0/rank0/dump.json"));
  Write("target", 1, 0, kNoise);
  EXPECT_EQ(Named(Compare(3)), "");
}

TEST_F(StepChainTest, WrongStepBeforeIsTold) {
  WriteGolden();
  Write("target", 0, 0, 0.1);
  Write("target", 1, kNoise, kNoise);
  Write("target", 2, 0.1, 0.1);
  EXPECT_EQ(Compare(2).warnings,
            (std::vector<std::string>{"step 0 is wrong already, and what is named here may follow "
                                      "from it: Torch.matmul.0.forward"}));
  // Over all steps each has its own line.
  const auto report = CompareAll("out");
  ASSERT_TRUE(report);
  for (const ComparedRank& rank : report->ranks) EXPECT_TRUE(rank.outcome->warnings.empty());
  // The last one alone has none of these lines.
  CompareRanksOptions options;
  options.compare.output_dir = Path("out");
  options.compare.formats = {ReportFormat::kCsv};
  options.filter.steps = {2};
  const auto alone = CompareRanks(Path("target"), Path("golden"), options);
  ASSERT_TRUE(alone);
  ASSERT_EQ(alone->ranks.size(), 1U);
  EXPECT_EQ(alone->ranks[0].outcome->warnings.size(), 1U);
}

TEST_F(StepChainTest, StepThatIsMissingIsToldOverAllSteps) {
  WriteGolden();
  Write("target", 0, 0, kNoise);
  Write("target", 2, kNoise, kNoise);
  for (const std::string state : {"compared", "taken over"}) {
    const auto report = CompareAll("out");
    ASSERT_TRUE(report);
    EXPECT_EQ(
        RanksAnswer(*report),
        "first wrong call: step 2 rank 0 Torch.matmul.0.forward (1 step missing on one side)");
    EXPECT_EQ(RankStateName(report->ranks[2].state), state);
    EXPECT_NE(RanksSummaryText(*report).find("warning: step 2 rank 0: only the golden has step 1"),
              std::string::npos);
  }
  Write("target", 1, kNoise, kNoise);
  const auto whole = CompareAll("out");
  ASSERT_TRUE(whole);
  EXPECT_EQ(RanksAnswer(*whole), "no wrong call in 3 steps");
}

TEST_F(StepChainTest, AllStepsAtOnceAreJudgedAlike) {
  WriteGolden();
  Write("target", 0, 0, kNoise);
  Write("target", 1, kNoise, kNoise);
  Write("target", 2, kNoise, kNoise);
  for (const int threads : {1, 8}) {
    const auto report = CompareAll(fmt::format("out{}", threads), threads);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->compared(), 3U);
    EXPECT_TRUE(report->origins.empty());
  }
}

TEST_F(StepChainTest, AnAnswerIsTakenOverWhileTheStepsBeforeAreTheSame) {
  WriteGolden();
  Write("target", 0, 0, kNoise);
  Write("target", 1, kNoise, kNoise);
  Write("target", 2, kNoise, kNoise);
  ASSERT_TRUE(CompareAll("out"));
  const auto again = CompareAll("out");
  ASSERT_TRUE(again);
  for (const ComparedRank& rank : again->ranks) EXPECT_EQ(rank.state, RankState::kTakenOver);
  Write("target", 0, 0, 0.1);
  const auto changed = CompareAll("out");
  ASSERT_TRUE(changed);
  for (const ComparedRank& rank : changed->ranks) {
    EXPECT_EQ(rank.state, RankState::kCompared);
    ASSERT_TRUE(rank.outcome->first_wrong_call);
  }
  // A step that is compared again needs those before it, which are taken over.
  Write("target", 0, 0, kNoise);
  ASSERT_TRUE(CompareAll("out"));
  Write("target", 2, kNoise, 2 * kNoise);
  const auto last = CompareAll("out");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->ranks[1].state, RankState::kTakenOver);
  EXPECT_EQ(last->ranks[2].state, RankState::kCompared);
  EXPECT_FALSE(last->ranks[2].outcome->first_wrong_call);
}

}  // namespace
}  // namespace plumbline::pipeline
