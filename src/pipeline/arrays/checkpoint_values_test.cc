#include "pipeline/arrays/checkpoint_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace plumbline {
namespace {

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
