#include "pipeline/ranks/compare_ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <utility>

#include "base/test_directory.h"
#include "pipeline/dump_for_test.h"

namespace plumbline::pipeline {
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
    ASSERT_TRUE(text);
    const auto read = ReadOutcome(*text);
    ASSERT_TRUE(read) << *text;
    EXPECT_EQ(*FormatOutcome(*read), *text);
    EXPECT_EQ(ListOf(read->counts), ListOf(rank.outcome->counts));
    EXPECT_EQ(read->communication.size(), 1U);
    EXPECT_TRUE(read->communication[0].bad_output);
    EXPECT_EQ(read->groups[0].ranks, (std::vector<int64_t>{0, 1, 2}));
    EXPECT_EQ(read->wrong.size(), rank.outcome->wrong.size());
  }
}

TEST_F(CompareRanksTest, DamagedOutcomeIsRefused) {
  const std::string golden = WriteStep(Path("golden"), 1, false);
  const auto report = CompareRanks(golden, golden, Options("out"));
  ASSERT_TRUE(report);
  const std::string text = *FormatOutcome(*report->ranks[0].outcome);
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
    EXPECT_FALSE(ReadOutcome(other)) << key;
  }
  std::string other = text;
  const size_t at = other.find("\"group\": ");
  other.replace(at, std::string("\"group\": 0").size(), "\"group\": 7");
  EXPECT_FALSE(ReadOutcome(other));
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
}  // namespace plumbline::pipeline
