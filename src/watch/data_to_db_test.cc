#include "watch/data_to_db.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace plumbline {

namespace {

using dump_json::CallTree;
using Names = std::vector<std::string>;

CallTree Tree(const std::vector<std::pair<std::string, std::string>>& parents) {
  CallTree tree;
  for (const auto& [name, parent] : parents) tree.rows.push_back({name, parent, 0});
  return tree;
}

// "{micro step}:{name}" of every name.
Names Places(const CallTree& tree, const Names& names) {
  const Result<MicroSteps> steps = MicroSteps::Derive(tree, names);
  EXPECT_TRUE(steps);
  Names places;
  for (const std::string& name : names) {
    const MicroSteps::Place place = steps->Of(name);
    places.push_back(std::to_string(place.micro_step) + ":" + place.name);
  }
  return places;
}

TEST(MicroSteps, RootsAreModulesWithoutParent) {
  const CallTree tree = Tree({{"Torch.add.0.forward", ""},
                              {"Module.a.A.forward.0", "Module.n.N.forward.0"},
                              {"Module.n.N.forward.0", ""},
                              {"Module.n.N.forward.1", ""},
                              {"Module.n.N.backward.0", ""},
                              {"Cell.m.M.forward.0", ""}});
  EXPECT_EQ(RootNames(tree), (Names{"Module.n.N.forward.0", "Cell.m.M.forward.0"}));
}

TEST(MicroSteps, ModuleInsideOfARootIsNone) {
  const CallTree tree = Tree({{"Module.net.a.A.forward.0", ""},
                              {"Module.net.N.forward.0", ""},
                              {"Module.network.N.forward.0", ""},
                              {"Module.net.a.A.forward.1", ""},
                              {"Module.net.N.forward.1", ""},
                              {"Module.net.a.A.forward.2", ""}});
  EXPECT_EQ(RootNames(tree), (Names{"Module.net.N.forward.0", "Module.network.N.forward.0"}));
  EXPECT_EQ(Places(tree, {"Module.net.a.A.forward.0", "Module.net.N.forward.0",
                          "Module.net.a.A.forward.1", "Module.net.a.A.forward.2"}),
            (Names{"0:Module.net.a.A.forward.0", "0:Module.net.N.forward.0",
                   "0:Module.net.a.A.forward.1", "1:Module.net.a.A.forward.0"}));
}

TEST(MicroSteps, EveryCallOfTheFirstRootStartsOne) {
  const CallTree tree = Tree({{"Module.n.N.forward.0", ""},
                              {"Torch.add.5.forward", "Module.n.N.forward.0"},
                              {"Module.h.H.forward.0", ""},
                              {"Module.n.N.forward.1", ""},
                              {"Torch.add.9.forward", "Module.n.N.forward.1"},
                              {"Torch.add.8.forward", "Module.n.N.forward.1"},
                              {"Module.h.H.forward.1", ""}});
  EXPECT_EQ(Places(tree, {"Torch.add.5.forward", "Module.n.N.forward.0", "Module.h.H.forward.0",
                          "Torch.sub.0.forward", "Torch.add.8.forward", "Torch.add.9.forward",
                          "Module.n.N.forward.1", "Module.h.H.forward.1", "Torch.sub.1.forward",
                          "Torch.sub.1.backward", "Torch.add.9.backward", "Torch.sub.0.backward",
                          "Module.n.N.parameters_grad.1", "Module.n.N.parameters_grad"}),
            (Names{"0:Torch.add.0.forward", "0:Module.n.N.forward.0", "0:Module.h.H.forward.0",
                   "0:Torch.sub.0.forward", "1:Torch.add.0.forward", "1:Torch.add.1.forward",
                   "1:Module.n.N.forward.0", "1:Module.h.H.forward.0", "1:Torch.sub.0.forward",
                   "1:Torch.sub.0.backward", "1:Torch.add.1.backward", "0:Torch.sub.0.backward",
                   "1:Module.n.N.parameters_grad.0", "0:Module.n.N.parameters_grad"}));
}

TEST(MicroSteps, WithoutARootNothingChanges) {
  const Names names = {"Torch.add.3.forward", "x"};
  EXPECT_EQ(Places(Tree({{"Torch.add.3.forward", ""}}), names),
            (Names{"0:Torch.add.3.forward", "0:x"}));
  EXPECT_EQ(MicroSteps::Derive({}, names)->count(), 1);
}

TEST(MicroSteps, CycleOfParentsEnds) {
  const CallTree tree = Tree({{"Module.n.N.forward.0", ""},
                              {"Torch.add.0.forward", "Torch.sub.0.forward"},
                              {"Torch.sub.0.forward", "Torch.add.0.forward"},
                              {"Torch.mul.0.forward", "Torch.mul.0.forward"}});
  EXPECT_EQ(Places(tree, {"Torch.add.0.forward", "Torch.mul.0.forward"}),
            (Names{"0:Torch.add.0.forward", "0:Torch.mul.0.forward"}));
}

TEST(MicroSteps, CountsOfTheFileWin) {
  CallTree tree = Tree({{"Torch.add.1.backward", ""}, {"Torch.add.1.forward", ""}});
  tree.rows[0].micro_step = 3;
  tree.rows[1].micro_step = 2;
  tree.has_micro_steps = true;
  tree.last_micro_step = 4;
  EXPECT_EQ(MicroSteps::Derive(tree, {})->count(), 5);
  EXPECT_EQ(Places(tree, {"Torch.add.1.forward", "Torch.add.1.backward", "Torch.sub.0.forward"}),
            (Names{"2:Torch.add.0.forward", "2:Torch.add.0.backward", "2:Torch.sub.0.forward"}));
  tree.rows[1].micro_step = -1;
  EXPECT_EQ(MicroSteps::Derive(tree, {}).error().code(), ErrorCode::kCorrupt);
}

using trend_db::Row;
using trend_db::Tag;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TensorRecord Tensor(Statistic max = 1.0) {
  TensorRecord tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.float32";
  tensor.max = max;
  return tensor;
}

std::vector<Row> RowsOf(const std::string& name, const std::string& member) {
  Call call{name, CallKind::kOther, {}};
  call.members.emplace_back(member, ValueList{Value(Tensor())});
  return TrendRows(call);
}

TEST(TrendRows, ValuesAreClippedAndNaNIsNothing) {
  EXPECT_EQ(TrendValue(kInfinity), 1000000001.0);
  EXPECT_EQ(TrendValue(-kInfinity), -1000000001.0);
  EXPECT_EQ(TrendValue(1e12), 1e9);
  EXPECT_EQ(TrendValue(-1e12), -1e9);
  EXPECT_EQ(TrendValue(int64_t{1} << 62), 1e9);
  EXPECT_EQ(TrendValue(std::numeric_limits<double>::quiet_NaN()), std::nullopt);
  EXPECT_EQ(TrendValue(std::monostate()), std::nullopt);
  EXPECT_EQ(TrendValue(true), 1.0);
  EXPECT_EQ(TrendValue(-0.5), -0.5);
}

TEST(TrendRows, NameBecomesMetricTargetAndNumber) {
  struct Case {
    const char *name, *member;
    DumpMetric metric;
    const char* target;
    int64_t number;
  };
  const Case cases[] = {
      {"Functional.linear.3.forward", "output", DumpMetric::kForward, "Functional.linear.output.0",
       3},
      {"Module.a.B.forward.2", "input_args", DumpMetric::kForward, "Module.a.B.input.0", 2},
      {"Module.a.B.backward.2", "input", DumpMetric::kBackward, "Module.a.B.input.0", 2},
      {"Module.forward.B.backward.2", "output", DumpMetric::kBackward, "Module.forward.B.output.0",
       2},
      {"Module.a.B.parameters_grad", "w", DumpMetric::kParametersGrad, "Module.a.B.w", 0},
      {"Module.a.B.parameters_grad.1", "w", DumpMetric::kParametersGrad, "Module.a.B.w", 1},
  };
  for (const Case& c : cases) {
    const std::vector<Row> rows = RowsOf(c.name, c.member);
    ASSERT_EQ(rows.size(), 1U) << c.name;
    EXPECT_EQ(rows[0].metric, static_cast<size_t>(c.metric)) << c.name;
    EXPECT_EQ(rows[0].target, c.target) << c.name;
    EXPECT_EQ(rows[0].micro_step, c.number) << c.name;
  }
}

TEST(TrendRows, OtherEntriesAndMembersAreNoRows) {
  for (const char* name : {"", ".", "optimizer", "forward", "x.0.debug", "Module.a.forwarded.0"}) {
    EXPECT_TRUE(RowsOf(name, "output").empty()) << name;
  }
  EXPECT_TRUE(RowsOf("Torch.add.0.forward", "input").empty());
  EXPECT_TRUE(RowsOf("Torch.add.0.backward", "input_args").empty());
}

TEST(TrendRows, OnlyTensorsOfAFramework) {
  Call call{"Torch.add.0.forward", CallKind::kForward, {}};
  TensorRecord array = Tensor();
  array.type = "numpy.ndarray";
  call.members.emplace_back("output", ValueList{Value(array), Value(), Value(int64_t{3})});
  EXPECT_TRUE(TrendRows(call).empty());
}

TEST(TrendRows, MappingReplacesEveryOccurrenceInOrder) {
  EXPECT_EQ(MapName("a.a.b", {{"a", "aa"}, {"b", "c"}}), "aa.aa.c");
  EXPECT_EQ(MapName("a.b", {{"a", "b"}, {"b", "c"}}), "c.c");
  EXPECT_EQ(MapName("aaa", {{"aa", ""}}), "a");
  EXPECT_EQ(MapName("x", {}), "x");
}

std::vector<Tag> TagsOf(const std::string& target, size_t tail = 2) {
  Row row;
  row.target = target;
  row.tail_parts = tail;
  return TrendTags(row);
}

TEST(TrendRows, TagsOfAModule) {
  const std::vector<Tag> expected = {{"input.0", "index"},
                                     {"Module", "default"},
                                     {"layers.3", "layer"},
                                     {"mlp.fc.Linear", "module"}};
  EXPECT_EQ(TagsOf("Module.layers.3.mlp.fc.Linear.input.0"), expected);
}

TEST(TrendRows, TagsOfAnApi) {
  const std::vector<Tag> expected = {{"input.0.1", "index"}, {"Torch.cat", "function"}};
  EXPECT_EQ(TagsOf("Torch.cat.input.0.1", 3), expected);
}

TEST(TrendRows, ShortNamesHaveNoTags) {
  EXPECT_TRUE(TagsOf("").empty());
  EXPECT_TRUE(TagsOf("input.0").empty());
  EXPECT_TRUE(TagsOf("Module.input.0").empty());
  EXPECT_TRUE(TagsOf("a.b.c", 9).empty());
}

}  // namespace

}  // namespace plumbline
