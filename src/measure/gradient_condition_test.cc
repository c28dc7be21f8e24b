#include "measure/gradient_condition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "measure/item_for_test.h"
#include "measure/standards.h"

namespace plumbline::measure {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// Of this root mean square.
Item GradientOf(Shape shape, double rms, double max = 1) {
  return TensorForTest(std::move(shape), max, -1.0, rms);
}

struct Forward {
  std::vector<const Item*> inputs, outputs;
  [[nodiscard]] ForwardItems items() const { return {inputs, outputs}; }
};

TEST(GradientCondition, GradientOfAWeightCancelsLikeAProduct) {
  const Item x = GradientOf({400, 8}, 2);
  const Item w = GradientOf({5, 8}, 1);
  const Item incoming = GradientOf({400, 5}, 0.5);
  const Forward forward{{&x, &w}, {}};
  const auto condition = [&](double rms) {
    return ConditionOfGradient(GradientOf({5, 8}, rms), "Functional.linear.0.backward", {&incoming},
                               forward.items())
        .cancellation;
  };
  EXPECT_NEAR(condition(20), 1, 1e-9);  // sqrt(400) * 2 * 0.5: nothing cancels
  EXPECT_NEAR(condition(0.02), 1000, 1e-6);
  EXPECT_NEAR(ConditionOfGradient(GradientOf({5, 8}, 20), "Functional.linear.0.backward",
                                  {&incoming}, forward.items())
                  .terms,
              400, 1e-9);
}

TEST(GradientCondition, GradientOfAnAngleIsSteepNearZero) {
  const Item y = GradientOf({100}, 3), x = GradientOf({100}, 4);
  const Item incoming = GradientOf({100}, 0.1);
  const Forward forward{{&y, &x}, {}};
  const auto amplification = [&](double largest, std::string_view call) {
    return ConditionOfGradient(GradientOf({100}, 0.2, largest), call, {&incoming}, forward.items())
        .amplification;
  };
  // largest * hypot(3, 4) / incoming
  EXPECT_NEAR(amplification(2, "Torch.atan2.0.backward"), 2 * 5 / 0.1, 1e-9);
  EXPECT_EQ(amplification(1e6, "Torch.atan2.0.backward"), kMostAmplification);
  EXPECT_EQ(amplification(2, "Torch.sin.0.backward"), 1);
  // Of complex numbers no norm is recorded: their largest magnitude counts.
  Item complex = GradientOf({100}, 1, 7);
  complex.statistics[3] = Recorded();
  const Forward of_complex{{&complex}, {}};
  EXPECT_NEAR(
      ConditionOfGradient(complex, "Torch.angle.0.backward", {&incoming}, of_complex.items())
          .amplification,
      7 * 7 / 0.1, 1e-9);
}

TEST(GradientCondition, GradientOfASpreadFactorIsASumOfProducts) {
  const Item x = GradientOf({40, 40}, 3);
  const Item factor = GradientOf({}, 7);
  const Item incoming = GradientOf({40, 40}, 2);
  const Forward forward{{&factor, &x}, {}};
  const GradientCondition found = ConditionOfGradient(
      GradientOf({}, 2.4), "Tensor.__mul__.0.backward", {&incoming}, forward.items());
  EXPECT_NEAR(found.cancellation, 40 * 2 * 3 / 2.4, 1e-9);
  // The gradient of the other operand is no sum.
  EXPECT_EQ(ConditionOfGradient(x, "Tensor.__mul__.0.backward", {&incoming}, forward.items())
                .cancellation,
            1);
}

TEST(GradientCondition, GradientOfASpreadDivisorCountsTheQuotient) {
  const Item x = GradientOf({10, 10}, 6);
  const Item divisor = GradientOf({}, 2);
  const Item quotient = GradientOf({10, 10}, 3);
  const Forward forward{{&x, &divisor}, {&quotient}};
  const Item incoming = GradientOf({10, 10}, 1);
  const GradientCondition found = ConditionOfGradient(
      GradientOf({}, 0.1), "Tensor.__truediv__.0.backward", {&incoming}, forward.items());
  EXPECT_NEAR(found.cancellation, 10 * 1 * (3.0 / 2) / 0.1, 1e-9);
}

TEST(GradientCondition, ExponentialsKeepTheSizeOfTheirArgument) {
  const Item x = GradientOf({8, 8}, 5, 12);
  const Forward forward{{&x}, {}};
  const auto condition = [&](const char* name) {
    return ConditionOfGradient(x, name, {&x}, forward.items()).amplification;
  };
  EXPECT_EQ(condition("Torch.logsumexp.3.backward"), 12);
  EXPECT_EQ(condition("Torch.tanh.3.backward"), 1);
  EXPECT_EQ(condition("Torch.logsumexp.3.forward"), 1);
}

TEST(GradientCondition, WhatIsNotKnownCountsAsOne) {
  const Item x = GradientOf({4, 4}, kMissing, kMissing);
  const Item zero = GradientOf({}, 0);
  const Forward forward{{&x, &zero}, {&x}};
  for (const char* name : {"Tensor.__mul__.0.backward", "Torch.matmul.0.backward",
                           "Tensor.__truediv__.0.backward", "Torch.exp.0.backward", "x", ""}) {
    for (const Item* result : {&x, &zero}) {
      const GradientCondition found = ConditionOfGradient(*result, name, {&x}, forward.items());
      EXPECT_EQ(found.amplification, 1) << name;
      EXPECT_EQ(found.cancellation, 1) << name;
    }
    EXPECT_EQ(ConditionOfGradient(x, name, {&x}, {}).cancellation, 1) << name;
  }
}

TEST(GradientCondition, JoinedTakesTheLargerAndStaysFinite) {
  const Item x = GradientOf({4}, 1);
  const std::vector<InputError> operands{{&x, 1e-6}};
  const Propagation found = Joined({}, {.amplification = 5, .cancellation = 1e7}, operands);
  EXPECT_EQ(found.cancellation, 1e7);
  EXPECT_EQ(found.amplification, kMostAmplification);
  EXPECT_NEAR(found.from_inputs, 1e-6 * kMostAmplification, 1e-12);
}

TEST(GradientCondition, KindsOfGradients) {
  EXPECT_EQ(GradientKindOf("Functional.conv2d.0.backward"), GradientKind::kProduct);
  EXPECT_EQ(GradientKindOf("Tensor.__rmul__.0.backward"), GradientKind::kFactor);
  EXPECT_EQ(GradientKindOf("Torch.div.0.backward"), GradientKind::kQuotient);
  EXPECT_EQ(GradientKindOf("Functional.softmax.0.backward"), GradientKind::kExponential);
  EXPECT_EQ(GradientKindOf("Functional.relu.0.backward"), GradientKind::kOther);
  EXPECT_EQ(GradientKindOf("Module.mul.Linear.backward.0"), GradientKind::kOther);
}

// Weights over deviation: 4 over 2. Of a loss that hangs on mean and deviation nothing is left.
TEST(GradientCondition, GradientOfANormalisationCancels) {
  const Item x = GradientOf({40, 40}, 2), y = GradientOf({40, 40}, 4);
  const Item incoming = GradientOf({40, 40}, 3);
  const Forward forward{{&x}, {&y}};
  const auto condition = [&](const Item& result, const char* call) {
    return ConditionOfGradient(result, call, {&incoming}, forward.items()).cancellation;
  };
  const char* norm = "Functional.batch_norm.0.backward";
  EXPECT_NEAR(condition(GradientOf({40, 40}, 6e-4), norm), 1e4, 1e-6);
  EXPECT_EQ(condition(GradientOf({40, 40}, 6), norm), 1);
  EXPECT_EQ(condition(GradientOf({40}, 6e-4), norm), 1);  // of a weight
  EXPECT_EQ(condition(GradientOf({40, 40}, 6e-4), "Functional.gelu.0.backward"), 1);
}

// Behind a normalisation errors of one sign, beside the mean of the other factor, do not average
// out.
TEST(GradientCondition, TermsThatAddUpToNothingMayBeOffTogether) {
  const Item x = GradientOf({400, 8}, 60), w = GradientOf({5, 8}, 1);
  Item incoming = GradientOf({400, 5}, 0.5);
  incoming.statistics[2] = 2e-6;
  const Forward forward{{&x, &w}, {}};
  const auto coherence = [&](double error, double rms) {
    return ConditionOfGradient(GradientOf({5, 8}, rms), "Functional.linear.0.backward",
                               {&incoming, error}, forward.items())
        .coherence;
  };
  EXPECT_NEAR(coherence(1e-6, 10), 20, 1e-9);  // sqrt(400), less than what cancels
  EXPECT_NEAR(coherence(1e-6, 100), 6, 1e-9);  // 20 * 0.5 * 60 / 100
  EXPECT_EQ(coherence(1e-7, 10), 1);           // they add up to more than their errors
}

// What is the same for all arguments changes no share.
TEST(GradientCondition, GradientOfSharesCancels) {
  const Item x = GradientOf({10, 8}, 2), shares = GradientOf({10, 8}, 0.25);
  const Item incoming = GradientOf({10, 8}, 1);
  const Forward forward{{&x}, {&shares}};
  const auto condition = [&](double rms, const char* call) {
    return ConditionOfGradient(GradientOf({10, 8}, rms), call, {&incoming}, forward.items())
        .cancellation;
  };
  EXPECT_NEAR(condition(1e-3, "Functional.softmax.0.backward"), 250, 1e-9);
  EXPECT_NEAR(condition(1e-3, "Tensor.log_softmax.0.backward"), 1000, 1e-9);
  EXPECT_EQ(condition(1, "Tensor.log_softmax.0.backward"), 1);
  EXPECT_EQ(condition(1e-3, "Torch.exp.0.backward"), 1);
}

TEST(GradientCondition, SteepCallsMagnifyErrors) {
  const Item x = GradientOf({10, 8}, 100), y = GradientOf({10, 8}, 1);
  EXPECT_NEAR(ConditionBySlope(x, y, GradientOf({10, 8}, 0.5), GradientOf({10, 8}, 0.5)), 100,
              1e-9);
  EXPECT_NEAR(ConditionBySlope(x, y, GradientOf({10, 8}, 0.1), GradientOf({10, 8}, 0.5)), 20, 1e-9);
  EXPECT_EQ(ConditionBySlope(y, x, GradientOf({10, 8}, 0.5), GradientOf({10, 8}, 0.5)), 1);
  // The norm of 80 numbers of size 100: as large as its terms' errors together.
  EXPECT_NEAR(ConditionBySlope(x, GradientOf({}, 100 * std::sqrt(80.0)),
                               GradientOf({10, 8}, 1 / std::sqrt(80.0)), GradientOf({}, 1)),
              1, 1e-9);
  EXPECT_EQ(ConditionBySlope(x, y, GradientOf({10, 8}, kMissing), GradientOf({10, 8}, 0.5)), 1);
  EXPECT_EQ(ConditionBySlope(x, y, GradientOf({10, 8}, 1e9), GradientOf({10, 8}, 0.5)),
            kMostAmplification);
}

}  // namespace
}  // namespace plumbline::measure
