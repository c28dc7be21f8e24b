#include "pipeline/ranks/sent_values.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/json.h"
#include "base/test_directory.h"
#include "pipeline/dump_for_test.h"
#include "pipeline/ranks/compare_ranks.h"
#include "report/html_report.h"

namespace plumbline::pipeline {
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

// Rows of the part of a page over all ranks.
size_t RowsOfPage(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  EXPECT_TRUE(text);
  if (!text) return 0;
  json::Reader in(*text, 16);
  std::string_view key;
  size_t rows = 0;
  in.EnterObject();
  while (in.NextMember(key)) {
    if (key != "rows") {
      in.SkipValue();
      continue;
    }
    in.EnterArray();
    for (; in.NextElement(); ++rows) in.SkipValue();
  }
  EXPECT_FALSE(in.failed());
  return rows;
}

// The page holds so many rows over all ranks, however often and with how many others each of them
// was looked at.
TEST_F(SentValuesTest, SecondLookKeepsItsShareOfThePage) {
  constexpr size_t kRanks = 50, kCalls = 1500;
  const size_t share = report::kHtmlRows / kRanks;
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
      many.Add(fmt::format("Torch.abs.{}.forward", i), arrived, arrived);
    }
    many.Write();
  }
  CompareRanksOptions options = Options();
  options.compare.formats = {ReportFormat::kHtml};
  const auto report = CompareRanks(Path("target"), Path("golden"), options);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->origins.empty());  // rank 0 had its second look
  ASSERT_EQ(report->ranks.size(), kRanks);
  EXPECT_EQ(RowsOfPage(report->ranks[0].page_path), share);
}

}  // namespace
}  // namespace plumbline::pipeline
