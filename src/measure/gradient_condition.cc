#include "measure/gradient_condition.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "record/recorded_number.h"

namespace plumbline::measure {
namespace {

// The result without cancellation: `terms` products of random sign.
double OfTerms(double terms, double incoming, double factor, double result) {
  const double condition = std::sqrt(std::max(terms, 1.0)) * incoming * factor / result;
  return std::isfinite(condition) ? std::max(condition, 1.0) : 1;
}

// Of the matrices that forward multiplied, the one that is not differentiated for.
double OfProduct(const Item& result, double incoming_rms, const Item& incoming,
                 std::span<const Item* const> inputs, double result_rms) {
  double condition = 1;
  for (const Item* other : inputs) {
    const bool is_own = ElementsOf(*other) == ElementsOf(result) && inputs.size() > 1;
    const std::optional<double> rms = is_own ? std::nullopt : RmsOf(*other);
    if (!rms) continue;
    const double terms =
        ReductionLength(ElementsOf(incoming), ElementsOf(*other), ElementsOf(result));
    condition = std::max(condition, OfTerms(terms, incoming_rms, *rms, result_rms));
  }
  return condition;
}

// Of an operand that was spread: what each element of the incoming gradient is multiplied with.
double FactorOfSpread(GradientKind kind, const Item& result, const ForwardItems& forward) {
  if (kind == GradientKind::kQuotient) {
    const std::optional<double> divisor =
        forward.inputs.size() < 2 ? std::nullopt : RmsOf(*forward.inputs[1]);
    const std::optional<double> quotient =
        forward.outputs.empty() ? std::nullopt : RmsOf(*forward.outputs[0]);
    return divisor && quotient ? std::max(*quotient, 1.0) / *divisor : 0;
  }
  double factor = 0;
  for (const Item* other : forward.inputs) {
    if (ElementsOf(*other) == ElementsOf(result)) continue;
    factor = std::max(factor, RmsOf(*other).value_or(0));
  }
  return factor;
}

// Far below the largest argument there is no weight.
double OfExponent(std::span<const Item* const> inputs) {
  double size = 1;
  for (const Item* input : inputs) {
    const std::optional<double> value = NumberOf(input->statistics[0]);
    if (value && std::isfinite(*value)) size = std::max(size, std::abs(*value));
  }
  return std::min(size, kMostAmplification);
}

}  // namespace

GradientCondition ConditionOfGradient(const Item& result, std::string_view call_name,
                                      const Item& incoming, const ForwardItems& forward) {
  GradientCondition condition;
  const GradientKind kind = GradientKindOf(call_name);
  if (kind == GradientKind::kExponential) condition.amplification = OfExponent(forward.inputs);
  const std::optional<double> from = RmsOf(incoming);
  const std::optional<double> to = RmsOf(result);
  if (!from || !to) return condition;
  if (kind == GradientKind::kProduct) {
    condition.cancellation = OfProduct(result, *from, incoming, forward.inputs, *to);
  }
  const bool is_spread = ElementsOf(incoming) > ElementsOf(result) &&
                         (kind == GradientKind::kFactor || kind == GradientKind::kQuotient);
  if (is_spread) {
    condition.cancellation = OfTerms(ElementsOf(incoming) / ElementsOf(result), *from,
                                     FactorOfSpread(kind, result, forward), *to);
  }
  return condition;
}

Propagation Joined(Propagation propagation, const GradientCondition& gradient,
                   std::span<const InputError> operands) {
  propagation.cancellation = std::max(propagation.cancellation, gradient.cancellation);
  propagation.amplification = std::max({propagation.amplification, gradient.amplification,
                                        std::min(gradient.cancellation, kMostAmplification)});
  for (const InputError& operand : operands) {
    const double error = operand.error * propagation.amplification;
    if (std::isfinite(error)) propagation.from_inputs = std::max(propagation.from_inputs, error);
  }
  return propagation;
}

}  // namespace plumbline::measure
