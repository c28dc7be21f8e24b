#include "ranks/compare_ranks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/text/json.h"
#include "compare/carried_values.h"
#include "report/html_report.h"
#include "verdict/comparison_for_test.h"

namespace plumbline::ranks {

namespace {

using plumbline::testing::TestDirectory;

// Ranks with one collective; rank 1 of a wrong step gives another result before it.
std::string WriteStep(const std::string& directory, int ranks, bool wrong) {
  const std::string group =
      R"({"type": "torch.ProcessGroup", "group_ranks": [0, 1, 2], "group_id": "a"})";
  for (int rank = 0; rank < ranks; ++rank) {
    const double own = wrong && rank == 1 ? 9 : 3;
    const double sum = wrong ? 15 : 9;
    DumpForTest(fmt::format("{}/rank{}", directory, rank))
        .Add("Torch.exp.0.forward", TensorJson(1, 1, 2), TensorJson(own, own, 2 * own))
        .Add("Distributed.all_reduce.0.forward", TensorJson(own, own, 2 * own) + ", " + group,
             TensorJson(sum, sum, 2 * sum))
        .Add("Torch.abs.0.forward", TensorJson(sum, sum, 2 * sum), TensorJson(sum, sum, 2 * sum))
        .Write();
  }
  return directory;
}

class CompareRanksTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }
  CompareRanksOptions Options(const std::string& output) const {
    CompareRanksOptions options;
    options.compare.output_dir = Path(output);
    options.compare.formats = {ReportFormat::kCsv};
    options.compare.threads = 4;
    return options;
  }

  TestDirectory directory_;
};

TEST_F(CompareRanksTest, SmallestBudgetGivesTheSameReport) {
  const std::string golden = WriteStep(Path("golden"), 3, false);
  const std::string target = WriteStep(Path("target"), 3, true);
  std::vector<std::string> texts;
  for (const uint64_t budget : {uint64_t{1}, uint64_t{1} << 40}) {
    CompareRanksOptions options = Options(fmt::format("out{}", budget));
    options.memory_bytes = budget;
    const auto report = CompareRanks(target, golden, options);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->compared(), 3U);
    ASSERT_EQ(report->origins.size(), 1U);
    EXPECT_EQ(report->ranks[report->origins[0].rank].pair.rank(), 1);
    EXPECT_EQ(report->answer().name, "Torch.exp.0.forward");
    std::string text = RanksSummaryText(*report);
    texts.push_back(text.substr(0, text.find("file: ")));
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST_F(CompareRanksTest, OutcomeSurvivesStoring) {
  const std::string golden = WriteStep(Path("golden"), 3, false);
  const std::string target = WriteStep(Path("target"), 3, true);
  const auto report = CompareRanks(target, golden, Options("out"));
  ASSERT_TRUE(report) << report.error().message();
  for (const ComparedRank& rank : report->ranks) {
    const auto text = FormatOutcome(*rank.outcome);
    const auto read = ReadOutcome(std::string_view(text));
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(FormatOutcome(*read), text);
    EXPECT_EQ(ListOf(read->counts), ListOf(rank.outcome->counts));
    EXPECT_EQ(read->communication.size(), 1U);
    EXPECT_EQ(read->communication.NameOf(0), "Distributed.all_reduce.0.forward");
    EXPECT_EQ(read->groups[0].ranks, (std::vector<int64_t>{0, 1, 2}));
    EXPECT_EQ(read->wrong.size(), rank.outcome->wrong.size());
  }
}

TEST_F(CompareRanksTest, DamagedOutcomeIsRefused) {
  const std::string golden = WriteStep(Path("golden"), 1, false);
  const auto report = CompareRanks(golden, golden, Options("out"));
  ASSERT_TRUE(report);
  const std::string text = FormatOutcome(*report->ranks[0].outcome);
  for (size_t size = 0; size + 2 < text.size(); size += 7) {
    const auto read = ReadOutcome(std::string_view(text).substr(0, size));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code(), ErrorCode::kCorrupt);
  }
  // Every member is needed, and every index must be one.
  for (const std::string key :
       {"mode", "counts", "fails_on", "communication", "answer_line", "sent", "wrong_arrivals"}) {
    std::string other = text;
    other.replace(other.find("\"" + key + "\""), key.size() + 2, "\"x\"");
    EXPECT_FALSE(ReadOutcome(std::string_view(other))) << key;
  }
  std::string other = text;
  const size_t at = other.find("\"group\":");
  other.replace(at, std::string("\"group\":0").size(), "\"group\":7");
  EXPECT_FALSE(ReadOutcome(std::string_view(other)));
}

TEST_F(CompareRanksTest, ReceiverWithoutSenderIsNoted) {
  const std::string golden = WriteStep(Path("golden"), 3, false);
  const std::string target = WriteStep(Path("target"), 3, true);
  std::filesystem::remove_all(target + "/rank1");
  const auto report = CompareRanks(target, golden, Options("out"));
  ASSERT_TRUE(report);
  ASSERT_FALSE(report->origins.empty());
  EXPECT_EQ(report->answer().name, "Distributed.all_reduce.0.forward");
  ASSERT_EQ(report->notes.size(), 1U);
  EXPECT_NE(report->notes[0].find("without their counterparts"), std::string::npos);
  EXPECT_FALSE(report->is_complete());
}

// One rank: a collective from 3 to `sum`, then a division of `divided`.
std::string WriteSum(const std::string& directory, const std::string& collective, double sum,
                     double divided, const std::string& option = {}) {
  const auto tensor = [](double value) { return TensorJson(value, -value * value / 4, 3 * value); };
  DumpForTest(directory + "/rank0")
      .Add("Torch.exp.0.forward", TensorJson(1, 0, 2), tensor(3))
      .Add("Distributed." + collective + ".0.forward", tensor(3) + option, tensor(sum))
      .Add("Tensor.div_.0.forward", tensor(divided), tensor(divided / 2))
      .Write();
  return directory;
}

class RankCauseTest : public CompareRanksTest {
 protected:
  // Name and cause of the first wrong call; both empty if there is none.
  std::pair<std::string, std::string> Answer(const std::string& target, const std::string& golden) {
    const auto report = CompareRanks(target, golden, Options("out"));
    EXPECT_TRUE(report) << report.error().message();
    if (!report || report->origins.empty()) return {};
    const auto& first = report->ranks[0].outcome->first_wrong_call;
    return {report->answer().name, first ? first->cause : ""};
  }
};

TEST_F(RankCauseTest, SumThatReturnsItsInputIsNotReduced) {
  const auto [name, cause] = Answer(WriteSum(Path("target"), "all_reduce", 3, 3),
                                    WriteSum(Path("golden"), "all_reduce", 9, 9));
  EXPECT_EQ(name, "Distributed.all_reduce.0.forward");
  EXPECT_EQ(cause, "not-reduced");
}

TEST_F(RankCauseTest, BroadcastThatReturnsItsInputIsNotApplied) {
  const auto [name, cause] = Answer(WriteSum(Path("target"), "broadcast", 3, 3),
                                    WriteSum(Path("golden"), "broadcast", 9, 9));
  EXPECT_EQ(name, "Distributed.broadcast.0.forward");
  EXPECT_EQ(cause, "not-applied");
}

TEST_F(RankCauseTest, ShareWhereTheSumIsDueIsNotReduced) {
  const auto [name, cause] = Answer(WriteSum(Path("target"), "all_reduce", 9, 3),
                                    WriteSum(Path("golden"), "all_reduce", 9, 9));
  EXPECT_EQ(name, "Tensor.div_.0.forward");
  EXPECT_EQ(cause, "not-reduced");
}

TEST_F(RankCauseTest, NaNWhereTheSumIsDueIsNonfinite) {
  const auto golden = WriteSum(Path("golden"), "all_reduce", 9, 9);
  const auto target = WriteSum(Path("target"), "all_reduce", std::nan(""), std::nan(""));
  const auto [name, cause] = Answer(target, golden);
  EXPECT_EQ(name, "Distributed.all_reduce.0.forward");
  EXPECT_EQ(cause, "nonfinite");
}

// The call is there on both sides: it is not missing.
TEST_F(RankCauseTest, ReductionOfAnotherFormIsStructure) {
  const auto [name, cause] =
      Answer(WriteSum(Path("target"), "all_reduce", 3.5, 3.5, ", " + TensorJson(3, 0, 3)),
             WriteSum(Path("golden"), "all_reduce", 9, 9));
  EXPECT_EQ(name, "Distributed.all_reduce.0.forward");
  EXPECT_EQ(cause, "structure");
}

TEST_F(RankCauseTest, ReductionWithAnArgumentThatGoldenLeavesOutIsArgument) {
  const auto [name, cause] =
      Answer(WriteSum(Path("target"), "all_reduce", 3.5, 3.5, R"(, {"type": "int", "value": 3})"),
             WriteSum(Path("golden"), "all_reduce", 9, 9));
  EXPECT_EQ(name, "Distributed.all_reduce.0.forward");
  EXPECT_EQ(cause, "argument");
}

// A step of two ranks that updates two parameters; rank 1 of a wrong one leaves the second out.
std::string WriteUpdates(const std::string& directory, bool wrong) {
  const auto parameter = [](double max) {
    std::string text = TensorJson(max, -0.5, 0.9);
    return text.replace(text.rfind("false"), 5, "true");
  };
  for (int rank = 0; rank < 2; ++rank) {
    DumpForTest side(fmt::format("{}/rank{}", directory, rank));
    side.Add("Torch.exp.0.forward", parameter(0.5) + "," + parameter(0.25), TensorJson(1, -1, 2))
        .Add("Tensor.add_.0.forward", parameter(0.5) + "," + TensorJson(0.3, -0.2, 0.6),
             parameter(0.53));
    if (!wrong || rank == 0) {
      side.Add("Tensor.add_.1.forward", parameter(0.25) + "," + TensorJson(0.2, -0.3, 0.5),
               parameter(0.27));
    }
    side.Write();
  }
  return directory;
}

TEST_F(RankCauseTest, AnUpdateThatGoldenAloneMakesStandsBehindTheCallsBeforeIt) {
  const auto report = CompareRanks(WriteUpdates(Path("target"), true),
                                   WriteUpdates(Path("golden"), false), Options("out"));
  ASSERT_TRUE(report) << report.error().message();
  ASSERT_EQ(report->origins.size(), 1U);
  EXPECT_EQ(report->answer().name, "Tensor.add_.1.forward");
  EXPECT_EQ(report->answer().place.index, 1U);
  EXPECT_TRUE(FailsOn(*report, {"broken"}).value());
}

}  // namespace

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
  compare::StepDirectories directories;
  EXPECT_TRUE(compare::StepsBefore(verdict::PlaceOfRank(Path("target/step2/rank0")),
                                   verdict::PlaceOfRank(Path("target/step1/rank0")), directories)
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

namespace {

// What one side's ranks hold: rank 1 takes a difference of large numbers, which shows the rounding
// of these many times over, and sends it to rank 0.
struct Values {
  double large = 1000;  // what rank 1 reads
  double made = 1;      // what comes of it and is sent
  double arrived = 1;   // on rank 0
  std::string maker{};  // the call of rank 0 that returns that, in place of the receiver
};

std::string Tensor(double max) { return TensorJson(max, -1, 1.5); }

std::string Write(const std::string& directory, const Values& values) {
  const std::string peer = ", " + ScalarJson("int", "0");
  DumpForTest(directory + "/rank1")
      .Add("Torch.sub.0.forward",
           TensorJson(values.large, -1000, 1500) + ", " + TensorJson(999, -1000, 1500),
           Tensor(values.made))
      .Add("Distributed.send.0.forward", Tensor(values.made) + peer, Tensor(values.made))
      .Write();
  DumpForTest rank0(directory + "/rank0");
  const std::string arrived = Tensor(values.arrived);
  if (values.maker.empty()) {
    rank0.Add("Distributed.recv.0.forward", "null, " + ScalarJson("int", "1"), arrived);
  } else {
    rank0.Add(values.maker, TensorJson(7, -7, 9), arrived);
    rank0.Add("Distributed.send.0.forward", arrived + ", " + ScalarJson("int", "1"), arrived);
  }
  rank0.Add("Torch.abs.0.forward", arrived, arrived).Write();
  return directory;
}

class SentValuesTest : public ::testing::Test {
 protected:
  // Rank and call, empty where none is wrong.
  std::string Answer(const Values& target, const Values& golden = {}) {
    Write(Path("golden"), golden);
    Write(Path("target"), target);
    return AnswerAgain();
  }

  [[nodiscard]] CompareRanksOptions Options() const {
    CompareRanksOptions options;
    options.compare.output_dir = Path("out");
    options.compare.formats = {ReportFormat::kCsv};
    return options;
  }

  std::string AnswerAgain() {
    const auto report = CompareRanks(Path("target"), Path("golden"), Options());
    if (!report) return report.error().message();
    if (report->origins.empty()) return {};
    const auto& rank = report->ranks[report->origins[0].rank];
    return fmt::format("{} {}", *rank.pair.rank(), report->answer().name);
  }

  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }
  size_t ResultFiles() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(Path("out"))) {
      count += entry.path().extension() == ".csv" ? 1 : 0;
    }
    return count;
  }

  plumbline::testing::TestDirectory directory_;
};

constexpr double kRounded = 1000.0002;

TEST_F(SentValuesTest, NoiseOfAnotherRankIsNoiseWhereItArrives) {
  EXPECT_EQ(Answer({kRounded, 1.0001, 1.0001}), "");
  EXPECT_EQ(ResultFiles(), 2U);  // of each rank, although one was judged twice
}

TEST_F(SentValuesTest, TakenOverSenderExplainsTheSame) {
  EXPECT_EQ(Answer({kRounded, 1.0001, 1.0001}), "");
  EXPECT_EQ(AnswerAgain(), "");
}

TEST_F(SentValuesTest, FaultOfTheSenderIsNamedThere) {
  EXPECT_EQ(Answer({1000, 1.0001, 1.0001}), "1 Torch.sub.0.forward");
}

TEST_F(SentValuesTest, WhatWasNotSentIsNamedWhereItArrives) {
  EXPECT_EQ(Answer({kRounded, 1.0001, 1.0002}), "0 Distributed.recv.0.forward");
}

TEST_F(SentValuesTest, WithoutTheSenderNothingIsExplained) {
  Write(Path("golden"), {});
  Write(Path("target"), {kRounded, 1.0001, 1.0001});
  std::filesystem::remove_all(Path("target") + "/rank1");
  EXPECT_EQ(AnswerAgain(), "0 Distributed.recv.0.forward");
}

// A rank answers for what it makes itself, whatever the same values are elsewhere.
TEST_F(SentValuesTest, OwnResultIsNotExplainedByAnotherRank) {
  EXPECT_EQ(Answer({kRounded, 1.0001, 1.0001, "Torch.abs.1.forward"},
                   {1000, 1, 1, "Torch.abs.1.forward"}),
            "0 Torch.abs.1.forward");
}

// What was found before another rank explained a value is not the answer when the comparison with
// that fails.
TEST_F(SentValuesTest, FailedSecondLookLeavesNoOutcome) {
  Write(Path("golden"), {});
  Write(Path("target"), {kRounded, 1.0001, 1.0001});
  static std::string lost;
  static SyscallTable real;
  lost = Path("target") + "/rank0/dump.json";
  real = Syscalls();
  // The recording is gone once the first results of its rank are there.
  Syscalls().renameat = [](int from, const char* source, int to, const char* target) {
    const bool is_result = std::string_view(target).find("rank0-rank0_") != std::string_view::npos;
    if (is_result) std::filesystem::remove(lost);
    return real.renameat(from, source, to, target);
  };
  CompareRanksOptions options = Options();
  options.compare.threads = 1;
  const auto report = CompareRanks(Path("target"), Path("golden"), options);
  Syscalls() = real;
  ASSERT_TRUE(report) << report.error().message();
  const ComparedRank& rank = report->ranks[0];
  EXPECT_EQ(rank.state, RankState::kFailed);
  EXPECT_FALSE(rank.outcome);
  EXPECT_FALSE(report->is_complete());
  EXPECT_TRUE(FailsOn(*report, {"unmatched"}).value());
  EXPECT_TRUE(report->origins.empty());
  EXPECT_EQ(ResultFiles(), 1U);
}

// The page takes so many bytes over all ranks, however often and with how many others each of them
// was looked at.
TEST_F(SentValuesTest, SecondLookKeepsItsShareOfThePage) {
  constexpr size_t kRanks = 200, kCalls = 3000;
  const size_t share = report::HtmlShare(kRanks);
  for (const bool is_target : {false, true}) {
    const std::string side = Path(is_target ? "target" : "golden");
    Write(side, is_target ? Values{kRounded, 1.0001, 1.0001} : Values{});
    for (size_t rank = 2; rank < kRanks; ++rank) {
      DumpForTest(fmt::format("{}/rank{}", side, rank))
          .Add("Torch.abs.0.forward", Tensor(1), Tensor(1))
          .Write();
    }
    const std::string arrived = Tensor(is_target ? 1.0001 : 1);
    DumpForTest many(side + "/rank0");
    many.Add("Distributed.recv.0.forward", "null, " + ScalarJson("int", "1"), arrived);
    for (size_t i = 0; i < kCalls; ++i) {
      // A number that packs badly.
      const std::string number = fmt::format("0.{}", (i + 1) * 7919 * 104729 * 1299709);
      many.Add(fmt::format("Torch.abs.{}.forward", i), arrived + ", " + ScalarJson("float", number),
               arrived);
    }
    many.Write();
  }
  CompareRanksOptions options = Options();
  options.compare.formats = {ReportFormat::kHtml};
  const auto report = CompareRanks(Path("target"), Path("golden"), options);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->origins.empty());  // rank 0 had its second look
  ASSERT_EQ(report->ranks.size(), kRanks);
  const Result<std::string> part = ReadFile(report->ranks[0].page_path);
  ASSERT_TRUE(part);
  EXPECT_GT(part->size(), share / 3);        // the rest is for what is not of rows
  EXPECT_LT(part->size(), share * 11 / 10);  // what its rows share stands behind them
}

}  // namespace

}  // namespace plumbline::ranks
