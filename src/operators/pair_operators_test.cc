#include "operators/pair_operators.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace plumbline::operators {

namespace {

load::OperatorDump Dump(const std::string& name, const std::string& path) {
  load::OperatorDump dump;
  dump.op_type = "Op";
  dump.op_name = name;
  dump.path = path;
  dump.file_name = "file of " + path;
  return dump;
}

// Target path, golden path and index of each pair.
std::vector<std::string> Texts(const std::vector<PairedOperator>& pairs) {
  std::vector<std::string> texts;
  for (const PairedOperator& pair : pairs) {
    texts.push_back(std::to_string(pair.index) + " " + pair.target_path + " " + pair.golden_path);
    EXPECT_EQ(pair.reason.empty(), !pair.target_path.empty() && !pair.golden_path.empty());
    if (!pair.target_path.empty()) {
      EXPECT_EQ(pair.target_file_name, "file of " + pair.target_path);
    }
    if (!pair.golden_path.empty()) {
      EXPECT_EQ(pair.golden_file_name, "file of " + pair.golden_path);
    }
  }
  return texts;
}

TEST(NamePairs, ExecutionsPairInTheirOrderAndTheRestComesLast) {
  load::OperatorDumps target, golden;
  target.files = {Dump("a", "a1"), Dump("b", "b1"), Dump("a", "a2"), Dump("only", "o1"),
                  Dump("a", "a3")};
  golden.files = {Dump("theirs", "T1"), Dump("b", "B1"), Dump("a", "A1"),
                  Dump("b", "B2"),      Dump("a", "A2"), Dump("b", "B3")};
  const auto pairs = PairByName(target, golden);
  EXPECT_EQ(Texts(pairs), (std::vector<std::string>{"0 a1 A1", "1 b1 B1", "2 a2 A2", "3 o1 ",
                                                    "4 a3 ", "5  T1", "6  B2", "7  B3"}));
  EXPECT_EQ(pairs[3].reason, "There is no the ground truth dump file for the op only.");
  EXPECT_EQ(pairs[3].target_name, "only");
  EXPECT_EQ(pairs[3].golden_name, "*");
  EXPECT_EQ(pairs[5].reason, "There is no the my output dump file for the op theirs.");
  EXPECT_EQ(pairs[5].golden_name, "theirs");
  EXPECT_EQ(pairs[5].op_type, "Op");
}

TEST(NamePairs, ThreadsAndOutputsAreTensorsOfTheirOwn) {
  load::OperatorDumps target, golden;
  for (const int64_t number : {0, 1, 2}) {
    load::OperatorDump of_thread = Dump("a", "t" + std::to_string(number));
    of_thread.thread_id = number;
    load::OperatorDump of_output = Dump("a", "o" + std::to_string(number));
    of_output.output = number;
    target.files.insert(target.files.end(), {of_thread, of_output});
    golden.files.insert(golden.files.begin(), {of_thread, of_output});
  }
  for (const PairedOperator& pair : PairByName(target, golden)) {
    EXPECT_EQ(pair.target_path, pair.golden_path);
  }
  EXPECT_TRUE(PairByName({}, {}).empty());
}

using Names = std::vector<std::string>;

load::OperatorDumps Devices(const Names& names) {
  load::OperatorDumps dumps;
  for (const std::string& name : names) {
    load::OperatorDump dump;
    dump.op_name = name;
    dump.path = "/" + name;
    dump.timestamp = dumps.files.size() + 1;
    dumps.files.push_back(std::move(dump));
  }
  return dumps;
}

load::OperatorDumps Arrays(const Names& names) {
  load::OperatorDumps dumps = Devices(names);
  dumps.kind = load::OperatorDumpKind::kStandard;
  for (load::OperatorDump& dump : dumps.files) dump.output = 0;
  return dumps;
}

fusion::OutputDesc Output(const std::string& origin, const std::string& dtype = "DT_FLOAT16") {
  fusion::OutputDesc output;
  output.dtype = dtype;
  if (!origin.empty()) output.origin_name = origin;
  return output;
}

// An operator for `originals`, fed by the first outputs of `inputs`, whose output is `origin`.
fusion::Operator Op(const std::string& name, const Names& inputs, const Names& originals,
                    const std::string& origin) {
  fusion::Operator op;
  op.name = name;
  op.type = "Some";
  for (const std::string& input : inputs) op.inputs.push_back({input, 0});
  op.original_names = originals;
  op.outputs = {Output(origin)};
  return op;
}

// "operator:output:0=golden"; "-" stands for no golden tensor.
Names Found(const RulePairs& pairs) {
  Names found;
  for (const PairedOperator& pair : pairs.pairs) {
    if (!pair.tasks) found.push_back(pair.target_name + " " + pair.reason);
    for (const TensorTask& task : pair.tasks.value_or(std::vector<TensorTask>{})) {
      found.push_back(TensorName(pair.target_name, task.target) + "=" +
                      (task.golden ? task.golden->name : "-"));
    }
  }
  return found;
}

RulePairs Pair(const fusion::Rule& rule, const Names& mine, const Names& golden) {
  const load::OperatorDumps target = Devices(mine), arrays = Arrays(golden);
  return PairByRule({rule, nullptr, nullptr, target, arrays});
}

TEST(RulePairs, OneForManyAndManyForOne) {
  fusion::Rule rule;
  rule.operators = {Op("fused", {}, {"conv", "relu"}, "relu"), Op("a", {"fused"}, {"split"}, ""),
                    Op("b", {"a"}, {"split"}, "split")};
  EXPECT_EQ(Found(Pair(rule, {"fused", "a", "b"}, {"relu", "split"})),
            (Names{"fused:output:0=relu", "a:input:0=relu", "a:output:0=split", "b:input:0=split",
                   "b:output:0=split"}));
}

TEST(RulePairs, InnerOperatorsOfManyForManyAreLeftOut) {
  fusion::Rule rule;
  rule.operators = {Op("in", {"data"}, {"x", "y"}, ""), Op("inner", {"in"}, {"x", "y"}, ""),
                    Op("out", {"inner"}, {"x", "y"}, "y")};
  EXPECT_EQ(Found(Pair(rule, {"in", "inner", "out"}, {"data", "x", "y"})),
            (Names{"in:input:0=data", "out:output:0=y"}));
}

TEST(RulePairs, OfAnL1FusionTheEndsAreCompared) {
  fusion::Rule rule;
  rule.operators = {Op("first", {"data"}, {"x"}, "x"), Op("middle", {"first"}, {"y"}, "y"),
                    Op("last", {"middle"}, {"z"}, "z")};
  for (fusion::Operator& op : rule.operators) op.l1_group = "4";
  EXPECT_EQ(Found(Pair(rule, {"first", "middle", "last"}, {"data", "x", "y", "z"})),
            (Names{"first:input:0=data", "last:output:0=z"}));
}

TEST(RulePairs, InputsAreFollowedThroughCastsAndLayoutChanges) {
  fusion::Rule rule;
  rule.operators = {Op("conv", {}, {"conv"}, "conv"), Op("trans", {"conv"}, {""}, ""),
                    Op("cast", {"trans"}, {""}, ""), Op("add", {"cast"}, {"add"}, "add")};
  rule.operators[1].type = "TransData";
  rule.operators[2].type = "Cast";
  EXPECT_EQ(Found(Pair(rule, {"add"}, {"conv", "add"})),
            (Names{"conv There is no the my output dump file for the op conv.", "add:input:0=conv",
                   "add:output:0=add"}));
  rule.operators[0] = Op("conv", {"cast"}, {""}, "");
  rule.operators[0].type = "Cast";  // a circle
  EXPECT_EQ(Found(Pair(rule, {"add"}, {"add"})), (Names{"add:input:0=-", "add:output:0=add"}));
}

TEST(RulePairs, NamesWithSlashesAndTheNewestFile) {
  fusion::Rule rule;
  rule.operators = {Op("net/conv.1", {}, {"net/conv"}, "net/conv")};
  const RulePairs pairs = Pair(rule, {"net_conv_1", "other", "net_conv_1"}, {"net_conv"});
  ASSERT_EQ(pairs.pairs.size(), 2U);
  EXPECT_EQ(pairs.pairs[0].target_path, "/net_conv_1");
  EXPECT_EQ(Found(pairs),
            (Names{"net/conv.1:output:0=net/conv", "other The rule file has no operator other."}));
  EXPECT_FALSE(Pair(rule, {"other"}, {"net_conv"}).has_target_file);
}

TEST(RulePairs, QuantisedOperatorsAreNotComparedWithAFloatModel) {
  fusion::Rule rule;
  rule.operators = {Op("x/AscendQuant", {"data"}, {"q"}, "q"),
                    Op("conv", {"x/AscendQuant"}, {"conv"}, "conv"),
                    Op("x/AscendDequant", {"conv"}, {"conv_out"}, "conv_out")};
  rule.operators[0].type = "AscendQuant";
  rule.operators[0].outputs = {Output("q", "DT_INT8")};
  const Names files = {"x_AscendQuant", "conv", "x_AscendDequant"};
  const RulePairs pairs = Pair(rule, files, {"data", "q", "conv", "conv_out"});
  EXPECT_EQ(Found(pairs),
            (Names{"x/AscendQuant:input:0=data", "x/AscendDequant:output:0=conv_out"}));
  ASSERT_EQ(pairs.notes.size(), 1U);
  EXPECT_NE(pairs.notes[0].find("conv"), std::string::npos);
}

TEST(RulePairs, TheRuleOfTheQuantisedModelNamesTheFloatOperators) {
  fusion::Rule rule, quant;
  rule.operators = {Op("mine", {}, {"quantised"}, "quantised")};
  quant.operators = {Op("quantised", {}, {"original"}, "original")};
  const load::OperatorDumps target = Devices({"mine"}), golden = Arrays({"original"});
  EXPECT_EQ(Found(PairByRule({rule, &quant, nullptr, target, golden})),
            Names{"mine:output:0=original"});
}

TEST(RulePairs, AModelBuiltWithoutFusionHoldsTheOriginals) {
  fusion::Rule rule, unfused;
  rule.operators = {Op("fused", {}, {"conv", "relu"}, "relu")};
  unfused.operators = {Op("plain_conv", {}, {"conv"}, "conv"),
                       Op("plain_relu", {"plain_conv"}, {"relu"}, "relu")};
  const load::OperatorDumps target = Devices({"fused"});
  const load::OperatorDumps golden = Devices({"plain_conv", "plain_relu"});
  const RulePairs pairs = PairByRule({rule, nullptr, &unfused, target, golden});
  EXPECT_EQ(Found(pairs), Names{"fused:output:0=plain_relu"});
  EXPECT_EQ(pairs.pairs[0].tasks->at(0).golden->path, "/plain_relu");
}

}  // namespace

}  // namespace plumbline::operators
