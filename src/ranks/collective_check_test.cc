#include "ranks/collective_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/file/test_directory.h"
#include "ranks/compare_ranks.h"
#include "verdict/comparison_for_test.h"

namespace plumbline::ranks {

namespace {

using plumbline::testing::TestDirectory;
using Dumps = std::vector<DumpForTest>;

const std::string kWorld =
    R"({"type": "torch.ProcessGroup", "group_ranks": [0, 1, 2], "group_id": "w"})";

std::string Numbers(double max, double min = 0, const std::string& extra = {}) {
  return TensorJson(max, min, max + 1, "[4]", extra);
}
std::string NanNumbers() {
  return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": NaN, )"
         R"("Min": NaN, "Mean": NaN, "Norm": NaN, "requires_grad": false})";
}

class CollectiveCheckTest : public ::testing::Test {
 protected:
  Dumps Ranks(int count) const {
    Dumps dumps;
    for (int rank = 0; rank < count; ++rank) dumps.emplace_back(PathOf(rank));
    return dumps;
  }
  std::string PathOf(int rank) const { return fmt::format("{}/rank{}", directory_.path(), rank); }

  CollectiveReport Check(const Dumps& dumps, size_t first = 0) const {
    std::vector<load::RankDirectory> ranks;
    for (size_t rank = 0; rank < dumps.size(); ++rank) {
      const std::string path = dumps[rank].Write();
      if (rank < first) continue;
      ranks.push_back({path, fmt::format("rank{}", rank), static_cast<int64_t>(rank)});
    }
    CollectiveReport report;
    report.side = "the target";
    CheckCollectives(ranks, std::nullopt, report);
    return report;
  }

  // One call of all ranks, whose positional arguments after it are `outputs` of the rank.
  CollectiveReport CheckOne(const std::string& api, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs) const {
    Dumps dumps = Ranks(static_cast<int>(outputs.size()));
    for (size_t rank = 0; rank < outputs.size(); ++rank) {
      dumps[rank].Add(fmt::format("Distributed.{}.0.forward", api), inputs[rank], outputs[rank]);
    }
    return Check(dumps);
  }

  static void ExpectCounts(const CollectiveReport& report, uint64_t held, uint64_t violated,
                           uint64_t not_judged) {
    EXPECT_EQ(report.held, held) << CollectiveLines(report);
    EXPECT_EQ(report.violated, violated) << CollectiveLines(report);
    EXPECT_EQ(report.not_judged, not_judged) << CollectiveLines(report);
  }

  TestDirectory directory_;
};

TEST_F(CollectiveCheckTest, EqualOutputsHoldAndTheOddOneOutIsNamed) {
  const std::string in = Numbers(1) + ", " + kWorld;
  const auto good = CheckOne("all_reduce", {in, in, in}, {Numbers(3), Numbers(3), Numbers(3)});
  ExpectCounts(good, 1, 0, 0);
  const auto bad = CheckOne("all_reduce", {in, in, in}, {Numbers(7), Numbers(3), Numbers(3)});
  ExpectCounts(bad, 0, 1, 0);
  ASSERT_EQ(bad.violations.size(), 1U);
  const CollectiveViolation& wrong = bad.violations.front();
  EXPECT_EQ(wrong.ranks, std::vector<int64_t>{0});
  EXPECT_EQ(wrong.group, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(wrong.group_id, "w");
  EXPECT_EQ(wrong.name, "Distributed.all_reduce.0.forward");
  EXPECT_EQ(wrong.item, "output.0");
  EXPECT_EQ(wrong.statistic, "Max");
  EXPECT_EQ(wrong.expected, "3");
  EXPECT_EQ(wrong.got, "7");
  EXPECT_EQ(wrong.source, "rank 1 Distributed.all_reduce.0.forward output.0");
}

TEST_F(CollectiveCheckTest, EveryStatisticCounts) {
  const std::string in = Numbers(1) + ", " + kWorld;
  const auto check = [&](const std::string& a, const std::string& b) {
    const auto report = CheckOne("broadcast", {in, in, in}, {a, a, b});
    return report.violations.empty() ? std::string("none") : report.violations.front().statistic;
  };
  const std::string good = TensorJson(4, 1, 5);
  EXPECT_EQ(check(good, good), "none");
  EXPECT_EQ(check(good, TensorJson(4, 0, 5)), "Min");
  EXPECT_EQ(check(good, TensorJson(4, 1, 5.001)), "Norm");
  EXPECT_EQ(check(good, TensorJson(4, 1, 5.0000003)), "none");  // a sum in another order
  EXPECT_EQ(check(good, TensorJson(4, 1, 5, "[5]")), "element count");
  EXPECT_EQ(check(TensorJson(4, 1, 5, "[4]", R"(, "md5": "00000001")"),
                  TensorJson(4, 1, 5, "[4]", R"(, "md5": "00000002")")),
            "md5");
  EXPECT_EQ(check(good, NanNumbers()), "Max");
}

TEST_F(CollectiveCheckTest, WhatProvesNothingIsNotJudged) {
  const std::string in = Numbers(1) + ", " + kWorld;
  ExpectCounts(CheckOne("all_reduce", {in, in, in}, {NanNumbers(), NanNumbers(), NanNumbers()}), 0,
               0, 1);
  ExpectCounts(CheckOne("all_reduce", {in, in, in}, {"null", "null", "null"}), 0, 0, 1);
  // Of a group of three two are there.
  ExpectCounts(CheckOne("all_reduce", {in, in}, {Numbers(3), Numbers(5)}), 0, 0, 1);
  // One process; whether there were others is not known.
  ExpectCounts(CheckOne("all_reduce", {Numbers(1)}, {Numbers(1)}), 0, 0, 1);
  for (const std::string mark : {R"("waited": false)", R"("incomplete": true)"}) {
    Dumps dumps = Ranks(3);
    for (size_t rank = 0; rank < 3; ++rank) {
      dumps[rank].AddEntry(fmt::format(
          R"("Distributed.all_reduce.0.forward": {{"input_args": [{}], "input_kwargs": {{}}, )"
          R"("output": [{}], {}}})",
          in, Numbers(static_cast<double>(rank)), rank == 2 ? mark : R"("is_recompute": false)"));
    }
    ExpectCounts(Check(dumps), 0, 0, 1);
  }
}

TEST_F(CollectiveCheckTest, ADifferentNumberOfCallsLeavesThePairingOpen) {
  const std::string in = Numbers(1) + ", " + kWorld;
  Dumps dumps = Ranks(3);
  for (size_t rank = 0; rank < 3; ++rank) {
    for (int call = rank == 1 ? 1 : 0; call < 3; ++call) {
      dumps[rank].Add(fmt::format("Distributed.all_reduce.{}.forward", call), in, Numbers(call));
    }
    dumps[rank].Add("Distributed.broadcast.0.forward", in, Numbers(1));
  }
  const CollectiveReport report = Check(dumps);
  ExpectCounts(report, 1, 0, 3);
  ASSERT_EQ(report.reasons.size(), 1U);
  EXPECT_EQ(report.reasons[0].first, "rank 0 Distributed.all_reduce.0.forward");
}

TEST_F(CollectiveCheckTest, RanksThatWereLeftOutAreMissed) {
  Dumps dumps = Ranks(3);
  for (auto& dump : dumps) dump.Add("Distributed.all_reduce.0.forward", Numbers(1), Numbers(1));
  ExpectCounts(Check(dumps), 1, 0, 0);
  ExpectCounts(Check(dumps, 1), 0, 0, 1);
}

TEST_F(CollectiveCheckTest, ARankThatIsNotThereIsMissed) {
  std::vector<load::RankDirectory> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    DumpForTest dump(PathOf(rank));
    dump.Add("Distributed.all_reduce.0.forward", Numbers(1), Numbers(1));
    ranks.push_back({dump.Write(), fmt::format("rank{}", 2 * rank), 2 * rank});
  }
  CollectiveReport report;
  CheckCollectives(ranks, std::nullopt, report);
  ExpectCounts(report, 0, 0, 1);
  // A list with a tensor of each of three ranks, in the recording of two.
  const std::string three = fmt::format("[{0}, {0}, {0}]", Numbers(2));
  ExpectCounts(CheckOne("all_gather", {three, three}, {three, three}), 0, 0, 1);
}

TEST_F(CollectiveCheckTest, CallsOfProcessesOutsideOfTheGroupAreNone) {
  Dumps dumps = Ranks(3);
  const std::string entry = R"("Distributed.all_reduce.0.forward": {{"input_args": [{0}], )"
                            R"("input_kwargs": {{"group": {1}}}, "output": [{0}]}})";
  const std::string group =
      R"({"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "g"})";
  const std::string outside = R"({"type": "int", "value": -100})";
  for (int rank = 0; rank < 3; ++rank) {
    DumpForTest& dump = dumps[static_cast<size_t>(rank)];
    dump.AddEntry(fmt::format(fmt::runtime(entry), Numbers(rank < 2 ? 1 : 5),
                              rank < 2 ? group : outside));
    dump.Add("Distributed.all_reduce.1.forward", Numbers(3), Numbers(3));
  }
  ExpectCounts(Check(dumps), 2, 0, 0);
}

TEST_F(CollectiveCheckTest, AsynchronousCallsOfOtherRecorders) {
  for (const bool is_ours : {false, true}) {
    Dumps dumps = Ranks(2);
    for (auto& dump : dumps) {
      dump.AddEntry(fmt::format(
          R"("Distributed.all_reduce.0.forward": {{"input_args": [{0}], "input_kwargs": )"
          R"({{"async_op": {{"type": "bool", "value": true}}}}, "output": [{0}]}})",
          Numbers(2)));
    }
    for (int rank = 0; rank < 2; ++rank) {
      if (is_ours) std::ofstream(PathOf(rank) + "/.run") << "{}\n";
    }
    ExpectCounts(Check(dumps), is_ours ? 1 : 0, 0, is_ours ? 0 : 1);
  }
}

TEST_F(CollectiveCheckTest, SlicesDiffer) {
  const std::string in = "null, " + Numbers(8);
  const auto check = [&](const std::string& a, const std::string& b) {
    return CheckOne("reduce_scatter_tensor", {in, in}, {a, b});
  };
  ExpectCounts(check(Numbers(2), Numbers(3)), 1, 0, 0);
  ExpectCounts(check(Numbers(2, 2), Numbers(2, 2)), 0, 0, 1);  // zeros and the like
  ExpectCounts(check(Numbers(3), Numbers(3)), 0, 0, 1);  // four elements tell too little
  const std::string many = TensorJson(3, 0, 4, "[64]");
  const auto bad = check(many, many);
  ExpectCounts(bad, 0, 1, 0);
  EXPECT_EQ(bad.violations[0].ranks, std::vector<int64_t>{1});
  // Equal parts went in.
  const std::string list = fmt::format("null, [{0}, {0}]", Numbers(1));
  ExpectCounts(CheckOne("reduce_scatter", {list, list}, {Numbers(2), Numbers(2)}), 0, 0, 1);
}

// All ranks have the same wrong numbers, or most of them: what was given says which are right.
TEST_F(CollectiveCheckTest, EveryRankHasWhatTheSourceOfABroadcastGave) {
  const std::string in = Numbers(1) + ", " + ScalarJson("int", "1") + ", " + kWorld;
  const auto check = [&](double a, double b, double c) {
    return CheckOne("broadcast", {Numbers(5) + in.substr(Numbers(1).size()), in, in},
                    {Numbers(a), Numbers(b), Numbers(c)});
  };
  ExpectCounts(check(1, 1, 1), 1, 0, 0);
  const auto all = check(7, 7, 7);
  ExpectCounts(all, 0, 1, 0);
  EXPECT_EQ(all.violations[0].ranks, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(all.violations[0].rule, "every rank has what its source gave");
  EXPECT_EQ(all.violations[0].source, "rank 1 Distributed.broadcast.0.forward input_args.0");
  EXPECT_EQ(all.violations[0].expected, "1");
  EXPECT_EQ(check(7, 1, 7).violations[0].ranks, (std::vector<int64_t>{0, 2}));
}

TEST_F(CollectiveCheckTest, EveryPartOfAGatherIsWhatItsRankGave) {
  const auto check = [&](const std::string& out, const std::string& first = Numbers(1)) {
    std::vector<std::string> in;
    for (const double own : {1.0, 2.0, 3.0}) {
      in.push_back(fmt::format("null, {}, {}", own == 1 ? first : Numbers(own), kWorld));
    }
    return CheckOne("all_gather", in, {out, out, out});
  };
  const auto list = [](double a, double b, double c) {
    return fmt::format("[{}, {}, {}]", Numbers(a), Numbers(b), Numbers(c));
  };
  ExpectCounts(check(list(1, 2, 3)), 1, 0, 0);
  const auto bad = check(list(1, 3, 2));
  ExpectCounts(bad, 0, 1, 0);
  EXPECT_EQ(bad.violations[0].source, "rank 1 Distributed.all_gather.0.forward input_args.1");
  EXPECT_EQ(bad.violations[0].item, "output.0.1");
  EXPECT_EQ(bad.violations[0].ranks, (std::vector<int64_t>{0, 1, 2}));
  // What was given tells nothing, or is of another form: the outputs alone are held together.
  ExpectCounts(check(list(7, 2, 3), NanNumbers()), 0, 1, 0);
  ExpectCounts(check(list(7, 2, 3), "null"), 1, 0, 0);
  ExpectCounts(check(list(7, 2, 3), TensorJson(1, 0, 2, "[5]")), 1, 0, 0);
  // Whose a part is, is not known.
  Dumps dumps = Ranks(3);
  for (size_t rank = 0; rank < 3; ++rank) {
    dumps[rank].Add("Distributed.all_gather.0.forward",
                    fmt::format(R"(null, {}, {{"type": "torch.ProcessGroup", "group_ranks": )"
                                R"([2, 1, 0], "group_id": "w"}})",
                                Numbers(static_cast<double>(rank))),
                    list(2, 1, 0));
  }
  ExpectCounts(Check(dumps), 1, 0, 0);
}

TEST_F(CollectiveCheckTest, OneTensorOfAllRanksHasWhatAllOfThemGave) {
  const auto check = [&](const std::string& first, const std::string& out) {
    return CheckOne("all_gather_into_tensor",
                    {"null, " + first, "null, " + TensorJson(4, -1, 5)}, {out, out});
  };
  const std::string first = TensorJson(4, 0, 5);
  const double norm = std::sqrt(50.0);
  ExpectCounts(check(first, TensorJson(4, -1, norm, "[8]")), 1, 0, 0);
  for (const auto& [out, statistic] :
       {std::pair(TensorJson(4, 0, norm, "[8]"), "Min"), {TensorJson(4, -1, 7, "[8]"), "Norm"},
        {TensorJson(0, -1, norm, "[8]"), "Max"}}) {
    const auto bad = check(first, out);
    ExpectCounts(bad, 0, 1, 0);
    EXPECT_EQ(bad.violations[0].statistic, statistic);
    EXPECT_TRUE(bad.violations[0].ranks.empty());
  }
  // A norm that overflows, nothing recorded: only the outputs are held together.
  const std::string out = TensorJson(4, 0, norm, "[8]");
  const std::string infinite = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": )"
                               R"([4], "Max": 4, "Min": 0, "Mean": 1, "Norm": Infinity})";
  ExpectCounts(check(infinite, out), 1, 0, 0);
  ExpectCounts(check("null", out), 1, 0, 0);
}

TEST_F(CollectiveCheckTest, EachRankHasWhatWasScatteredToIt) {
  const auto check = [&](const std::string& given, double a, double b) {
    const std::string from = ", " + ScalarJson("int", "0");
    return CheckOne("scatter", {"null, " + given + from, "null, null" + from},
                    {Numbers(a), Numbers(b)});
  };
  const std::string list = fmt::format("[{}, {}]", Numbers(1), Numbers(2));
  ExpectCounts(check(list, 1, 2), 1, 0, 0);
  const auto bad = check(list, 2, 1);
  ExpectCounts(bad, 0, 1, 0);
  EXPECT_EQ(bad.violations[0].ranks, std::vector<int64_t>{0});
  EXPECT_EQ(bad.violations[0].source, "rank 0 Distributed.scatter.0.forward input_args.1.0");
  ExpectCounts(check("null", 2, 1), 0, 0, 1);
  ExpectCounts(check(fmt::format("[{}, {}]", NanNumbers(), NanNumbers()), 1, 2), 0, 1, 0);
}

TEST_F(CollectiveCheckTest, GroupsWithTheSameMembersAreToldApartByTheirNames) {
  const auto group = [](const std::string& name) {
    return fmt::format(R"({{"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": )"
                       R"("g"{}}})",
                       name.empty() ? "" : fmt::format(R"(, "group_name": "{}")", name));
  };
  for (const bool has_names : {true, false}) {
    Dumps dumps = Ranks(2);
    for (size_t rank = 0; rank < 2; ++rank) {
      for (size_t call = 0; call < 2; ++call) {
        const bool is_first = call == rank;  // in another order on each rank
        const std::string named = !has_names ? "" : is_first ? "1" : "2";
        dumps[rank].Add(fmt::format("Distributed.all_reduce.{}.forward", call),
                        Numbers(1) + ", " + group(named), Numbers(is_first ? 5 : 9));
      }
      // The group of all has the name "0", named or not.
      dumps[rank].Add("Distributed.all_reduce.2.forward",
                      Numbers(1) + (rank == 0 && has_names ? ", " + group("0") : ""), Numbers(3));
    }
    const auto report = Check(dumps);
    ExpectCounts(report, has_names ? 3 : 1, has_names ? 0 : 2, 0);
    ASSERT_EQ(report.orders.size(), has_names ? 1U : 0U);
    if (!has_names) continue;
    EXPECT_EQ(report.orders[0],
              "groups of ranks 0,1 with the same members: rank 0 Distributed.all_reduce.0.forward "
              "is of group 1, rank 1 Distributed.all_reduce.0.forward of group 2");
    EXPECT_NE(CollectiveLines(report).find("started in another order: groups"), std::string::npos);
  }
}

TEST_F(CollectiveCheckTest, CallsThatAreStillInAJournalAreNotNone) {
  Dumps dumps = Ranks(2);
  const auto check = [&] {
    std::vector<load::RankDirectory> ranks;
    for (int64_t rank = 0; rank < 2; ++rank) {
      ranks.push_back({PathOf(static_cast<int>(rank)), fmt::format("rank{}", rank), rank});
    }
    CollectiveReport report;
    CheckCollectives(ranks, std::nullopt, report);
    return CollectiveLines(report);
  };
  for (auto& dump : dumps) dump.Write();
  EXPECT_EQ(check(), "collectives of : none were recorded\n");
  const std::string journal = PathOf(1) + "/.dump.journal";
  std::ofstream(journal) << "journal";
  std::filesystem::last_write_time(
      journal, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_NE(check().find("the recording goes on in a journal beside it. Run `plumb recover"),
            std::string::npos);
}

TEST_F(CollectiveCheckTest, PartsGoWhereTheyWereAddressed) {
  const auto lists = [](double a, double b) {
    return fmt::format("[{}, {}]", Numbers(a), Numbers(b));
  };
  const std::vector<std::string> in = {"null, " + lists(1, 2), "null, " + lists(3, 4)};
  ExpectCounts(CheckOne("all_to_all", in, {lists(1, 3), lists(2, 4)}), 1, 0, 0);
  const auto bad = CheckOne("all_to_all", in, {lists(1, 3), lists(4, 2)});
  ExpectCounts(bad, 0, 1, 0);
  EXPECT_EQ(bad.violations[0].source, "rank 0 Distributed.all_to_all.0.forward input_args.1.1");
  EXPECT_EQ(bad.violations[0].item, "output.0.0");
}

TEST_F(CollectiveCheckTest, PartsOfOneTensorAreAllThereTogether) {
  const std::vector<std::string> in = {"null, " + TensorJson(4, 0, 5),
                                       "null, " + TensorJson(2, -1, 3)};
  // The same eight numbers, dealt out anew: means 1 and 0.5, norms 5 and 3.
  ExpectCounts(CheckOne("all_to_all_single", in, {TensorJson(2, 0, 3), TensorJson(4, -1, 5)}), 1, 0,
               0);
  const auto bad = CheckOne("all_to_all_single", in, {TensorJson(4, 0, 5), TensorJson(2, 0, 3)});
  ExpectCounts(bad, 0, 1, 0);
  EXPECT_EQ(bad.violations[0].statistic, "Min");
  EXPECT_EQ(bad.violations[0].expected, "-1.0");
  EXPECT_TRUE(bad.violations[0].ranks.empty());
}

TEST_F(CollectiveCheckTest, MessagesArriveAsTheyWereSent) {
  for (const double arrived : {2.0, 9.0}) {
    Dumps dumps = Ranks(2);
    dumps[0].Add("Distributed.isend.0.forward", Numbers(2) + ", " + ScalarJson("int", "1"), "null");
    dumps[1].Add("Distributed.recv.0.forward", "null, " + ScalarJson("int", "0"), Numbers(arrived));
    const CollectiveReport report = Check(dumps);
    ExpectCounts(report, arrived == 2 ? 1 : 0, arrived == 2 ? 0 : 1, 0);
    if (arrived == 2) continue;
    EXPECT_EQ(report.violations[0].source, "rank 0 Distributed.isend.0.forward input_args.0");
    EXPECT_EQ(report.violations[0].ranks, std::vector<int64_t>{1});
  }
  // A message that one end alone recorded says nothing about which of the others belong together.
  Dumps dumps = Ranks(2);
  for (int call = 0; call < 2; ++call) {
    dumps[0].Add(fmt::format("Distributed.send.{}.forward", call),
                 Numbers(call) + ", " + ScalarJson("int", "1"), "null");
  }
  dumps[1].Add("Distributed.recv.0.forward", "null, " + ScalarJson("int", "0"), Numbers(1));
  ExpectCounts(Check(dumps), 0, 0, 2);
}

TEST_F(CollectiveCheckTest, DamagedRankIsNotedAndItsCallsAreNotJudged) {
  Dumps dumps = Ranks(2);
  for (auto& dump : dumps) dump.Add("Distributed.all_reduce.0.forward", Numbers(1), Numbers(1));
  std::vector<load::RankDirectory> ranks;
  for (int64_t rank = 0; rank < 2; ++rank) {
    ranks.push_back({dumps[static_cast<size_t>(rank)].Write(), fmt::format("rank{}", rank), rank});
  }
  std::ofstream(ranks[1].path + "/dump.json") << "[]";
  CollectiveReport report;
  CheckCollectives(ranks, std::nullopt, report);
  ExpectCounts(report, 0, 0, 1);
  EXPECT_EQ(report.notes.size(), 1U);
}

TEST_F(CollectiveCheckTest, ComparisonTellsOfBothSidesAndKeepsItsAnswer) {
  const std::string in = Numbers(1) + ", " + kWorld;
  for (const std::string side : {"target", "golden"}) {
    for (int rank = 0; rank < 3; ++rank) {
      DumpForTest(fmt::format("{}/{}/rank{}", directory_.path(), side, rank))
          .Add("Distributed.all_reduce.0.forward", in, Numbers(rank == 2 ? 7 : 3))
          .Write();
    }
  }
  CompareRanksOptions options;
  options.compare.output_dir.clear();
  options.check_collectives = true;
  const std::string target = directory_.path() + "/target", golden = directory_.path() + "/golden";
  const auto report = CompareRanks(target, golden, options);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(RanksAnswer(*report), "no wrong call in 3 ranks");
  ASSERT_EQ(report->collectives.size(), 2U);
  EXPECT_EQ(report->collectives[1].violated, 1U);
  const std::string text = RanksSummaryText(*report);
  EXPECT_NE(text.find("collectives of golden: 0 as they should be, 1 violated"), text.npos) << text;
  EXPECT_NE(RanksSummaryJson(*report)->find(R"("violated": 1)"), std::string::npos);
  EXPECT_TRUE(*FailsOn(*report, {"any"}));
  EXPECT_FALSE(*FailsOn(*report, {"wrong", "unjudged"}));
  const auto same = CompareRanks(target, target, options);
  ASSERT_TRUE(same);
  ASSERT_EQ(same->collectives.size(), 1U);
  EXPECT_EQ(same->collectives[0].side, "both sides");
}

}  // namespace

}  // namespace plumbline::ranks
