#include "pipeline/culprit/frozen_parameter.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "pipeline/comparison_for_test.h"

namespace plumbline::pipeline {
namespace {

class FrozenParameter : public testing::Test {
 protected:
  // A call that reads a value and a parameter, of which each side says whether it is trained.
  void Read(const std::string& name, bool target, bool golden) {
    Item of_target = kWeight, of_golden = kWeight;
    of_target.requires_grad = target;
    of_golden.requires_grad = golden;
    whole_.Pair(name).Row(ItemRole::kInput, of_target, of_golden);
    Name(name);
    whole_.last_row().verdict = Verdict::kSame;
  }
  void Backward() { whole_.Pair("Functional.linear.0.backward").In(kWeight); }

  std::optional<CulpritEvent> Find() const { return FindFrozenParameter(whole_.get()); }

  ComparisonForTest whole_;

 private:
  void Name(const std::string& call) {
    whole_.last_row().target->name = call + ".input.1";
    whole_.last_row().golden->name = call + ".input.1";
  }
  const Item kWeight = TensorForTest({1, -1, 0.1, 2});
};

TEST_F(FrozenParameter, OfTheTargetIsNamed) {
  Read("Module.fc.Linear.forward.0", true, true);
  Backward();
  Read("Module.fc.Linear.forward.1", false, true);
  Read("Module.fc.Linear.forward.2", false, true);
  const std::optional<CulpritEvent> event = Find();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->call, 2U);
  EXPECT_EQ(event->fact.what,
            "input.1 requires no gradient (golden's does), although both did before");
  EXPECT_EQ(event->fact.cause, "argument");
}

TEST_F(FrozenParameter, OfGoldenIsNamed) {
  Read("Module.fc.Linear.forward.0", true, true);
  Backward();
  Read("Module.fc.Linear.forward.1", true, false);
  ASSERT_TRUE(Find());
  EXPECT_EQ(Find()->fact.what,
            "input.1 requires a gradient (golden's does not), although both did before");
}

TEST_F(FrozenParameter, OfCallsInStepsOfTheirOwnIsToldByTheNumberInTheStep) {
  Read("Functional.linear.1000000003.forward", true, true);
  Backward();
  Read("Functional.linear.4.forward", false, true);  // another call
  EXPECT_FALSE(Find());
  Read("Functional.linear.3.forward", false, true);
  ASSERT_TRUE(Find());
  EXPECT_EQ(Find()->call, 3U);
}

TEST_F(FrozenParameter, ThatWasTrainedOnOneSideOnlyBeforeIsNone) {
  Backward();
  Read("Module.fc.Linear.forward.0", false, true);  // folded, say
  Read("Module.fc.Linear.forward.1", false, true);
  EXPECT_FALSE(Find());
}

TEST_F(FrozenParameter, OnBothSidesIsNone) {
  Read("Module.fc.Linear.forward.0", true, true);
  Backward();
  Read("Module.fc.Linear.forward.1", false, false);
  EXPECT_FALSE(Find());
}

TEST_F(FrozenParameter, WhereNoGradientsWereRecordedIsNone) {
  Read("Module.fc.Linear.forward.0", true, true);
  Read("Module.fc.Linear.forward.1", false, true);
  EXPECT_FALSE(Find());
}

TEST_F(FrozenParameter, ThatIsAnotherAnywayIsNamedForThat) {
  Read("Module.fc.Linear.forward.0", true, true);
  Backward();
  Read("Module.fc.Linear.forward.1", false, true);
  whole_.last_row().verdict = Verdict::kBroken;
  EXPECT_FALSE(Find());
}

}  // namespace
}  // namespace plumbline::pipeline
