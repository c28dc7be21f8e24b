#include "formats/acl/fusion_rule.h"

#include <gtest/gtest.h>

#include <string>

namespace plumbline::fusion {
namespace {

constexpr const char* kRule =
    R"({"name": "m", "graph": [{"name": "ge_default", "version": 2, "op": [
  {"name": "conv1", "type": "Conv2D", "id": 7, "input": ["data:0", "weight:1", "before:-1", ""],
   "attr": [{"key": "_datadump_original_op_names", "value": {"list": {"s": ["conv", "relu"]}}},
            {"key": "_L1_fusion_sub_graph_no", "value": {"s": "3"}},
            {"key": "_datadump_is_multiop", "value": {"b": true}},
            {"key": "other", "value": {"list": {"f": [1.5], "val_type": 1}}}],
   "output_desc": [
     {"dtype": "DT_FLOAT16", "shape": {"dim": [1]}, "attr": [
        {"key": "_datadump_origin_name", "value": {"s": "relu"}},
        {"key": "_datadump_origin_output_index", "value": {"i": 2}},
        {"key": "origin_format", "value": {"s": "NHWC"}},
        {"key": "_datadump_origin_format", "value": {"s": "NCHW"}},
        {"key": "origin_shape", "value": {"list": {"i": [1, 16, 8, 8]}}}]},
     {"dtype": "DT_FLOAT"}]},
  {"type": "Cast", "name": "cast", "attr": [
     {"key": "_datadump_original_op_names", "value": {"list": {"val_type": 1}}}]}]}]})";

TEST(FusionRule, EverythingThatIsUsed) {
  const auto rule = Parse(kRule);
  ASSERT_TRUE(rule) << rule.error().message();
  EXPECT_EQ(rule->graph_name, "ge_default");
  ASSERT_EQ(rule->operators.size(), 2U);
  const Operator& conv = rule->operators[0];
  EXPECT_EQ(conv.name, "conv1");
  EXPECT_EQ(conv.type, "Conv2D");
  EXPECT_EQ(conv.id, 7);
  ASSERT_EQ(conv.inputs.size(), 2U);
  EXPECT_EQ(conv.inputs[1].producer, "weight");
  EXPECT_EQ(conv.inputs[1].index, 1U);
  EXPECT_EQ(*conv.original_names, (std::vector<std::string>{"conv", "relu"}));
  EXPECT_EQ(conv.l1_group, "3");
  EXPECT_TRUE(conv.is_multi_part);
  ASSERT_EQ(conv.outputs.size(), 2U);
  EXPECT_EQ(conv.outputs[0].dtype, "DT_FLOAT16");
  EXPECT_EQ(conv.outputs[0].origin_name, "relu");
  EXPECT_EQ(conv.outputs[0].origin_index, 2U);
  EXPECT_EQ(conv.outputs[0].origin_format, "NCHW");
  EXPECT_EQ(conv.outputs[0].origin_shape, (std::vector<int64_t>{1, 16, 8, 8}));
  EXPECT_EQ(conv.outputs[1].origin_name, std::nullopt);
  EXPECT_EQ(conv.outputs[1].origin_index, 1U);
}

TEST(FusionRule, OperatorsWithoutOriginAreToldFromThoseThatSayNothing) {
  const auto rule = Parse(kRule);
  ASSERT_TRUE(rule);
  EXPECT_EQ(*rule->operators[1].original_names, (std::vector<std::string>{""}));
  const auto silent = Parse(R"({"graph": [{"op": [{"name": "a", "type": "b"}]}]})");
  ASSERT_TRUE(silent) << silent.error().message();
  EXPECT_EQ(silent->operators[0].original_names, std::nullopt);
}

std::string MessageOf(const std::string& text) {
  const auto rule = Parse(text);
  EXPECT_FALSE(rule) << text;
  if (rule) return "";
  EXPECT_EQ(rule.error().code(), ErrorCode::kCorrupt);
  return rule.error().message();
}

TEST(FusionRule, WhatIsWrongIsNamed) {
  const auto with = [](const std::string& op) {
    return R"({"graph": [{"op": [{"name": "conv", "type": "Conv", )" + op + "}]}]}";
  };
  EXPECT_NE(MessageOf("{}").find("\"graph\" is missing"), std::string::npos);
  EXPECT_NE(MessageOf(R"({"graph": {}})").find("\"graph\" is no array"), std::string::npos);
  EXPECT_NE(MessageOf(R"({"graph": [{}]})").find("without \"op\""), std::string::npos);
  EXPECT_NE(MessageOf(R"({"graph": [{"op": 1}]})").find("\"op\" is no array"), std::string::npos);
  EXPECT_NE(MessageOf(R"({"graph": [{"op": [{"name": "conv"}]}]})").find("\"type\" is missing"),
            std::string::npos);
  EXPECT_NE(MessageOf(with(R"("input": ["a:b:1"])")).find("a:b:1"), std::string::npos);
  EXPECT_NE(MessageOf(with(R"("input": ["a:b"])")).find("operator \"conv\""), std::string::npos);
  EXPECT_NE(MessageOf(with(R"("id": "1")")).find("\"id\" is no integer"), std::string::npos);
  EXPECT_NE(MessageOf(with(R"("attr": [{"key": "k", "value": 3}])")).find("\"value\""),
            std::string::npos);
  EXPECT_FALSE(MessageOf(std::string(kRule).substr(0, 400)).empty());
  EXPECT_FALSE(MessageOf(std::string(kRule) + "x").empty());
}

TEST(FusionRule, EveryCutIsAnError) {
  const std::string text = kRule;
  for (size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(Parse(text.substr(0, size)));
}

}  // namespace
}  // namespace plumbline::fusion
