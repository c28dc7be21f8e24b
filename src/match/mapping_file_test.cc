#include "match/mapping_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace plumbline::match {

namespace {

std::string Write(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/mapping.yaml";
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
  EXPECT_EQ(ReadDataMapping(::testing::TempDir() + "/none.yaml").error().code(),
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

CallItems MappedCall(const std::string& name, const std::vector<std::string>& parts = {"input.0"}) {
  CallItems call;
  call.name = name;
  for (const std::string& part : parts) {
    Item& item = call.items.emplace_back();
    item.name = name + "." + part;
    item.shape_text = "[2]";
    item.dtype = "Float32";
  }
  return call;
}

std::string CellKey(const TextPairs& pairs, const std::string& name) {
  std::vector<CallItems> calls = {MappedCall(name)};
  MapCells(pairs, calls);
  return calls[0].key();
}

TEST(NameMapping, CellsBecomeModules) {
  EXPECT_EQ(CellKey({}, "Cell.fc.Dense.forward.0"), "Module.fc.Dense.forward.0");
  EXPECT_EQ(CellKey({}, "Cell.a.Cell.b.Dense.backward.0"), "Module.a.Cell.b.Dense.backward.0");
  EXPECT_EQ(CellKey({}, "Functional.Cell.0.forward"), "Functional.Cell.0.forward");
}

TEST(NameMapping, ExactModulesGoBeforeParts) {
  const TextPairs pairs = {{"fc2.Dense", "fc2.Linear"}, {"Dense", "Other"}, {"net", "model"}};
  EXPECT_EQ(CellKey(pairs, "Cell.fc2.Dense.forward.0"), "Module.fc2.Linear.forward.0");
  EXPECT_EQ(CellKey(pairs, "Cell.net.fc3.Dense.parameters_grad"),
            "Module.model.fc3.Other.parameters_grad");
  EXPECT_EQ(CellKey(pairs, "Module.net.fc2.Dense.backward.1"),
            "Module.model.fc2.Linear.backward.1");
}

TEST(NameMapping, BuiltInApis) {
  std::vector<CallItems> calls = {
      MappedCall("Functional.dense.0.forward"), MappedCall("Mint.add.1.forward"),
      MappedCall("MintFunctional.relu.0.backward"), MappedCall("Unknown.x.0.forward"),
      MappedCall("Cell.a.B.forward.0")};
  MapApis({}, {}, calls);
  EXPECT_EQ(calls[0].key(), "Functional.linear.0.forward");
  EXPECT_EQ(calls[1].key(), "Torch.add.1.forward");
  EXPECT_EQ(calls[2].key(), "Functional.relu.0.backward");
  EXPECT_EQ(calls[3].key(), "Unknown.x.0.forward");
  EXPECT_EQ(calls[4].key(), "Cell.a.B.forward.0");
}

TEST(NameMapping, ListedArgumentsAreWholeEntries) {
  ApiRule rule;
  rule.target = "Functional.conv2d";
  rule.golden = "Functional.conv";
  rule.args = {{"0", "0"}, {"1", "2"}, {"2", "1"}};
  rule.output = {{"0", "0"}};
  std::vector<CallItems> calls = {
      MappedCall("Functional.conv2d.0.forward",
                 {"input.0", "input.1", "input.2", "input.10", "input.2.0", "output.0"})};
  const std::vector<CallItems> golden = {MappedCall("Functional.conv.0.forward")};
  MapApis({rule}, golden, calls);
  EXPECT_EQ(calls[0].key(), "Functional.conv.0.forward");
  EXPECT_EQ(calls[0].mapped_parts, (std::vector<std::string>{"input.0", "input.2", "input.1", "N/A",
                                                             "input.1.0", "output.0"}));
}

TEST(NameMapping, PrimitivesAreNamedWithTheirClass) {
  ApiRule rule;
  rule.target = "Primitive.bn_train.BatchNorm";
  rule.golden = "Functional.batch_norm";
  rule.args = {{"0", "0"}, {"3", "1"}, {"4", "2"}};  // moving_mean is running_mean
  std::vector<CallItems> calls = {
      MappedCall("Primitive.bn_train.BatchNorm.1.forward", {"input.3", "input.1"}),
      MappedCall("Primitive.bn_train.Other.0.forward")};
  MapApis({rule}, {MappedCall("Functional.batch_norm.1.forward")}, calls);
  EXPECT_EQ(calls[0].key(), "Functional.batch_norm.1.forward");
  EXPECT_EQ(calls[0].mapped_parts, (std::vector<std::string>{"input.1", "N/A"}));
  EXPECT_EQ(calls[1].key(), "Primitive.bn_train.Other.0.forward");
}

TEST(NameMapping, RulesForApisThatGoldenLacksAreNotUsed) {
  ApiRule rule;
  rule.target = "Functional.dense";
  rule.golden = "Functional.nothing";
  std::vector<CallItems> calls = {MappedCall("Functional.dense.0.forward")};
  MapApis({rule}, {MappedCall("Functional.linear.0.forward")}, calls);
  EXPECT_EQ(calls[0].key(), "Functional.linear.0.forward");
}

CallItems CallWith(const std::string& name, const std::vector<std::string>& parts) {
  CallItems call;
  call.name = name;
  for (const std::string& part : parts) {
    Item& item = call.items.emplace_back();
    item.name = name + "." + part;
    item.dtype = "torch.float32";
    item.shape_text = "[2]";
    if (part.starts_with("output")) item.role = ItemRole::kOutput;
  }
  return call;
}

// "target.item:golden.item" of every row, '-' where a side is missing.
std::string Rows(std::vector<CallItems> target, std::vector<CallItems> golden,
                 const TextPairs& mapping, std::vector<std::string>* warnings = nullptr) {
  std::vector<std::string> said;
  std::string text;
  for (const CallPair& pair : MatchByValues(target, golden, mapping, {}, said)) {
    const CallItems* a = pair.target == CallPair::kNone ? nullptr : &target[pair.target];
    const CallItems* b = pair.golden == CallPair::kNone ? nullptr : &golden[pair.golden];
    const size_t all = a != nullptr ? a->items.size() : b->items.size();
    for (size_t i = 0; i < (pair.links.empty() ? all : pair.links.size()); ++i) {
      const auto [k, l] = pair.links.empty() ? std::pair(i, i) : pair.links[i];
      text += (a == nullptr ? "-" : a->items[k].name) + ":";
      text += (b == nullptr ? "-" : b->items[l].name) + " ";
    }
  }
  if (warnings != nullptr) *warnings = said;
  return text;
}

TEST(DataMatch, ListedValuesGoWhereTheyAreMapped) {
  EXPECT_EQ(Rows({CallWith("A", {"input.0", "output.0"})}, {CallWith("B", {"input.1", "output.0"})},
                 {{"A.input.0", "B.input.1"}}),
            "A.input.0:B.input.1 A.output.0:B.output.0 ");
}

TEST(DataMatch, OtherCallsStayInTheReport) {
  EXPECT_EQ(
      Rows({CallWith("C", {"input.0"}), CallWith("A", {"input.0"}), CallWith("D", {"input.0"})},
           {CallWith("B", {"input.0", "input.7"}), CallWith("C", {"input.0"})},
           {{"A.input.0", "B.input.0"}}),
      "C.input.0:C.input.0 A.input.0:B.input.0 D.input.0:- -:B.input.7 ");
}

TEST(DataMatch, NullsWithoutPlaceAreLeftOutBetweenFrameworks) {
  for (const bool across : {false, true}) {
    std::vector<CallItems> target = {CallWith("A", {"output.0", "output.1"})};
    std::vector<CallItems> golden = {CallWith("B", {"output.0", "output.2"})};
    target[0].items[1].dtype = std::nullopt;
    golden[0].items[1].dtype = std::nullopt;
    std::vector<std::string> said;
    const TextPairs mapping = {{"A.output.0", "B.output.0"}};
    const MatchOptions options{.items = {.by_kind = across}};
    EXPECT_EQ(MatchByValues(target, golden, mapping, options, said).size(), across ? 1U : 3U);
  }
}

TEST(DataMatch, SeveralValuesMayGoToOneAndOneCallToSeveral) {
  EXPECT_EQ(
      Rows({CallWith("A", {"input.0", "input.1", "input.2"})},
           {CallWith("B", {"input.0"}), CallWith("C", {"input.0"})},
           {{"A.input.0", "B.input.0"}, {"A.input.1", "B.input.0"}, {"A.input.2", "C.input.0"}}),
      "A.input.0:B.input.0 A.input.1:B.input.0 A.input.2:C.input.0 ");
}

TEST(DataMatch, MissingNamesAreRowsAndWarnings) {
  std::vector<std::string> warnings;
  EXPECT_EQ(Rows({CallWith("A", {"input.0", "input.1"})}, {CallWith("B", {"input.0"})},
                 {{"A.input.0", "B.input.5"}, {"A.input.1", "N/A"}, {"X.input.0", "B.input.0"}},
                 &warnings),
            "A.input.0:- A.input.1:- -:B.input.0 ");
  EXPECT_EQ(warnings,
            (std::vector<std::string>{"data mapping: the golden side has no value B.input.5",
                                      "data mapping: the target has no value X.input.0"}));
}

}  // namespace

}  // namespace plumbline::match
