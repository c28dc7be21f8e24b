// Tensors of doubles for the tests of reference functions, and gradients by differences.

#ifndef PLUMBLINE_PRECHECK_REFERENCE_GRADIENT_FOR_TEST_H_
#define PLUMBLINE_PRECHECK_REFERENCE_GRADIENT_FOR_TEST_H_

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "precheck/reference/array.h"

namespace plumbline::precheck::reference {

struct Doubles {
  Shape shape;
  std::vector<double> values;

  [[nodiscard]] Operand operand() const {
    return {DType::kFloat64, reinterpret_cast<const std::byte*>(values.data()), shape};
  }
};

inline Doubles Random(const Shape& shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(-2, 2);
  Doubles tensor{shape, std::vector<double>(CountOf(shape))};
  for (double& value : tensor.values) value = uniform(engine);
  return tensor;
}

inline std::vector<double> ValuesIn(const Array& array) {
  std::vector<double> values(array.count());
  Read(array.operand(), 0, values.size(), values.data());
  return values;
}

// The value of a Result, which must be one.
template <class T>
T Must(Result<T> result) {
  EXPECT_TRUE(result) << (result ? "" : result.error().message());
  return *std::move(result);
}

inline void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected,
                       double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
  }
}

// Checks the gradient of sum(grad * forward()) by the elements of `input`, which forward() reads.
inline void ExpectGradient(Doubles& input, const Doubles& grad,
                           const std::function<Array()>& forward, const Array& gradient) {
  constexpr double kStep = 1e-5;
  const auto loss = [&] {
    const std::vector<double> out = ValuesIn(forward());
    EXPECT_EQ(out.size(), grad.values.size());
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += out[i] * grad.values[i];
    return sum;
  };
  const std::vector<double> analytic = ValuesIn(gradient);
  ASSERT_EQ(gradient.shape(), input.shape);
  for (size_t i = 0; i < input.values.size(); ++i) {
    const double value = input.values[i];
    input.values[i] = value + kStep;
    const double above = loss();
    input.values[i] = value - kStep;
    const double below = loss();
    input.values[i] = value;
    const double slope = (above - below) / (2 * kStep);
    EXPECT_NEAR(analytic[i], slope, 1e-6 * std::max(1.0, std::abs(slope))) << "element " << i;
  }
}

// The message of an error, which the result must be.
template <class T>
std::string ErrorOf(const Result<T>& result) {
  return result ? "no error" : result.error().message();
}

}  // namespace plumbline::precheck::reference

#endif  // PLUMBLINE_PRECHECK_REFERENCE_GRADIENT_FOR_TEST_H_
