#include "view/merge/rank_groups.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plumbline::view {
namespace {

HintsByRank SentTo(const std::vector<int64_t>& next) {
  HintsByRank hints;
  for (size_t i = 0; i < next.size(); ++i) hints[static_cast<int64_t>(i)].next = next[i];
  return hints;
}

TEST(RankGroups, ChainsFollowTheFirstMessages) {
  EXPECT_EQ(TraceChains(SentTo({2, 3, 4, 5, 6, 7, 4, 5})),
            (RankGroups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(TraceChains(SentTo({1, 0})), (RankGroups{{0, 1}}));
  EXPECT_TRUE(TraceChains({}).empty());
}

TEST(RankGroups, RecordedGroupsWinOverArithmetic) {
  const ParallelLayout layout{4, 2, 2};
  std::vector<std::string> notes;
  // The ranks were placed in another way than --order says.
  EXPECT_EQ(*GroupsOf(SentTo({1, 0, 3, 2}), layout, ParallelDimension::kPipeline, notes),
            (RankGroups{{0, 1}, {2, 3}}));
  HintsByRank hints;
  for (const int64_t rank : {0, 1, 2, 3}) hints[rank].tensor_group = {rank % 2, rank % 2 + 2};
  EXPECT_EQ(*GroupsOf(hints, layout, ParallelDimension::kTensor, notes),
            (RankGroups{{0, 2}, {1, 3}}));
  EXPECT_TRUE(notes.empty());
}

TEST(RankGroups, GroupsOfAnotherSizeAreNotTaken) {
  const ParallelLayout layout{4, 2, 2};
  std::vector<std::string> notes;
  HintsByRank hints = SentTo({1, 2, 3, 0});
  EXPECT_EQ(*GroupsOf(hints, layout, ParallelDimension::kPipeline, notes),
            (RankGroups{{0, 2}, {1, 3}}));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0],
            "pipeline groups of 2 ranks are computed from --order tp-cp-ep-dp-pp: those that "
            "communicated, [0, 1, 2, 3], are not 2 to a group");
  // A rank that is in no group.
  notes.clear();
  hints.clear();
  hints[0].tensor_group = {0, 1};
  for (const int64_t rank : {1, 2, 3}) hints[rank];
  EXPECT_EQ(*GroupsOf(hints, layout, ParallelDimension::kTensor, notes),
            (RankGroups{{0, 1}, {2, 3}}));
  EXPECT_EQ(notes.size(), 1U);
}

TEST(RankGroups, JobsHoldEveryRankOnce) {
  const RankGroups tensor = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  const RankGroups pipeline = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  const std::vector<MergeJob> replicas = JobsOf({8, 2, 2}, tensor, pipeline);
  ASSERT_EQ(replicas.size(), 2U);
  EXPECT_EQ(replicas[1].pipelines, (RankGroups{{2, 6}, {3, 7}}));
  EXPECT_EQ(replicas[1].rank(), 2);
  EXPECT_EQ(replicas[1].ranks(), 4U);
  // The whole run is one.
  EXPECT_EQ(JobsOf({4, 2, 2}, {{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}).size(), 1U);
  // Tensor parallelism alone, pipelines alone.
  EXPECT_EQ(JobsOf({4, 2, 1}, {{0, 1}, {2, 3}}, {{0}, {1}, {2}, {3}})[1].pipelines,
            (RankGroups{{2}, {3}}));
  EXPECT_EQ(JobsOf({4, 1, 2}, {{0}, {1}, {2}, {3}}, {{0, 2}, {1, 3}})[1].pipelines,
            (RankGroups{{1, 3}}));
}

}  // namespace
}  // namespace plumbline::view
