#include "pipeline/trend_rows.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace plumbline {
namespace {

using trend_db::Metric;
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
    Metric metric;
    const char* target;
    int64_t number;
  };
  const Case cases[] = {
      {"Functional.linear.3.forward", "output", Metric::kForward, "Functional.linear.output.0", 3},
      {"Module.a.B.forward.2", "input_args", Metric::kForward, "Module.a.B.input.0", 2},
      {"Module.a.B.backward.2", "input", Metric::kBackward, "Module.a.B.input.0", 2},
      {"Module.forward.B.backward.2", "output", Metric::kBackward, "Module.forward.B.output.0", 2},
      {"Module.a.B.parameters_grad", "w", Metric::kParametersGrad, "Module.a.B.w", 0},
      {"Module.a.B.parameters_grad.1", "w", Metric::kParametersGrad, "Module.a.B.w", 1},
  };
  for (const Case& c : cases) {
    const std::vector<Row> rows = RowsOf(c.name, c.member);
    ASSERT_EQ(rows.size(), 1U) << c.name;
    EXPECT_EQ(rows[0].metric, c.metric) << c.name;
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
