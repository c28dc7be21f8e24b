#include "view/merge/parallel_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/text/text_parts.h"

namespace plumbline::view {
namespace {

// By going through all ranks: those whose other indices agree are a group.
RankGroups ByBruteForce(const ParallelLayout& layout, std::string_view wanted) {
  std::map<std::string_view, int64_t> sizes = {
      {"tp", layout.tensor},
      {"pp", layout.pipeline},
      {"cp", 1},
      {"dp", layout.ranks / (layout.tensor * layout.pipeline)}};
  std::map<std::vector<int64_t>, std::vector<int64_t>> groups;  // others, slowest first
  for (int64_t rank = 0; rank < layout.ranks; ++rank) {
    std::vector<int64_t> others;
    int64_t rest = rank;
    for (const std::string_view dimension : SplitAt(layout.order, '-')) {
      if (dimension == "ep") continue;
      if (dimension != wanted) others.insert(others.begin(), rest % sizes.at(dimension));
      rest /= sizes.at(dimension);
    }
    groups[others].push_back(rank);
  }
  RankGroups list;
  for (auto& [others, group] : groups) list.push_back(std::move(group));
  return list;
}

TEST(ParallelLayout, GroupsAreThoseOfBruteForce) {
  for (const auto& [tensor, pipeline, data] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                                  {2, 1, 1},
                                                                                  {2, 2, 1},
                                                                                  {2, 2, 2},
                                                                                  {4, 2, 3},
                                                                                  {3, 4, 2},
                                                                                  {1, 8, 2},
                                                                                  {8, 1, 4}}) {
    std::vector<std::string> names = {"cp", "dp", "pp", "tp"};
    do {
      ParallelLayout layout{tensor * pipeline * data, tensor, pipeline, 1, ""};
      for (const std::string& name : names)
        layout.order += (layout.order.empty() ? "" : "-") + name;
      EXPECT_EQ(*GroupsByArithmetic(layout, ParallelDimension::kTensor), ByBruteForce(layout, "tp"))
          << layout.order;
      EXPECT_EQ(*GroupsByArithmetic(layout, ParallelDimension::kPipeline),
                ByBruteForce(layout, "pp"))
          << layout.order;
    } while (std::ranges::next_permutation(names).found);
  }
}

TEST(ParallelLayout, MegatronsOrder) {
  const ParallelLayout layout{8, 2, 2, 1};
  EXPECT_EQ(*GroupsByArithmetic(layout, ParallelDimension::kTensor),
            (RankGroups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(*GroupsByArithmetic(layout, ParallelDimension::kPipeline),
            (RankGroups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(ParallelLayout, OrderMustNameWhatIsLargerThanOne) {
  ParallelLayout layout{4, 2, 2, 1, "tp-dp"};
  EXPECT_EQ(GroupsByArithmetic(layout, ParallelDimension::kTensor).error().message(),
            "--order: tp-dp does not name pp, whose size is 2");
  layout.order = "tp-ep-pp-dp";
  EXPECT_EQ(GroupsByArithmetic(layout, ParallelDimension::kTensor).error().message(),
            "--order: ep must stand beside dp (got tp-ep-pp-dp)");
  layout.order = "pp-tp";  // dp is 1
  EXPECT_EQ(*GroupsByArithmetic(layout, ParallelDimension::kPipeline),
            (RankGroups{{0, 1}, {2, 3}}));
}

std::string ProblemOf(const ParallelLayout& layout, size_t found) {
  const Status status = CheckLayout(layout, found, "golden");
  return status ? "" : status.error().message();
}

TEST(ParallelLayout, ChecksInTheirOrder) {
  EXPECT_EQ(ProblemOf({8, 3, 0}, 4),
            "golden: --rank_size: expected 4, the number of recorded ranks, got 8");
  EXPECT_EQ(ProblemOf({8, 3, 0}, 8), "golden: --pp: expected a number above 0, got 0");
  EXPECT_EQ(ProblemOf({8, 16, 1}, 8), "golden: --tp: expected at most --rank_size 8, got 16");
  EXPECT_EQ(ProblemOf({8, 3, 1}, 8), "golden: --rank_size: 8 is not divisible by --tp 3");
  EXPECT_EQ(ProblemOf({8, 1, 5}, 8), "golden: --rank_size: 8 is not divisible by --pp 5");
  EXPECT_EQ(ProblemOf({8, 4, 4}, 8), "golden: --tp 4 times --pp 4 is more than --rank_size 8");
  EXPECT_EQ(ProblemOf({12, 4, 2}, 12),
            "golden: --rank_size: 12 is not divisible by --tp 4 times --pp 2");
  EXPECT_EQ(ProblemOf({8, 2, 1, 2}, 8), "golden: --vpp: 2 needs --pp 2 or more, got --pp 1");
  EXPECT_EQ(ProblemOf({8, 2, 2, 1, "TP-pp"}, 8),
            "golden: --order: expected lower-case letters and \"-\", such as tp-cp-ep-dp-pp, got "
            "\"TP-pp\"");
  EXPECT_EQ(ProblemOf({8, 2, 2, 2}, 8), "");
}

TEST(ParallelLayout, OneValueForOneRecordingTwoForAPair) {
  ParallelOptions options;
  options.rank_size = {8};
  options.tp = {2};
  EXPECT_EQ(LayoutsOf(options, false).error().message(),
            "--pp: is missing (merging ranks needs --rank_size, --tp and --pp together)");
  options.pp = {2};
  options.vpp = {2};
  EXPECT_EQ((*LayoutsOf(options, false))[0].chunks, 2);
  EXPECT_EQ(LayoutsOf(options, true).error().message(),
            "--tp: expected two values, for target and golden, got 1 value");
  options.rank_size = {8, 1};
  options.tp = options.pp = {2, 1};
  EXPECT_EQ((*LayoutsOf(options, true))[0].chunks, 1);  // one value says nothing of two sides
}

TEST(ParallelLayout, ContextAndExpertsHaveGroupsOfTheirOwn) {
  ParallelLayout layout{8, 2, 2, 1, "tp-cp-pp-dp"};
  layout.context = 2;
  EXPECT_EQ(*GroupsByArithmetic(layout, ParallelDimension::kPipeline),
            (RankGroups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  layout.order = kDefaultOrder;
  layout.pipeline = 1;
  layout.expert = 2;
  EXPECT_EQ(*GroupsByArithmetic(layout, ParallelDimension::kExpert),
            (RankGroups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

}  // namespace
}  // namespace plumbline::view
