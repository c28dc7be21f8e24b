#include "view/merge/fold_pipeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "view/merge/trees_for_test.h"

namespace plumbline::view {
namespace {

using Names = std::vector<std::string>;

std::string Layer(int number, std::string_view direction) {
  return fmt::format("Module.block.layers.{}.Layer.{}.0", number, direction);
}
std::string Inside(int number, std::string_view direction) {
  return fmt::format("Module.block.layers.{}.fc.Linear.{}.0", number, direction);
}

// Two layers on each rank, forward and backward; every number is of this rank alone.
std::vector<TestCall> StageCalls(int stage) {
  const double at = 10 * stage;
  const std::string block = "Module.block.Block.forward.0", back = "Module.block.Block.backward.0";
  return {{block, "", 1, at + 3},
          {Layer(0, "forward"), block, at + 1, at + 2},
          {Inside(0, "forward"), Layer(0, "forward"), at + 1, at + 2},
          {"Torch.matmul.0.forward", Inside(0, "forward"), at + 1, at + 2},
          {Layer(1, "forward"), block, at + 2, at + 3},
          {back, "", at + 6, 4},
          {Layer(1, "backward"), back, at + 6, at + 5},
          {Layer(0, "backward"), back, at + 5, at + 4},
          {"Torch.matmul.0.backward", Layer(0, "backward"), at + 5, at + 4}};
}

std::vector<RankTree> Stages(int count) {
  std::vector<RankTree> trees;
  for (int stage = 0; stage < count; ++stage) trees.push_back(TreeOf(stage, StageCalls(stage)));
  return trees;
}

TEST(FoldPipeline, LayersFollowInForwardAndPrecedeInBackward) {
  std::vector<RankTree> trees = Stages(3);
  FoldPipeline(PointersTo(trees), 1);
  RankTree& main = trees.front();
  Part& block = *main.Find("Module.block.Block.forward.0");
  Part& back = *main.Find("Module.block.Block.backward.0");
  Names forward, backward;
  for (int i = 0; i < 6; ++i) forward.push_back(Layer(i, "forward"));
  for (int i = 5; i >= 0; --i) backward.push_back(Layer(i, "backward"));
  EXPECT_EQ(NamesBelow(block), forward);
  EXPECT_EQ(NamesBelow(back), backward);
  // What is inside has the new number, and calls of APIs have the rank that numbered them.
  EXPECT_EQ(NamesBelow(*main.Find(Layer(4, "forward"))), Names{Inside(4, "forward")});
  EXPECT_EQ(NamesBelow(*main.Find(Inside(4, "forward"))), Names{"Torch.matmul_rank2.0.forward"});
  EXPECT_EQ(NamesBelow(*main.Find(Layer(2, "backward"))), Names{"Torch.matmul_rank1.0.backward"});
  EXPECT_EQ(NamesBelow(*main.Find(Inside(0, "forward"))), Names{"Torch.matmul.0.forward"});
  EXPECT_EQ(main.Find(Layer(4, "forward"))->merge,
            Names{"Recorded by rank 2 as " + Layer(0, "forward")});
}

TEST(FoldPipeline, TheModelReturnsWhatItsLastRankReturns) {
  std::vector<RankTree> trees = Stages(2);
  FoldPipeline(PointersTo(trees), 1);
  Part& block = *trees[0].Find("Module.block.Block.forward.0");
  EXPECT_EQ(MaxAt(block, "input.0"), 1);
  EXPECT_EQ(MaxAt(block, "output.0"), 13);
  EXPECT_EQ(block.merge, Names{"Outputs of rank 1, the last of the pipeline [0, 1]"});
  Part& back = *trees[0].Find("Module.block.Block.backward.0");
  EXPECT_EQ(MaxAt(back, "input.0"), 16);
  EXPECT_EQ(MaxAt(back, "output.0"), 4);
}

// A block that is called with what the rank before made differs at both ends.
TEST(FoldPipeline, ABlockAroundLayersSpansThePipeline) {
  std::vector<RankTree> trees = Stages(2);
  Part& other = *trees[1].Find("Module.block.Block.forward.0");
  other.members[0].second.As<ValueList>()->front() = TensorOf(7);
  FoldPipeline(PointersTo(trees), 1);
  Part& block = *trees[0].Find("Module.block.Block.forward.0");
  EXPECT_EQ(MaxAt(block, "input.0"), 1);
  EXPECT_EQ(MaxAt(block, "output.0"), 13);
}

TEST(FoldPipeline, WhatLaterRanksAloneHaveIsAdded) {
  std::vector<RankTree> trees;
  const std::string block = "Module.block.Block.forward.0";
  std::vector<TestCall> calls = StageCalls(0);
  trees.push_back(TreeOf(0, calls));
  calls = StageCalls(1);
  calls.push_back({Layer(2, "forward"), block, 13, 14});  // uneven pipelines
  calls.push_back({"Module.block.head.Linear.forward.0", block, 14, 15});
  calls.push_back({"Torch.sum.0.forward", block, 15, 16});
  trees.push_back(TreeOf(1, calls));
  trees.push_back(TreeOf(2, calls));
  FoldPipeline(PointersTo(trees), 1);
  const Names names = NamesBelow(*trees[0].Find(block));
  const auto has = [&](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(has(Layer(i, "forward"))) << i;
  EXPECT_FALSE(has(Layer(8, "forward")));
  EXPECT_TRUE(has("Module.block.head.Linear.forward.0"));
  EXPECT_TRUE(has("Torch.sum_rank1.0.forward"));
  EXPECT_TRUE(has("Torch.sum_rank2.0.forward"));
  ASSERT_EQ(trees[0].notes.size(), 1U);
  EXPECT_EQ(trees[0].notes[0],
            "1 module of later pipeline ranks left out, because the same stands on several of them "
            "and not on rank 0");
}

TEST(FoldPipeline, LayersThatAreNaNAllOverAreStillOthers) {
  std::vector<RankTree> trees = Stages(2);
  for (RankTree& tree : trees) {
    for (Part& part : tree.parts) {
      for (auto& [key, value] : part.members)
        value.As<ValueList>()->front() = TensorOf(std::nan(""));
    }
  }
  FoldPipeline(PointersTo(trees), 1);
  EXPECT_EQ(trees[0].Find("Module.block.Block.forward.0")->children.size(), 4U);
}

TEST(FoldPipeline, LayersOnTheTopLevel) {
  std::vector<RankTree> trees;
  for (int stage = 0; stage < 2; ++stage) {
    const double at = 10 * stage;
    trees.push_back(TreeOf(stage, {{Layer(0, "forward"), "", at + 1, at + 2},
                                   {Layer(1, "forward"), "", at + 2, at + 3},
                                   {Layer(1, "backward"), "", at + 6, at + 5},
                                   {Layer(0, "backward"), "", at + 5, at + 4},
                                   {"optimizer.step.0", "", at, at}}));
  }
  FoldPipeline(PointersTo(trees), 1);
  EXPECT_EQ(NamesBelow(trees[0].root()),
            (Names{Layer(0, "forward"), Layer(1, "forward"), Layer(2, "forward"),
                   Layer(3, "forward"), Layer(3, "backward"), Layer(2, "backward"),
                   Layer(1, "backward"), Layer(0, "backward"), "optimizer.step.0"}));
}

std::string InChunk(int chunk, std::string_view rest) {
  return fmt::format("Module.{}.{}", chunk, rest);
}

// Two parts of the model on each rank, with one layer each; the head behind the last layer.
std::vector<TestCall> ChunkCalls(int stage) {
  std::vector<TestCall> calls;
  for (int chunk = 0; chunk < 2; ++chunk) {
    const double at = 10 * (2 * chunk + stage);
    const std::string layer = InChunk(chunk, "block.layers.0.Layer.forward.0");
    calls.push_back({InChunk(chunk, "block.Block.forward.0"), "", 1, at + 2});
    calls.push_back({layer, calls.back().name, at + 1, at + 2});
    calls.push_back({InChunk(chunk, "block.layers.0.fc.Linear.forward.0"), layer, at + 1, at + 2});
  }
  for (int chunk = 1; chunk >= 0; --chunk) {
    const double at = 10 * (2 * chunk + stage);
    calls.push_back({InChunk(chunk, "block.Block.backward.0"), "", at + 9, 5});
    calls.push_back(
        {InChunk(chunk, "block.layers.0.Layer.backward.0"), calls.back().name, at + 9, at + 8});
  }
  if (stage == 1) {
    calls.push_back(
        {InChunk(1, "head.Linear.forward.0"), InChunk(1, "block.Block.forward.0"), 7, 8});
  }
  return calls;
}

TEST(FoldPipeline, ChunksOfAnInterleavedPipelineBecomeOne) {
  std::vector<RankTree> trees;
  for (int stage = 0; stage < 2; ++stage) trees.push_back(TreeOf(stage, ChunkCalls(stage)));
  FoldPipeline(PointersTo(trees), 2);
  RankTree& main = trees[0];
  const std::string block = InChunk(0, "block.Block.forward.0");
  const std::string back = InChunk(0, "block.Block.backward.0");
  EXPECT_EQ(NamesBelow(main.root()), (Names{block, back}));
  Names forward, backward;
  for (int i = 0; i < 4; ++i) {
    forward.push_back(fmt::format("Module.0.block.layers.{}.Layer.forward.0", i));
    backward.insert(backward.begin(), fmt::format("Module.0.block.layers.{}.Layer.backward.0", i));
    // The numbers tell that the order is that of execution.
    ASSERT_NE(main.Find(forward.back()), nullptr);
    EXPECT_EQ(MaxAt(*main.Find(forward.back()), "input.0"), 10 * i + 1);
    EXPECT_EQ(MaxAt(*main.Find(backward.front()), "output.0"), 10 * i + 8);
  }
  forward.push_back("Module.0.head.Linear.forward.0");
  EXPECT_EQ(NamesBelow(*main.Find(block)), forward);
  EXPECT_EQ(NamesBelow(*main.Find(back)), backward);
  EXPECT_EQ(NamesBelow(*main.Find(forward[3])),
            Names{"Module.0.block.layers.3.fc.Linear.forward.0"});
  EXPECT_EQ(MaxAt(*main.Find(block), "output.0"), 32);
  EXPECT_EQ(MaxAt(*main.Find(back), "input.0"), 39);
}

TEST(FoldLooseCalls, GroupsHoldThoseOfEachRank) {
  std::vector<RankTree> trees;
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<TestCall> calls = {{"Apis_Between_Modules.0", "", 0, 0},
                                   {"Tensor.add.0.forward", "Apis_Between_Modules.0", 1, 2},
                                   {"Module.m.M.forward.0", "", 1, 2}};
    if (rank == 1) {
      calls.push_back({"Apis_Between_Modules.1", "", 0, 0});
      calls.push_back({"Tensor.add.1.forward", "Apis_Between_Modules.1", 1, 2});
    }
    trees.push_back(TreeOf(rank, calls));
  }
  FoldLooseCalls(PointersTo(trees));
  RankTree& main = trees[0];
  EXPECT_EQ(NamesBelow(main.root()),
            (Names{"Apis_Between_Modules_All_Ranks.0", "Module.m.M.forward.0",
                   "Apis_Between_Modules_All_Ranks.1"}));
  EXPECT_EQ(NamesBelow(*main.Find("Apis_Between_Modules_All_Ranks.0")),
            (Names{"Apis_Between_Modules_Rank0.0", "Apis_Between_Modules_Rank1.0"}));
  EXPECT_EQ(NamesBelow(*main.Find("Apis_Between_Modules_Rank0.0")), Names{"Tensor.add.0.forward"});
  EXPECT_EQ(NamesBelow(*main.Find("Apis_Between_Modules_Rank1.0")),
            Names{"Tensor.add_rank1.0.forward"});
  EXPECT_EQ(NamesBelow(*main.Find("Apis_Between_Modules_Rank1.1")),
            Names{"Tensor.add_rank1.1.forward"});
}

}  // namespace
}  // namespace plumbline::view
