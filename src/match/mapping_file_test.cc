#include "match/mapping_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace plumbline::match {
namespace {

std::string Write(const std::string& text) {
  const std::string path = testing::TempDir() + "/mapping.yaml";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// Code of the error that `read` ends with; the message must hold `text`.
template <class Read>
ErrorCode CodeOf(Read read, const std::string& content, const std::string& text) {
  const auto result = read(Write(content));
  if (result) return ErrorCode::kInternal;
  EXPECT_NE(result.error().message().find(text), std::string::npos) << result.error().message();
  EXPECT_EQ(result.error().message().find('\n'), std::string::npos);
  return result.error().code();
}

TEST(MappingFile, PairsKeepTheOrderOfTheFile) {
  const auto pairs = ReadDataMapping(Write("b.input.0: x.input.0\na.output.0: N/A\n"));
  ASSERT_TRUE(pairs) << pairs.error().message();
  EXPECT_EQ(*pairs, (TextPairs{{"b.input.0", "x.input.0"}, {"a.output.0", "N/A"}}));
}

TEST(MappingFile, BadFilesAreNamedErrors) {
  for (const auto read : {ReadDataMapping, ReadCellMapping}) {
    EXPECT_EQ(CodeOf(read, "", "empty"), ErrorCode::kInvalidArgument);
    EXPECT_EQ(CodeOf(read, "# nothing\n", "empty"), ErrorCode::kInvalidArgument);
    EXPECT_EQ(CodeOf(read, "{}", "empty"), ErrorCode::kInvalidArgument);
    EXPECT_EQ(CodeOf(read, "a: [b\n", "not YAML"), ErrorCode::kCorrupt);
    EXPECT_EQ(CodeOf(read, "a: b\n\tc: d\n", "not YAML"), ErrorCode::kCorrupt);
    EXPECT_EQ(CodeOf(read, "just words", "text"), ErrorCode::kInvalidArgument);
    EXPECT_EQ(CodeOf(read, "- a\n- b\n", "target: golden"), ErrorCode::kInvalidArgument);
    EXPECT_EQ(CodeOf(read, "a: b\nc: [d]\n", "line 2: the counterpart of c"),
              ErrorCode::kInvalidArgument);
    EXPECT_EQ(CodeOf(read, "a:\n", "counterpart of a"), ErrorCode::kInvalidArgument);
    EXPECT_EQ(CodeOf(read, "[a]: b\n", "left"), ErrorCode::kInvalidArgument);
    EXPECT_EQ(CodeOf(read, "a: b\na: c\n", "a is mapped twice"), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(ReadDataMapping(testing::TempDir() + "/none.yaml").error().code(),
            ErrorCode::kNotFound);
}

TEST(MappingFile, DeepNestingAndBinaryAreNoCrash) {
  EXPECT_FALSE(ReadDataMapping(Write(std::string(100000, '['))));
  EXPECT_FALSE(ReadDataMapping(Write(std::string("\0\1\2\xff", 4))));
  EXPECT_FALSE(ReadDataMapping(Write("a: &x [*x]\n")));
  EXPECT_FALSE(ReadDataMapping(Write("a: *unknown\n")));
}

TEST(MappingFile, ApiRulesTakeAListOrOneRuleAndBothSpellings) {
  const auto list =
      ReadApiMapping(Write("- ms_api: Functional.conv2d\n"
                           "  pt_api: Functional.conv2d\n"
                           "  ms_args: [0, 1, 2]\n"
                           "  pt_args: [0, 2, 1]\n"
                           "  ms_output: [0]\n"
                           "  pt_output: [0]\n"));
  ASSERT_TRUE(list) << list.error().message();
  ASSERT_EQ(list->rules.size(), 1u);
  EXPECT_EQ(list->rules[0].args, (TextPairs{{"0", "0"}, {"1", "2"}, {"2", "1"}}));
  EXPECT_EQ(list->rules[0].output, (TextPairs{{"0", "0"}}));
  const auto one =
      ReadApiMapping(Write("ms_api: A.b\npt_api: C.d\nms_outputs: [1]\npt_outputs: "
                           "[0]\n"));
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_EQ(one->rules[0].output, (TextPairs{{"1", "0"}}));
  EXPECT_TRUE(one->rules[0].args.empty());
}

TEST(MappingFile, ApiRulesWithUnequalListsAreSkippedAndSaid) {
  const auto rules =
      ReadApiMapping(Write("- {ms_api: A.b, pt_api: C.d, ms_args: [0, 1], pt_args: "
                           "[0]}\n- {ms_api: A.c, pt_api: C.c}\n"));
  ASSERT_TRUE(rules);
  EXPECT_EQ(rules->rules.size(), 1u);
  ASSERT_EQ(rules->skipped.size(), 1u);
  EXPECT_NE(rules->skipped[0].find("ms_args and pt_args have 2 and 1"), std::string::npos);
}

TEST(MappingFile, BadApiRules) {
  EXPECT_EQ(CodeOf(ReadApiMapping, "- ms_api: A.b\n", "pt_api"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(ReadApiMapping, "- A.b\n", "rule"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(ReadApiMapping, "{ms_api: A.b, pt_api: C.d, ms_args: 0}", "not a list"),
            ErrorCode::kInvalidArgument);
}

TEST(MappingFile, BuiltInTableIsSorted) {
  const TextPairs& table = BuiltInApis();
  EXPECT_EQ(table.size(), 399u);
  EXPECT_TRUE(std::ranges::is_sorted(table));
  EXPECT_TRUE(std::ranges::binary_search(
      table, std::pair<std::string, std::string>("Functional.dense", "Functional.linear")));
}

TEST(MappingFile, LayerRules) {
  const auto rules = ReadLayerMapping(Write("Cell:\n  net: module\nBlock:\n  a.b: c(note)\n"));
  ASSERT_TRUE(rules) << rules.error().message();
  ASSERT_EQ(rules->size(), 2u);
  EXPECT_EQ((*rules)[0].class_name, "TopLayer");
  EXPECT_EQ((*rules)[1].paths, (TextPairs{{"a.b", "c"}}));
  EXPECT_EQ(CodeOf(ReadLayerMapping, "TopLayer: x\n", "target: golden"),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(ReadLayerMapping, "- x\n", "class names"), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plumbline::match
