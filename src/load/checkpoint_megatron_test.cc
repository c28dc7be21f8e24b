#include "load/checkpoint_megatron.h"

#include <gtest/gtest.h>

namespace plumbline::load {
namespace {

TEST(MegatronNames, VariantsOfAParameterHaveOneName) {
  EXPECT_EQ(
      CommonMegatronName("language_model.encoder.layers.3.self_attention.query_key_value.bias"),
      "decoder.layers.3.self_attention.linear_qkv.bias");
  EXPECT_EQ(CommonMegatronName("encoder.layers.0.self_attention.dense.weight"),
            "decoder.layers.0.self_attention.linear_proj.weight");
  EXPECT_EQ(CommonMegatronName("encoder.layers.0.mlp.dense_h_to_4h.weight"),
            "decoder.layers.0.mlp.linear_fc1.weight");
  EXPECT_EQ(CommonMegatronName("decoder.layers.0.self_attention.linear_qkv.layer_norm_weight"),
            "decoder.layers.0.input_layernorm.weight");
  EXPECT_EQ(CommonMegatronName("decoder.layers.0.mlp.local_experts.1.x"),
            "decoder.layers.0.mlp.experts.local_experts.1.x");
  EXPECT_EQ(CommonMegatronName("word_embeddings_for_head.weight"), "output_layer.weight");
  EXPECT_EQ(CommonMegatronName("other.weight"), "other.weight");
}

TEST(MegatronNames, NormsOfFusedLayersAreNotSplit) {
  EXPECT_EQ(SplitOf("decoder.layers.0.self_attention.linear_qkv.bias"), TensorSplit::kRows);
  EXPECT_EQ(SplitOf("decoder.layers.0.mlp.linear_fc1.weight"), TensorSplit::kRows);
  EXPECT_EQ(SplitOf("decoder.layers.0.mlp.linear_fc1.layer_norm_weight"), TensorSplit::kReplicated);
  EXPECT_EQ(SplitOf("decoder.layers.0.mlp.linear_fc2.weight"), TensorSplit::kColumns);
  EXPECT_EQ(SplitOf("decoder.layers.0.mlp.linear_fc2.bias"), TensorSplit::kReplicated);
  EXPECT_EQ(SplitOf("decoder.layers.0.input_layernorm.weight"), TensorSplit::kReplicated);
}

TEST(MegatronNames, NumbersAreFoundAndReplaced) {
  const std::string name = "decoder.layers.12.mlp.experts.local_experts.3.linear_fc1.weight";
  ASSERT_TRUE(LayerIn(name).has_value());
  EXPECT_EQ(LayerIn(name)->value, 12);
  EXPECT_EQ(WithNumber(name, *ExpertIn(name), 7),
            "decoder.layers.12.mlp.experts.local_experts.7.linear_fc1.weight");
  const std::string grouped = "decoder.layers.0.mlp.experts.linear_fc2.weight15";
  EXPECT_EQ(ExpertIn(grouped)->value, 15);
  EXPECT_EQ(WithNumber(grouped, *ExpertIn(grouped), 31),
            "decoder.layers.0.mlp.experts.linear_fc2.weight31");
  EXPECT_FALSE(ExpertIn("decoder.layers.0.mlp.linear_fc2.weight").has_value());
  EXPECT_FALSE(ExpertIn("decoder.layers.0.mlp.experts.router").has_value());
  EXPECT_FALSE(LayerIn("decoder.layers.x").has_value());
  EXPECT_FALSE(LayerIn("layers.99999999999999999999.x").has_value());
}

}  // namespace
}  // namespace plumbline::load
