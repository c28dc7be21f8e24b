#include "pipeline/culprit/scaled_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "measure/standards.h"
#include "pipeline/culprit/unrecorded_step.h"

namespace plumbline::pipeline {
namespace {

constexpr size_t kFewestElements = 16;  // fewer may be alike by chance
constexpr double kMostLeft = 0.25;      // of the difference that the factor makes
constexpr double kLeastApart = 0.01;    // of a gradient and a weight, else neither is told
constexpr double kMostRounding = 2;     // of the probable one: the rounding of all together

double SumOfProducts(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> Moves(const StepTaken& step, size_t side) {
  std::vector<double> moves(step.after[side].size());
  for (size_t i = 0; i < moves.size(); ++i) moves[i] = step.after[side][i] - step.before[side][i];
  return moves;
}

// What of the moves follows the gradient where golden's are made of it and of the weight, which an
// optimizer decays. Nothing where golden's are something else: a moment, Adam.
struct WithoutDecay {
  std::vector<double> target, golden;
};
std::optional<WithoutDecay> TakeDecayAway(const StepTaken& step, std::span<const double> rounding) {
  const std::vector<double>& gradient = step.gradient;
  const std::vector<double>& weight = step.before[0];
  if (gradient.size() != weight.size()) return std::nullopt;
  WithoutDecay parts{Moves(step, 1), Moves(step, 0)};
  // Least squares for two numbers.
  const double gg = SumOfProducts(gradient, gradient), gw = SumOfProducts(gradient, weight),
               ww = SumOfProducts(weight, weight), gm = SumOfProducts(gradient, parts.golden),
               wm = SumOfProducts(weight, parts.golden), scale = gg * ww - gw * gw;
  if (!(scale > kLeastApart * gg * ww)) return std::nullopt;
  const double of_gradient = (gm * ww - wm * gw) / scale, decay = (wm * gg - gm * gw) / scale;
  double left = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double apart = parts.golden[i] - of_gradient * gradient[i] - decay * weight[i];
    left += apart * apart;
    parts.target[i] -= decay * step.before[1][i];
    parts.golden[i] = of_gradient * gradient[i];
  }
  const double rounded = SumOfProducts(rounding, rounding);
  if (!(left <= kMostRounding * kMostRounding * rounded)) return std::nullopt;
  return parts;
}

}  // namespace

std::optional<ScaledStep> FindFactor(std::span<const double> target, std::span<const double> golden,
                                     std::span<const double> rounding, double error) {
  const size_t count = golden.size();
  const double square = SumOfProducts(golden, golden);
  if (count < kFewestElements || !(square > 0)) return std::nullopt;
  const double factor = SumOfProducts(target, golden) / square;
  double left = 0;
  for (size_t i = 0; i < count; ++i) {
    const double apart = target[i] - factor * golden[i];
    left += apart * apart;
  }
  left = std::sqrt(left);
  const double length = std::sqrt(square), rounded = std::sqrt(SumOfProducts(rounding, rounding));
  const double difference = std::abs(factor - 1);
  if (!(left <= std::max(kMostLeft * difference * length, kMostRounding * rounded))) {
    return std::nullopt;
  }
  // Errors of no special direction add up to a share of them along golden's step.
  const double uncertain =
      std::max(left, rounded) / (length * std::sqrt(static_cast<double>(count)));
  const ScaledStep step{factor, measure::kNoiseFactor * std::max(uncertain, error)};
  return difference > step.explained ? std::optional(step) : std::nullopt;
}

std::optional<ScaledStep> FindScaledStep(const WalkState& state, const ComparedRow& row) {
  const std::optional<StepTaken> step = StepBefore(state, row);
  if (!step) return std::nullopt;
  const double roundoff = state.RoundoffOf(row);
  std::vector<double> rounding(step->after[0].size());
  for (size_t i = 0; i < rounding.size(); ++i) {
    rounding[i] = roundoff * std::max(std::abs(step->before[0][i]), std::abs(step->after[0][i]));
  }
  const double error = std::max({step->gradient_error, state.noise.AtMost(state.noise.level()),
                                 measure::kUnseenCalls * roundoff});
  const auto found = FindFactor(Moves(*step, 1), Moves(*step, 0), rounding, error);
  if (found) return found;
  const std::optional<WithoutDecay> parts = TakeDecayAway(*step, rounding);
  return parts ? FindFactor(parts->target, parts->golden, rounding, error) : std::nullopt;
}

CulpritFact FactOf(const ScaledStep& step) {
  return {
      {},
      "scale",
      fmt::format("the step of this parameter, in no recorded call, is {:.6g} times golden's in "
                  "all elements (noise explains {:.2g} of it)",
                  step.factor, step.explained),
      "high"};
}

}  // namespace plumbline::pipeline
