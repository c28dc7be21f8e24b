#include "arrays/compare_checkpoints.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace plumbline {

namespace {

using Names = std::vector<std::string>;

TEST(CheckpointNames, EqualNamesStayAsTheyAre) {
  const AlignedNames names = AlignNames({"module.a", "b"}, {"module.a", "b"});
  EXPECT_EQ(names.target, (Names{"module.a", "b"}));
  EXPECT_TRUE(names.notes.empty());
}

TEST(CheckpointNames, WrappersAreLeftOutWhereThatHelps) {
  const AlignedNames names =
      AlignNames({"module.fc.weight", "module.fc.module.bias"}, {"fc.weight", "fc.bias"});
  EXPECT_EQ(names.target, (Names{"fc.weight", "fc.bias"}));
  EXPECT_EQ(names.notes, Names{"\"module\" in names of the target is left out"});
  const AlignedNames compiled = AlignNames({"fc.weight"}, {"_orig_mod.fc.weight"});
  EXPECT_EQ(compiled.golden, Names{"fc.weight"});
}

TEST(CheckpointNames, ACommonBeginningOfOneSideIsLeftOut) {
  const AlignedNames names =
      AlignNames({"state.model.a.w", "state.model.b.w", "state.step"}, {"a.w", "b.w"});
  EXPECT_EQ(names.target, (Names{"a.w", "b.w", "state.step"}));
  EXPECT_EQ(names.notes, Names{"\"state.model.\" in names of the target is left out"});
}

TEST(CheckpointNames, NothingIsDoneThatMakesNamesEqualOnOneSide) {
  const AlignedNames names = AlignNames({"module.a", "a"}, {"a"});
  EXPECT_EQ(names.target, (Names{"module.a", "a"}));
  const AlignedNames prefix = AlignNames({"x.a", "x.b", "a"}, {"a", "b"});
  EXPECT_EQ(prefix.target, (Names{"x.a", "x.b", "a"}));
  EXPECT_TRUE(AlignNames({}, {"a"}).target.empty());
}

using torch_pt::PlainValue;

// Whether the two values of one name count as equal.
bool Agree(const PlainValue& target, const PlainValue& golden) {
  load::Checkpoint left, right;
  left.Add(load::CheckpointValue{"x", target});
  right.Add(load::CheckpointValue{"x", golden});
  const ComparedValues compared = CompareValues(left, right);
  EXPECT_EQ(compared.common, 1U);
  return compared.differing.empty();
}

TEST(CheckpointValues, NumbersAgreeByValue) {
  EXPECT_TRUE(Agree(int64_t{3}, int64_t{3}));
  EXPECT_TRUE(Agree(int64_t{3}, 3.0));
  EXPECT_TRUE(Agree(true, int64_t{1}));
  EXPECT_TRUE(Agree(0.1 + 0.2, 0.3));
  EXPECT_TRUE(Agree(std::nan(""), std::nan("")));
  EXPECT_TRUE(Agree(INFINITY, INFINITY));
  EXPECT_FALSE(Agree(int64_t{3}, int64_t{4}));
  EXPECT_FALSE(Agree(INT64_MAX, INT64_MAX - 1));
  EXPECT_FALSE(Agree(1e-3, 1e-2));
  EXPECT_FALSE(Agree(1.0, std::nan("")));
  EXPECT_FALSE(Agree(INFINITY, -INFINITY));
  EXPECT_FALSE(Agree(1e308, INFINITY));
}

TEST(CheckpointValues, OtherValuesAgreeWhenEqual) {
  EXPECT_TRUE(Agree(std::string("adam"), std::string("adam")));
  EXPECT_TRUE(Agree(std::monostate(), std::monostate()));
  EXPECT_FALSE(Agree(std::string("adam"), std::string("sgd")));
  EXPECT_FALSE(Agree(std::string("3"), int64_t{3}));
  EXPECT_FALSE(Agree(std::monostate(), false));
}

TEST(CheckpointValues, WhatIsNotComparedIsCounted) {
  load::Checkpoint target, golden;
  target.Add(load::CheckpointValue{"a", int64_t{1}});
  target.Add(load::CheckpointValue{"b", int64_t{1}});
  golden.Add(load::CheckpointValue{"b", int64_t{2}});
  golden.Add(load::CheckpointValue{"c", int64_t{1}});
  golden.Add(load::CheckpointValue{"d", int64_t{1}});
  target.LeaveOut(1);
  golden.LeaveOut(2);
  const ComparedValues compared = CompareValues(target, golden);
  ASSERT_EQ(compared.differing.size(), 1U);
  EXPECT_EQ(compared.differing.front().name, "b");
  EXPECT_EQ(ValuesText(compared),
            "1 of 1 plain value differs, 1 plain value only in the target not compared, 2 plain "
            "values only in the golden not compared, 1 other value and 2 of the golden not "
            "compared");
  EXPECT_EQ(ValuesText({}), "");
}

}  // namespace

}  // namespace plumbline
