#include "overflow/first_overflow.h"

#include <gtest/gtest.h>

#include <random>

namespace plumbline {
namespace {

const BadValue kNan{.path = "output.0", .what = "NaN", .max = "nan", .min = "nan"};

RankScan Rank(int64_t rank) {
  RankScan scan;
  scan.directory = {.path = "", .name = "rank" + std::to_string(rank), .rank = rank};
  return scan;
}

CommCall& AddCollective(RankScan& scan, const std::string& api) {
  CommCall call;
  call.api = api;
  call.name = "Distributed." + api + "." + std::to_string(scan.calls.size()) + ".forward";
  call.place.index = scan.entries++;
  call.place.calls_before = scan.calls.size();
  return scan.calls.emplace_back(std::move(call));
}

CommCall& AddMessage(RankScan& scan, Transfer direction, int64_t peer, bool waits) {
  CommCall& call = AddCollective(scan, direction == Transfer::kSend ? "isend" : "irecv");
  call.transfers = {{.direction = direction, .peer = peer}};
  call.waits = waits;
  return call;
}

void AddSuspect(RankScan& scan, const std::string& name, uint64_t sub_layer = 0) {
  Suspect suspect;
  suspect.name = name;
  suspect.place.index = scan.entries++;
  suspect.place.sub_layer = sub_layer;
  suspect.place.calls_before = scan.calls.size();
  suspect.value = kNan;
  scan.suspects.push_back(std::move(suspect));
}

TEST(CommGraph, CollectivesHaveOneLayer) {
  std::vector<RankScan> scans{Rank(0), Rank(1)};
  // Rank 1 talks to itself first: its all_reduce is its second call.
  AddCollective(scans[1], "broadcast").group = 0;
  scans[1].groups.push_back({.id = "a", .ranks = {1}});
  AddCollective(scans[0], "all_reduce");
  AddCollective(scans[1], "all_reduce");
  AddCollective(scans[0], "all_gather");
  AddCollective(scans[1], "all_gather");
  const CommGraph graph = BuildCommGraph(scans);
  EXPECT_EQ(graph.layers[0], (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(graph.layers[1], (std::vector<uint64_t>{0, 1, 2}));
  EXPECT_EQ(graph.unpaired, 0u);
  EXPECT_EQ(graph.disordered, 0u);
}

TEST(CommGraph, RingOfPostedReceivesHasAnOrder) {
  // Every rank posts its receive, then sends: no order contradicts itself.
  std::vector<RankScan> scans{Rank(0), Rank(1)};
  for (int64_t rank = 0; rank < 2; ++rank) {
    AddMessage(scans[static_cast<size_t>(rank)], Transfer::kReceive, 1 - rank, false);
    AddMessage(scans[static_cast<size_t>(rank)], Transfer::kSend, 1 - rank, false);
  }
  const CommGraph graph = BuildCommGraph(scans);
  EXPECT_EQ(graph.disordered, 0u);
  EXPECT_EQ(graph.unpaired, 0u);
  EXPECT_EQ(graph.layers[0], (std::vector<uint64_t>{1, 1}));
}

TEST(CommGraph, ContradictoryOrderIsCountedAndEnds) {
  std::vector<RankScan> scans{Rank(0), Rank(1)};
  for (RankScan& scan : scans) {
    scan.groups = {{.id = "a", .ranks = {0, 1}}, {.id = "b", .ranks = {0, 1}}};
  }
  AddCollective(scans[0], "all_reduce").group = 0;
  AddCollective(scans[0], "all_reduce").group = 1;
  AddCollective(scans[1], "all_reduce").group = 1;
  AddCollective(scans[1], "all_reduce").group = 0;
  const CommGraph graph = BuildCommGraph(scans);
  EXPECT_GT(graph.disordered, 0u);
  EXPECT_EQ(graph.links.size(), 2u);
}

TEST(CommGraph, ReceiverIsNotBeforeItsSender) {
  std::vector<RankScan> scans{Rank(0), Rank(1)};
  AddMessage(scans[0], Transfer::kSend, 7, true);  // to a rank that is not in the dump
  AddMessage(scans[0], Transfer::kSend, 1, true);
  AddMessage(scans[1], Transfer::kReceive, 0, true);
  const CommGraph graph = BuildCommGraph(scans);
  EXPECT_EQ(graph.layers[1], (std::vector<uint64_t>{1}));
  EXPECT_EQ(graph.unpaired, 1u);
  EXPECT_EQ(graph.first_unpaired, (CommNode{0, 0}));
}

TEST(CommGraph, NoRanksAndNoCalls) {
  EXPECT_TRUE(BuildCommGraph({}).links.empty());
  const std::vector<RankScan> scans{Rank(0)};
  EXPECT_TRUE(BuildCommGraph(scans).links.empty());
  EXPECT_TRUE(FindFirstOverflow(scans).origins.empty());
}

TEST(FirstOverflow, TieGoesToTheLowerRank) {
  std::vector<RankScan> scans{Rank(0), Rank(1)};
  for (RankScan& scan : scans) AddCollective(scan, "all_reduce").bad_output = kNan;
  const OverflowAnalysis analysis = FindFirstOverflow(scans);
  ASSERT_EQ(analysis.origins.size(), 2u);
  EXPECT_EQ(analysis.origins[0].rank, 0u);
  EXPECT_EQ(analysis.reported, (std::vector<size_t>{0}));
}

TEST(FirstOverflow, EarlierLayerWinsAcrossRanks) {
  std::vector<RankScan> scans{Rank(0), Rank(1)};
  for (RankScan& scan : scans) AddCollective(scan, "all_reduce");
  AddSuspect(scans[1], "Torch.log.0.forward", 5);
  for (RankScan& scan : scans) AddCollective(scan, "all_reduce");
  AddSuspect(scans[0], "Torch.exp.0.forward");
  for (RankScan& scan : scans) AddCollective(scan, "all_reduce");
  const OverflowAnalysis analysis = FindFirstOverflow(scans);
  ASSERT_EQ(analysis.origins.size(), 2u);
  EXPECT_EQ(analysis.origins[0].name, "Torch.log.0.forward");
  EXPECT_EQ(analysis.origins[0].phase, OverflowPhase::kDuring);
}

TEST(FirstOverflow, BeforeCommunicationNamesOneOfEachRank) {
  std::vector<RankScan> scans{Rank(0), Rank(1)};
  AddSuspect(scans[0], "Torch.a.0.forward", 3);
  AddSuspect(scans[0], "Torch.b.0.forward", 4);
  AddSuspect(scans[1], "Torch.c.0.forward", 1);
  for (RankScan& scan : scans) AddCollective(scan, "all_reduce");
  const OverflowAnalysis analysis = FindFirstOverflow(scans);
  ASSERT_EQ(analysis.origins.size(), 3u);
  EXPECT_EQ(analysis.origins[0].name, "Torch.c.0.forward");
  ASSERT_EQ(analysis.reported.size(), 2u);
  EXPECT_EQ(analysis.origins[analysis.reported[0]].name, "Torch.a.0.forward");
}

TEST(FirstOverflow, UnseenReceiptExplainsTheInputsAfterIt) {
  std::vector<RankScan> scans{Rank(0), Rank(1)};
  AddSuspect(scans[0], "Torch.log.0.forward");
  AddMessage(scans[0], Transfer::kSend, 1, true).bad_input = kNan;
  AddMessage(scans[1], Transfer::kReceive, 0, false).has_output = false;
  AddSuspect(scans[1], "Torch.mul.0.forward");
  scans[1].suspects[0].reason = OverflowReason::kGiven;
  const OverflowAnalysis analysis = FindFirstOverflow(scans);
  ASSERT_EQ(analysis.origins.size(), 1u);
  EXPECT_EQ(analysis.origins[0].rank, 0u);
}

// Random traffic of four ranks with random damage: a fixed seed, fifty runs, one result.
TEST(FirstOverflow, FiftyRunsAreEqual) {
  std::mt19937 random(20240607);  // NOLINT: repeatable on purpose
  std::vector<RankScan> scans{Rank(0), Rank(1), Rank(2), Rank(3)};
  for (int round = 0; round < 200; ++round) {
    for (RankScan& scan : scans) {
      if (random() % 16 == 0) AddSuspect(scan, "Torch.log.0.forward", random() % 3);
      CommCall& call = AddCollective(scan, random() % 2 == 0 ? "all_reduce" : "all_gather");
      if (random() % 8 == 0) call.bad_input = kNan;
      if (random() % 4 == 0) call.bad_output = kNan;
    }
  }
  const OverflowAnalysis first = FindFirstOverflow(scans);
  ASSERT_FALSE(first.origins.empty());
  for (int run = 0; run < 50; ++run) {
    const OverflowAnalysis again = FindFirstOverflow(scans);
    ASSERT_EQ(again.origins.size(), first.origins.size());
    EXPECT_EQ(again.reported, first.reported);
    EXPECT_EQ(again.graph.layers, first.graph.layers);
    for (size_t i = 0; i < first.origins.size(); ++i) {
      EXPECT_EQ(again.origins[i].place.index, first.origins[i].place.index);
      EXPECT_EQ(again.origins[i].rank, first.origins[i].rank);
    }
  }
}

}  // namespace
}  // namespace plumbline
