#include "measure/gradient_condition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "measure/standards.h"

namespace plumbline::measure {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Of this root mean square.
Item TensorOf(Shape shape, double rms, double max = 1) {
  Item item;
  item.is_tensor = true;
  item.dtype = "torch.float32";
  double count = 1;
  for (const int64_t size : shape) count *= static_cast<double>(size);
  item.shape = std::move(shape);
  item.statistics = {max, -1.0, 0.0, rms * std::sqrt(count)};
  return item;
}

struct Forward {
  std::vector<const Item*> inputs, outputs;
  [[nodiscard]] ForwardItems items() const { return {inputs, outputs}; }
};

TEST(GradientCondition, GradientOfAWeightCancelsLikeAProduct) {
  const Item x = TensorOf({400, 8}, 2);
  const Item w = TensorOf({5, 8}, 1);
  const Item incoming = TensorOf({400, 5}, 0.5);
  const Forward forward{{&x, &w}, {}};
  const auto condition = [&](double rms) {
    return ConditionOfGradient(TensorOf({5, 8}, rms), "Functional.linear.0.backward", incoming,
                               forward.items())
        .cancellation;
  };
  EXPECT_NEAR(condition(20), 1, 1e-9);  // sqrt(400) * 2 * 0.5: nothing cancels
  EXPECT_NEAR(condition(0.02), 1000, 1e-6);
}

TEST(GradientCondition, GradientOfASpreadFactorIsASumOfProducts) {
  const Item x = TensorOf({40, 40}, 3);
  const Item factor = TensorOf({}, 7);
  const Item incoming = TensorOf({40, 40}, 2);
  const Forward forward{{&factor, &x}, {}};
  const GradientCondition found = ConditionOfGradient(
      TensorOf({}, 2.4), "Tensor.__mul__.0.backward", incoming, forward.items());
  EXPECT_NEAR(found.cancellation, 40 * 2 * 3 / 2.4, 1e-9);
  // The gradient of the other operand is no sum.
  EXPECT_EQ(
      ConditionOfGradient(x, "Tensor.__mul__.0.backward", incoming, forward.items()).cancellation,
      1);
}

TEST(GradientCondition, GradientOfASpreadDivisorCountsTheQuotient) {
  const Item x = TensorOf({10, 10}, 6);
  const Item divisor = TensorOf({}, 2);
  const Item quotient = TensorOf({10, 10}, 3);
  const Forward forward{{&x, &divisor}, {&quotient}};
  const GradientCondition found = ConditionOfGradient(
      TensorOf({}, 0.1), "Tensor.__truediv__.0.backward", TensorOf({10, 10}, 1), forward.items());
  EXPECT_NEAR(found.cancellation, 10 * 1 * (3.0 / 2) / 0.1, 1e-9);
}

TEST(GradientCondition, ExponentialsKeepTheSizeOfTheirArgument) {
  const Item x = TensorOf({8, 8}, 5, 12);
  const Forward forward{{&x}, {}};
  const auto condition = [&](const char* name) {
    return ConditionOfGradient(x, name, x, forward.items()).amplification;
  };
  EXPECT_EQ(condition("Torch.logsumexp.3.backward"), 12);
  EXPECT_EQ(condition("Torch.tanh.3.backward"), 1);
  EXPECT_EQ(condition("Torch.logsumexp.3.forward"), 1);
}

TEST(GradientCondition, WhatIsNotKnownCountsAsOne) {
  const Item x = TensorOf({4, 4}, kNaN, kNaN);
  const Item zero = TensorOf({}, 0);
  const Forward forward{{&x, &zero}, {&x}};
  for (const char* name : {"Tensor.__mul__.0.backward", "Torch.matmul.0.backward",
                           "Tensor.__truediv__.0.backward", "Torch.exp.0.backward", "x", ""}) {
    for (const Item* result : {&x, &zero}) {
      const GradientCondition found = ConditionOfGradient(*result, name, x, forward.items());
      EXPECT_EQ(found.amplification, 1) << name;
      EXPECT_EQ(found.cancellation, 1) << name;
    }
    EXPECT_EQ(ConditionOfGradient(x, name, x, {}).cancellation, 1) << name;
  }
}

TEST(GradientCondition, JoinedTakesTheLargerAndStaysFinite) {
  const Item x = TensorOf({4}, 1);
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

}  // namespace
}  // namespace plumbline::measure
