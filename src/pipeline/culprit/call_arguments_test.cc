#include "pipeline/culprit/call_arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "pipeline/comparison_for_test.h"

namespace plumbline::pipeline {
namespace {

constexpr std::string_view kName = "Functional.batch_norm.0.forward";

std::optional<Item> Named(const std::string& call, const std::string& name, Recorded value) {
  Item item;
  item.name = call + "." + name;
  item.statistics[0] = std::move(value);
  return item;
}

class CallArgumentsTest : public ::testing::Test {
 protected:
  CallArgumentsTest() { calls_.Pair(std::string(kName)); }
  void Read(const std::string& name, Recorded target, Recorded golden) {
    const std::string call(kName);
    calls_.Row(ItemRole::kInput, Named(call, name, std::move(target)),
               Named(call, name, std::move(golden)));
  }
  bool Is(size_t place, std::string_view keyword) {
    return IsArgument(calls_.last_row(), kName, place, keyword);
  }
  bool TakesOwn(bool of_target, std::string_view name = kName) {
    return TakesOwnStatistics(calls_.get().rows, name, of_target);
  }

  ComparisonForTest calls_;
};

TEST_F(CallArgumentsTest, PlacesAndKeywordsAreWhole) {
  Read("input.1", 1.0, 1.0);
  EXPECT_TRUE(Is(1, "mean"));
  EXPECT_FALSE(Is(11, "mean"));
  Read("input.11", 1.0, 1.0);
  EXPECT_FALSE(Is(1, "mean"));
  Read("input.1.0", 1.0, 1.0);
  EXPECT_FALSE(Is(1, "mean"));
  Read("kwargs.mean", 1.0, 1.0);
  EXPECT_TRUE(Is(1, "mean"));
  Read("kwargs.running_mean", 1.0, 1.0);
  EXPECT_FALSE(Is(1, "mean"));
  EXPECT_TRUE(Is(1, "running_mean"));
}

TEST_F(CallArgumentsTest, ResultsAreNone) {
  calls_.Row(ItemRole::kOutput, Named(std::string(kName), "input.0", 1.0), {});
  EXPECT_FALSE(Is(0, "input"));
}

TEST_F(CallArgumentsTest, EachSideHasItsOwn) {
  calls_.Row(ItemRole::kInput, Named(std::string(kName), "input.0", 1.0), {});
  Read("input.1", 2.0, 3.0);
  const auto& rows = calls_.get().rows;
  EXPECT_EQ(ArgumentOf(rows, kName, true, 0, "input"), &*rows[0].target);
  EXPECT_EQ(ArgumentOf(rows, kName, false, 0, "input"), nullptr);
  EXPECT_EQ(ArgumentOf(rows, kName, false, 1, "mean"), &*rows[1].golden);
  EXPECT_EQ(ArgumentOf(rows, kName, false, 2, "variance"), nullptr);
}

// As in a call that is paired with one of another name.
TEST_F(CallArgumentsTest, GoldenAloneHasItsOwnName) {
  calls_.Row(ItemRole::kInput, {}, Named("Functional.batch_norm.7.forward", "input.5", true));
  EXPECT_TRUE(TakesOwn(false));
}

TEST_F(CallArgumentsTest, TheFlagOfEitherFunction) {
  Read("kwargs.use_input_stats", true, false);
  EXPECT_TRUE(TakesOwn(true));
  EXPECT_FALSE(TakesOwn(false));
  Read("kwargs.training", false, true);
  EXPECT_FALSE(TakesOwn(true));
}

TEST_F(CallArgumentsTest, WithoutAFlagPyTorchDecides) {
  EXPECT_FALSE(TakesOwn(true));
  EXPECT_TRUE(TakesOwn(true, "Functional.instance_norm.0.forward"));
  Read("input.5", int64_t{1}, 0.1);  // numbers are no flag
  EXPECT_FALSE(TakesOwn(true));
}

}  // namespace
}  // namespace plumbline::pipeline
