#include "match/training_match.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace plumbline::match {
namespace {

const TrainingRules& Fsdp() {
  static const TrainingRules rules = RulesOfBackend(TrainingBackend::kFsdp, {});
  return rules;
}

Item Tensor(const std::string& name, ItemRole role, const Shape& shape, double value) {
  Item item;
  item.name = name;
  item.role = role;
  item.is_tensor = true;
  item.dtype = "torch.float32";
  item.shape = shape;
  item.statistics = {value, -value, 0.5, 2.0};
  return item;
}

// A module with one input, one weight and one result.
CallItems Linear(const std::string& name, int64_t width, double value = 1) {
  CallItems call;
  call.name = name;
  call.kind = CallKind::kForward;
  call.items = {Tensor(name + ".input.0", ItemRole::kInput, {1, 5, 8}, value),
                Tensor(name + ".parameters.weight", ItemRole::kParameter, {width, 8}, value),
                Tensor(name + ".output.0", ItemRole::kOutput, {1, 5, width}, value)};
  return call;
}

TEST(TrainingPlaces, WhatDiffersBetweenTheSidesIsCutOff) {
  const TrainingRules megatron = RulesOfBackend(TrainingBackend::kMegatron, {});
  struct Case {
    const char* path;
    const char* class_name;
    const TrainingRules& rules;
    ModulePlace place;
  };
  const Case cases[] = {
      {"model._fsdp_wrapped_module.model.layers.3._fsdp_wrapped_module.self_attn.k_proj",
       "Linear",
       Fsdp(),
       {3, "qkv_proj"}},
      {"model.layers.3.self_attn.qkv_proj", "QKVParallelLinear", Fsdp(), {3, "qkv_proj"}},
      {"model._fsdp_wrapped_module.model.norm", "RMSNorm", Fsdp(), {-1, "norm"}},
      {"lm_head", "ParallelLMHead", Fsdp(), {-1, "lm_head"}},
      {"model.layers.0", "Qwen3DecoderLayer", Fsdp(), {0, ""}},
      {"model", "Qwen3Model", Fsdp(), {-1, "Qwen3Model"}},
      {"0.module.module.decoder.layers.1.self_attention.linear_qkv",
       "L",
       megatron,
       {1, "qkv_proj"}},
      {"0.module.module.decoder.layers.1.self_attention", "L", megatron, {1, "self_attn"}},
      {"0.module.module.embedding.word_embeddings",
       "VocabParallelEmbedding",
       megatron,
       {-1, "embed_tokens"}},
      {"model.embed_tokens", "VocabParallelEmbedding", megatron, {-1, "embed_tokens"}},
      {"layers", "X", Fsdp(), {-1, "layers"}},
      {"", "X", Fsdp(), {-1, "X"}},
  };
  for (const Case& c : cases) {
    const ModulePlace place = PlaceOfModule(c.path, c.class_name, c.rules);
    EXPECT_EQ(place.layer, c.place.layer) << c.path;
    EXPECT_EQ(place.module, c.place.module) << c.path;
  }
}

TEST(TrainingPlaces, UsersRenameModules) {
  const TrainingRules user =
      RulesOfBackend(TrainingBackend::kFsdp, {{"q_proj", "mine"}, {"dense", "o_proj"}});
  EXPECT_EQ(PlaceOfModule("layers.0.attn.q_proj", "L", user).module, "mine");
  EXPECT_EQ(PlaceOfModule("layers.0.attn.dense", "L", user).module, "o_proj");
}

TEST(TrainingMatch, PiecesBecomeOneCall) {
  std::vector<CallItems> training = {Linear("Module.layers.0.attn.q_proj.Linear.forward.0", 4, 1),
                                     Linear("Module.layers.0.attn.k_proj.Linear.forward.0", 2, 7),
                                     Linear("Module.layers.0.attn.v_proj.Linear.forward.0", 2, 3)};
  std::vector<CallItems> inference = {Linear("Module.layers.0.attn.qkv_proj.QKV.forward.0", 8, 7)};
  const TrainingMatch found = MatchTraining(Fsdp(), training, inference);
  ASSERT_EQ(found.pairs.size(), 1U);
  EXPECT_TRUE(found.pairs[0].paired());
  EXPECT_EQ(found.pairs[0].links.size(), 3U);
  ASSERT_EQ(training.size(), 1U);
  const std::vector<Item>& items = training[0].items;
  EXPECT_EQ(*items[0].shape, (Shape{5, 8}));
  EXPECT_EQ(*items[1].shape, (Shape{8, 8}));
  EXPECT_EQ(*items[2].shape, (Shape{5, 8}));
  EXPECT_EQ(*items[2].statistics.As<double>(0), 7);
  EXPECT_EQ(*items[2].statistics.As<double>(1), -7);
  EXPECT_EQ(*items[2].statistics.As<double>(2), 0.5);
  EXPECT_DOUBLE_EQ(*items[2].statistics.As<double>(3), std::sqrt(12.0));
  EXPECT_EQ(found.shown_names[0].second,
            "Module.layers.0.attn.q_proj.Linear.forward.0;  "
            "Module.layers.0.attn.k_proj.Linear.forward.0;  "
            "Module.layers.0.attn.v_proj.Linear.forward.0");
}

TEST(TrainingMatch, WhatTheBackwardPassRunsAgainIsLeftOut) {
  std::vector<CallItems> training = {Linear("Module.embed.Embedding.forward.0", 4),
                                     Linear("Module.layers.0.norm.Norm.forward.0", 4),
                                     Linear("Module.head.Linear.backward.0", 4),
                                     Linear("Module.layers.0.norm.Norm.forward.1", 4),
                                     Linear("Module.embed.Embedding.forward.1", 4),
                                     Linear("Module.layers.0.norm.Norm.forward.2", 4)};
  std::vector<CallItems> inference = {Linear("Module.embed.Embedding.forward.0", 4),
                                      Linear("Module.layers.0.norm.Norm.forward.0", 4),
                                      Linear("Module.embed.Embedding.forward.1", 4),
                                      Linear("Module.layers.0.norm.Norm.forward.1", 4)};
  const TrainingMatch found = MatchTraining(Fsdp(), training, inference);
  EXPECT_EQ(found.backward, 1U);
  EXPECT_EQ(found.recomputed, 1U);
  ASSERT_EQ(found.pairs.size(), 4U);
  EXPECT_EQ(training[found.pairs[3].target].name, "Module.layers.0.norm.Norm.forward.2");
  EXPECT_EQ(inference[found.pairs[3].golden].name, "Module.layers.0.norm.Norm.forward.1");
}

TEST(TrainingMatch, MegatronAgainstAnEngine) {
  const TrainingRules rules = RulesOfBackend(TrainingBackend::kMegatron, {});
  const std::string layer = "Module.0.module.module.decoder.layers.0.";
  std::vector<CallItems> training = {
      Linear("Module.0.module.module.embedding.word_embeddings.VocabParallelEmbedding.forward.0",
             4),
      Linear(layer + "self_attention.linear_qkv.ColumnParallelLinear.forward.0", 8),
      Linear(layer + "mlp.linear_fc1.ColumnParallelLinear.forward.0", 8),
      Linear(layer + "self_attention.core_attention.DotProductAttention.forward.0", 8)};
  std::vector<CallItems> inference = {
      Linear("Module.model.embed_tokens.VocabParallelEmbedding.forward.0", 4),
      Linear("Module.model.layers.0.self_attn.qkv_proj.QKVParallelLinear.forward.0", 8),
      Linear("Module.model.layers.0.self_attn.attn.Attention.forward.0", 8),
      Linear("Module.model.layers.0.mlp.gate_up_proj.A.forward.0", 3),
      Linear("Module.model.layers.0.mlp.gate_up_proj.B.forward.0", 5)};
  // Heads and their size are one dimension on one side.
  inference[2].items[2] =
      Tensor(std::string(inference[2].items[2].name), ItemRole::kOutput, {5, 2, 4}, 1);
  inference[2].items[2].data_name = "heads.pt";
  const TrainingMatch found = MatchTraining(rules, training, inference);
  ASSERT_EQ(found.pairs.size(), 4U);
  for (const CallPair& pair : found.pairs) {
    EXPECT_TRUE(pair.paired());
    EXPECT_EQ(pair.links.size(), 3U) << training[pair.target].name;
  }
  EXPECT_EQ(inference.size(), 4U);
  EXPECT_EQ(*inference[found.pairs[2].golden].items[1].shape, (Shape{8, 8}));
  const Item& heads = inference[found.pairs[3].golden].items[2];
  EXPECT_EQ(*heads.shape, (Shape{5, 8}));
  EXPECT_EQ(heads.data_name, "pairs;heads.pt");
}

TEST(TrainingMatch, WhatIsStillToBeAddedIsAdded) {
  const auto layer = [](const std::string& name, size_t results) {
    CallItems call;
    call.name = name;
    for (size_t i = 0; i < results; ++i) {
      Item item = Tensor(fmt::format("{}.output.{}", name, i), ItemRole::kOutput, {5, 8}, 1);
      item.data_name = fmt::format("{}.pt", i);
      call.items.push_back(std::move(item));
    }
    return call;
  };
  std::vector<CallItems> training = {layer("Module.layers.0.Layer.forward.0", 1),
                                     layer("Module.norm.RMSNorm.forward.0", 1)};
  std::vector<CallItems> inference = {layer("Module.model.layers.0.Layer.forward.0", 2),
                                      layer("Module.model.norm.RMSNorm.forward.0", 2)};
  const TrainingMatch found = MatchTraining(Fsdp(), training, inference);
  ASSERT_EQ(found.pairs.size(), 3U);
  EXPECT_EQ(inference[0].items.size(), 1U);
  EXPECT_EQ(inference[0].items[0].data_name, "sum;0.pt;1.pt");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(inference[0].items[0].statistics.array()[0]));
  EXPECT_EQ(inference[1].items[0].data_name, "0.pt");  // of a norm the first is the result
  EXPECT_EQ(found.pairs[2].reason, "no-target");
}

TEST(TrainingMatch, WhatDoesNotFitStandsAlone) {
  std::vector<CallItems> training = {Linear("Module.layers.0.mlp.gate_proj.Linear.forward.0", 4),
                                     Linear("Module.layers.0.mlp.up_proj.Linear.forward.0", 4),
                                     Linear("Module.layers.0.extra.Linear.forward.0", 4)};
  std::vector<CallItems> inference = {
      Linear("Module.layers.0.mlp.gate_up_proj.Merged.forward.0", 9)};
  const TrainingMatch found = MatchTraining(Fsdp(), training, inference);
  // The input pairs; weights and results of another size are rows of one side.
  ASSERT_EQ(found.pairs.size(), 4U);
  EXPECT_EQ(found.pairs[0].links.size(), 1U);
  EXPECT_EQ(found.pairs[1].reason, "no-golden");
  EXPECT_EQ(found.pairs[1].links.size(), 2U);
  EXPECT_EQ(found.pairs[2].reason, "no-target");
  EXPECT_EQ(found.pairs[3].reason, "no-golden");
  EXPECT_TRUE(found.pairs[3].links.empty());
  std::vector<CallItems> none;
  EXPECT_TRUE(MatchTraining(Fsdp(), none, none).pairs.empty());
}

}  // namespace
}  // namespace plumbline::match
