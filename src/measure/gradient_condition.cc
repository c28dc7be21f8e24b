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

// Whether nothing is left of the sum of all elements but what their errors leave.
bool AddsUpToNothing(const InputError& input, double rms) {
  const std::optional<double> mean = NumberOf(input.golden->statistics[2]);
  return mean && std::abs(*mean) <= kNoiseFactor * input.error * rms;
}

// Of the matrices that forward multiplied, the one that is not differentiated for.
void AddProduct(const Item& result, const InputError& came_in, std::span<const Item* const> inputs,
                GradientCondition& found) {
  const Item& incoming = *came_in.golden;
  const double incoming_rms = RmsOf(incoming).value_or(0);
  const double result_rms = RmsOf(result).value_or(0);
  for (const Item* other : inputs) {
    const bool is_own = ElementsOf(*other) == ElementsOf(result) && inputs.size() > 1;
    const std::optional<double> rms = is_own ? std::nullopt : RmsOf(*other);
    if (!rms) continue;
    const double terms =
        ReductionLength(ElementsOf(incoming), ElementsOf(*other), ElementsOf(result));
    found.terms = std::max(found.terms, terms);
    const double condition = OfTerms(terms, incoming_rms, *rms, result_rms);
    if (!(condition > found.cancellation)) continue;
    found.cancellation = condition;
    found.coherence =
        AddsUpToNothing(came_in, incoming_rms) ? std::min(condition, std::sqrt(terms)) : 1;
  }
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

// Root mean square of what is left after the mean is taken away.
std::optional<double> DeviationOf(const Item& item) {
  const std::optional<double> rms = RmsOf(item);
  const std::optional<double> mean = NumberOf(item.statistics[2]);
  const double variance = rms && mean ? *rms * *rms - *mean * *mean : 0;
  return variance > 0 ? std::optional(std::sqrt(variance)) : std::nullopt;
}

// y = w (x - mean) / deviation: w / deviation times what comes in, less what of that changes
// neither mean nor deviation of the result. After a loss that hangs on these alone nothing is left.
double OfNormalisation(const Item& result, double incoming_rms, const ForwardItems& forward,
                       double result_rms) {
  if (forward.inputs.empty() || forward.outputs.empty()) return 1;
  const Item& x = *forward.inputs[0];
  if (ElementsOf(x) != ElementsOf(result)) return 1;
  const std::optional<double> from = DeviationOf(x);
  const std::optional<double> to = DeviationOf(*forward.outputs[0]);
  return from && to ? OfTerms(1, incoming_rms, *to / *from, result_rms) : 1;
}

// Of softmax, w (g - sum(w g)) for shares w, and of its logarithm, g - w sum(g): what is the same
// for all arguments of a row is taken away.
double OfShares(std::string_view call_name, double incoming_rms, const ForwardItems& forward,
                double result_rms) {
  const bool is_logarithm = call_name.find("log_softmax") != call_name.npos;
  if (!is_logarithm && call_name.find("softmax") == call_name.npos) return 1;
  const std::optional<double> shares =
      forward.outputs.empty() ? std::nullopt : RmsOf(*forward.outputs[0]);
  if (!is_logarithm && !shares) return 1;
  return OfTerms(1, incoming_rms, is_logarithm ? 1 : *shares, result_rms);
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

// Of an angle, g x / r^2: what is near zero has the largest gradients, which its own error over its
// distance from zero is in.
double OfAngle(const Item& result, double incoming_rms, const ForwardItems& forward) {
  const auto largest_of = [](const Item& item) {  // of complex numbers no norm is recorded
    return std::max(std::abs(NumberOf(item.statistics[0]).value_or(0)),
                    std::abs(NumberOf(item.statistics[1]).value_or(0)));
  };
  double size = 0;
  for (const Item* input : forward.inputs) {
    const std::optional<double> rms = RmsOf(*input);
    size = std::hypot(size, rms ? *rms : largest_of(*input));
  }
  return OfTerms(1, largest_of(result), size, incoming_rms);
}

}  // namespace

GradientCondition ConditionOfGradient(const Item& result, std::string_view call_name,
                                      const InputError& came_in, const ForwardItems& forward) {
  GradientCondition condition;
  const Item& incoming = *came_in.golden;
  const GradientKind kind = GradientKindOf(call_name);
  if (kind == GradientKind::kExponential) condition.amplification = OfExponent(forward.inputs);
  const std::optional<double> from = RmsOf(incoming);
  const std::optional<double> to = RmsOf(result);
  if (kind == GradientKind::kAngle && from) {
    condition.amplification = std::min(OfAngle(result, *from, forward), kMostAmplification);
  }
  if (!from || !to) return condition;
  if (kind == GradientKind::kProduct) {
    AddProduct(result, came_in, forward.inputs, condition);
  }
  if (kind == GradientKind::kExponential && ElementsOf(incoming) == ElementsOf(result)) {
    condition.cancellation = OfShares(call_name, *from, forward, *to);
  }
  if (kind == GradientKind::kNormalisation) {
    condition.cancellation = OfNormalisation(result, *from, forward, *to);
  }
  const bool is_spread = ElementsOf(incoming) > ElementsOf(result) &&
                         (kind == GradientKind::kFactor || kind == GradientKind::kQuotient);
  if (is_spread) {
    condition.cancellation = OfTerms(ElementsOf(incoming) / ElementsOf(result), *from,
                                     FactorOfSpread(kind, result, forward), *to);
  }
  return condition;
}

double ConditionBySlope(const Item& x, const Item& y, const Item& gradient_of_x,
                        const Item& gradient_of_y, double most) {
  const std::optional<double> in = RmsOf(x), out = RmsOf(y);
  const std::optional<double> to = RmsOf(gradient_of_x), from = RmsOf(gradient_of_y);
  if (!in || !out || !to || !from) return 1;
  const double share = std::sqrt(ElementsOf(x) / ElementsOf(y));
  const double condition = *in * *to * share / (*from * *out);
  return condition > 1 ? std::min(condition, most) : 1;
}

Propagation Joined(Propagation propagation, const GradientCondition& gradient,
                   std::span<const InputError> operands) {
  propagation.cancellation = std::max(propagation.cancellation, gradient.cancellation);
  propagation.coherence = gradient.coherence;
  propagation.amplification = std::max({propagation.amplification, gradient.amplification,
                                        std::min(gradient.cancellation, kMostAmplification)});
  for (const InputError& operand : operands) {
    const double error = operand.error * propagation.amplification;
    if (std::isfinite(error)) propagation.from_inputs = std::max(propagation.from_inputs, error);
  }
  return propagation;
}

}  // namespace plumbline::measure
