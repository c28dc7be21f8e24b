#include "view/merge/fold_tensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "view/merge/fold_pipeline.h"
#include "view/merge/trees_for_test.h"

namespace plumbline::view {
namespace {

using Lines = std::vector<std::string>;

const std::string kBlock = "Module.block.Block.forward.0";
const std::string kColumn = "Module.block.fc1.ColumnParallelLinear.forward.0";
const std::string kRow = "Module.block.fc2.RowParallelLinear.forward.0";

double NumberIn(const Statistic& statistic) { return std::get<double>(statistic); }

TensorRecord& TensorAt(Part& part, std::string_view place) {
  for (const PlacedValue& value : PlacedValuesOf(part)) {
    if (value.place == place && value.tensor != nullptr) return *value.tensor;
  }
  ADD_FAILURE() << part.name << " has no " << place;
  static TensorRecord none;
  return none;
}

TEST(MergedValues, FourFormulas) {
  TensorRecord a = TensorOf(Numbers{1, 1, 0, 3}), b = TensorOf(Numbers{2, 0, 1, 3});
  EXPECT_EQ(MergeTensors({"output.0", {&a, &b}}),
            (Lines{"Max of output.0: max(1.0, 2.0) = 2.0", "Min of output.0: min(1.0, 0.0) = 0.0",
                   "Mean of output.0: (0.0 + 1.0) / 2 = 0.5",
                   "Norm of output.0: (3.0 ** 2 + 3.0 ** 2) ** 0.5 = 4.242640687119285"}));
  EXPECT_EQ(NumberIn(a.max), 2);
  EXPECT_EQ(NumberIn(a.min), 0);
  EXPECT_EQ(NumberIn(a.mean), 0.5);
  EXPECT_EQ(NumberIn(a.norm), 4.242640687119285);
}

TEST(MergedValues, NaNOfAnyRankStaysAndWhatARankLacksGoes) {
  for (const bool first : {true, false}) {
    TensorRecord a = TensorOf(1), b = TensorOf(2);
    (first ? a : b).max = std::nan("");
    (first ? b : a).norm = std::monostate();
    EXPECT_EQ(MergeTensors({"input.0", {&a, &b}}).size(), 3U);
    EXPECT_TRUE(std::isnan(NumberIn(a.max)));
    EXPECT_TRUE(std::holds_alternative<std::monostate>(a.norm));
  }
}

TEST(MergedValues, SameWithinAMillionth) {
  TensorRecord a = TensorOf(1), b = TensorOf(1);
  b.mean = 1 + 9e-7;
  EXPECT_TRUE(AgreeIn(a, b, Sameness::kNearly));
  EXPECT_FALSE(AgreeIn(a, b, Sameness::kExact));
  b.mean = 1 + 2e-6;
  EXPECT_FALSE(AgreeIn(a, b, Sameness::kNearly));
  b = TensorOf(1);
  b.max = 1 + 9e-7;  // extremes are exact
  EXPECT_FALSE(AgreeIn(a, b, Sameness::kNearly));
  a.mean = b.mean = std::nan("");
  b.max = 1.0;
  EXPECT_TRUE(AgreeIn(a, b, Sameness::kNearly));
  b.mean = std::monostate();
  EXPECT_TRUE(AgreeIn(a, b, Sameness::kExact));
}

// Two ranks; the sum over the ranks has the maximum 7 on both.
std::vector<RankTree> TwoRanks(const std::string& reduce = "Distributed.all_reduce.0.forward",
                               const std::string& place = kRow) {
  std::vector<RankTree> trees;
  for (int rank = 0; rank < 2; ++rank) {
    const double at = rank;
    trees.push_back(TreeOf(rank, {{kBlock, "", 1, 7},
                                  {kColumn, kBlock, 1, 2 + at},
                                  {"Torch.matmul.0.forward", kColumn, 1, 2 + at},
                                  {"Functional.gelu.0.forward", kBlock, 2 + at, 3 + at},
                                  {kRow, kBlock, 3 + at, 7},
                                  {"Torch.matmul.1.forward", kRow, 3 + at, 5 + at},
                                  {reduce, place, 5 + at, 7},
                                  {"Tensor.add.0.forward", kBlock, 7, 8}}));
  }
  return trees;
}

void Fold(std::vector<RankTree>& trees, const RankGroups& groups = {{0, 1}}) {
  const PartialSums sums(trees, groups);
  FoldTensors(PointersTo(trees), groups, sums);
}

TEST(FoldTensors, PartsAreMergedAndCopiesStay) {
  std::vector<RankTree> trees = TwoRanks();
  Fold(trees);
  RankTree& main = trees[0];
  Part& column = *main.Find(kColumn);
  EXPECT_EQ(MaxAt(column, "input.0"), 1);
  EXPECT_EQ(MaxAt(column, "output.0"), 3);
  EXPECT_EQ(NumberIn(TensorAt(column, "output.0").mean), 2.5);
  EXPECT_EQ(column.merge.front(), "Merged over tensor parallel ranks [0, 1]");
  EXPECT_EQ(column.merge.size(), 6U);  // four formulas, and what the norm assumes
  EXPECT_EQ(MaxAt(*main.Find("Functional.gelu.0.forward"), "output.0"), 4);
  EXPECT_TRUE(main.Find("Tensor.add.0.forward")->merge.empty());
  EXPECT_TRUE(main.Find(kBlock)->merge.empty());
  EXPECT_TRUE(main.Find("Distributed.all_reduce.0.forward")->merge.empty());
}

TEST(FoldTensors, APartOfASumBecomesTheSum) {
  std::vector<RankTree> trees = TwoRanks();
  Fold(trees);
  Part& matmul = *trees[0].Find("Torch.matmul.1.forward");
  EXPECT_EQ(MaxAt(matmul, "input.0"), 4);
  EXPECT_EQ(MaxAt(matmul, "output.0"), 7);
  EXPECT_EQ(std::ranges::count(matmul.merge, "output.0: that of Distributed.all_reduce.0.forward"),
            1);
}

// Recorders put a reduction beside its layer, and copies before it are summands, too.
TEST(FoldTensors, ASummandIsKnownWhereverItsReductionStands) {
  for (const std::string& place : {kBlock, std::string()}) {
    std::vector<RankTree> trees = TwoRanks("Distributed.all_reduce.0.forward", place);
    for (RankTree& tree : trees) {
      Part& copy = tree.parts.emplace_back();
      copy.name = "Tensor.clone.0.forward";
      copy.type = NodeType::kApi;
      copy.rank = tree.rank;
      copy.members = tree.Find("Distributed.all_reduce.0.forward")->members;
      copy.members[1].second = copy.members[0].second;
      AttachAt(copy, *tree.Find(kRow), 1);
      tree.Index();
    }
    Fold(trees);
    EXPECT_EQ(MaxAt(*trees[0].Find("Torch.matmul.1.forward"), "output.0"), 7) << place;
    Part& copy = *trees[0].Find("Tensor.clone.0.forward");
    EXPECT_EQ(MaxAt(copy, "input.0"), 7);
    EXPECT_EQ(MaxAt(copy, "output.0"), 7);
    EXPECT_EQ(MaxAt(*trees[0].Find("Distributed.all_reduce.0.forward"), "input.0"), 5);
  }
}

// A loss that is a copy on every rank and summed up for its mean is no summand.
TEST(FoldTensors, CopiesThatAreSummedUpStay) {
  std::vector<RankTree> trees = TwoRanks();
  for (RankTree& tree : trees) {
    Part& reduce = *tree.Find("Distributed.all_reduce.0.forward");
    reduce.members[0].second.As<ValueList>()->front() = TensorOf(8);
    reduce.members[1].second.As<ValueList>()->front() = TensorOf(16);
  }
  Fold(trees);
  EXPECT_EQ(MaxAt(*trees[0].Find("Tensor.add.0.forward"), "output.0"), 8);
  EXPECT_EQ(MaxAt(*trees[0].Find("Torch.matmul.1.forward"), "output.0"), 6);
}

// Calls between modules of all ranks are in the first tree, those of others marked.
TEST(FoldTensors, CallsBetweenModulesAreMerged) {
  std::vector<RankTree> trees;
  for (int rank = 0; rank < 2; ++rank) {
    trees.push_back(TreeOf(rank, {{"Apis_Between_Modules.0", ""},
                                  {"Torch.tanh.0.forward", "Apis_Between_Modules.0", 1, 2.0 + rank},
                                  {"Torch.exp.0.forward", "Apis_Between_Modules.0", 1, 1}}));
  }
  FoldLooseCalls(PointersTo(trees));
  Fold(trees);
  EXPECT_EQ(MaxAt(*trees[0].Find("Torch.tanh.0.forward"), "output.0"), 3);
  EXPECT_EQ(MaxAt(*trees[0].Find("Torch.tanh_rank1.0.forward"), "output.0"), 3);
  EXPECT_TRUE(trees[0].Find("Torch.exp.0.forward")->merge.empty());
  EXPECT_TRUE(trees[0].Find("Torch.tanh_rank1.0.forward")->merge.empty());
}

// reduce_scatter(output, input) leaves each rank a part of the sum.
TEST(FoldTensors, PartsOfAScatteredSumAreMerged) {
  std::vector<RankTree> trees = TwoRanks("Distributed.reduce_scatter_tensor.0.forward");
  for (RankTree& tree : trees) {
    Part& reduce = *tree.Find("Distributed.reduce_scatter_tensor.0.forward");
    auto& inputs = *reduce.members[0].second.As<ValueList>();
    inputs.insert(inputs.begin(), TensorOf(0));
    reduce.members[1].second.As<ValueList>()->front() =
        TensorOf(7 + static_cast<double>(tree.rank));
  }
  Fold(trees);
  Part& matmul = *trees[0].Find("Torch.matmul.1.forward");
  EXPECT_EQ(MaxAt(matmul, "output.0"), 8);
  EXPECT_EQ(NumberIn(TensorAt(matmul, "output.0").mean), 7.5);
}

// Both ranks hold parts with the same statistics: nothing differs, and all is merged nevertheless.
TEST(FoldTensors, BetweenParallelLayersThatLookAlikeEverythingIsMerged) {
  std::vector<RankTree> trees = TwoRanks();
  std::vector<RankTree> again = TwoRanks();
  trees[1] = std::move(again[0]);
  trees[1].rank = 1;
  for (Part& part : trees[1].parts) part.rank = 1;
  for (RankTree& tree : trees) {
    Part& row = *tree.Find(kRow);
    row.members.emplace_back(dump_json::kParameters, ValueMap{{"bias", TensorOf(1)}});
  }
  Fold(trees);
  const double two = std::sqrt(2.0);
  RankTree& main = trees[0];
  EXPECT_EQ(NumberIn(TensorAt(*main.Find(kColumn), "input.0").norm), 1);
  EXPECT_DOUBLE_EQ(NumberIn(TensorAt(*main.Find(kColumn), "output.0").norm), 2 * two);
  EXPECT_DOUBLE_EQ(NumberIn(TensorAt(*main.Find("Functional.gelu.0.forward"), "output.0").norm),
                   3 * two);
  EXPECT_DOUBLE_EQ(NumberIn(TensorAt(*main.Find(kRow), "input.0").norm), 3 * two);
  EXPECT_EQ(NumberIn(TensorAt(*main.Find(kRow), "output.0").norm), 7);
  EXPECT_EQ(NumberIn(TensorAt(*main.Find(kRow), "parameters.bias").norm), 1);
}

// Calls that a pipeline marked with a rank have their peers on the ranks of its group.
TEST(FoldTensors, MarkedCallsFindTheirPeers) {
  std::vector<RankTree> trees;
  for (int rank = 0; rank < 2; ++rank) {
    trees.push_back(TreeOf(
        rank, {{kBlock, "", 1, 7},
               {fmt::format("Torch.tanh_rank{}.3.forward", rank + 4), kBlock, 1, 2.0 + rank}}));
    trees.back().parts.back().rank = rank + 4;
  }
  Fold(trees, {{0, 1}, {4, 5}});
  Part& tanh = *trees[0].Find("Torch.tanh_rank4.3.forward");
  EXPECT_EQ(MaxAt(tanh, "output.0"), 3);
  EXPECT_EQ(tanh.merge.front(), "Merged over tensor parallel ranks [4, 5]");
}

}  // namespace
}  // namespace plumbline::view
