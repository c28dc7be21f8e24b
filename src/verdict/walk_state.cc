#include "verdict/walk_state.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "measure/compared_row.h"
#include "measure/elementwise.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "record/value.h"

namespace plumbline::verdict {

WalkState::WalkState(const measure::PairContext& context, Comparison& compared,
                     std::span<const double> measured)
    : comparison(compared),
      measured_noise(measured),
      ahead(compared, context),
      known(compared, ahead),
      forward(compared),
      sums(compared),
      biases(compared),
      parameter_gradients(compared),
      before(compared),
      exchanged(context),
      unpaired(compared) {
  product_roundoffs = FindProductRoundoffs(comparison, context);
  types = TypeChoiceOf(comparison);
}

bool WalkState::IsGradient(const ComparedRow& row) const {
  return row.golden->is_tensor && !comparison.of_saves &&
         KindOfCall(comparison.calls[row.call].name()) == CallKind::kBackward;
}

measure::Difference WalkState::DifferenceOf(const ComparedRow& row) const {
  const bool real = comparison.mode == CompareMode::kTensor;
  measure::Difference difference = ahead.Of(IndexOf(row)).difference;
  // Elements that noise moved over the edge of a relu are no local fault of its gradient.
  const double* all = std::get_if<double>(&row.tensor->relative_l2);
  if (all != nullptr && real && IsGradient(row) && noise.level() > 0 &&
      std::isfinite(difference.error)) {
    difference.error = std::min(difference.error, *all);
  }
  return difference;
}

double WalkState::RoundoffOf(const ComparedRow& row) const {
  return types.is_narrower ? measure::RoundoffOf(*row.target, *row.golden)
                           : measure::RoundoffOf(*row.golden, *row.golden);
}

double WalkState::ExplainedFor(const ComparedRow& row, double explained) const {
  const double measured = measured_noise.empty() ? 0 : measured_noise[IndexOf(row)];
  const bool exact = measure::IsExact(*row.target, *row.golden);
  return std::max(exact ? 0 : noise.AtMost(explained), measured);
}

namespace {

using measure::HasTensors;

constexpr double kLeft = 0.125;  // of a gradient, less than which is what others took away

const Item& NonZeroOf(const ComparedRow& row) {
  return measure::IsAllZero(*row.golden) ? *row.target : *row.golden;
}

// What the forward pair `call` compared, with what its gradient `result` may be off by.
double OfDistance(const WalkState& state, uint32_t call, const Item& result) {
  const ComparedCall& forward = state.comparison.calls[call];
  const ComparedCall* backward = state.forward.BackwardOf(call);
  const ForwardResult* known =
      backward == nullptr ? nullptr : state.forward.Of(backward->target_name);
  if (known == nullptr ||
      measure::DistanceOfCall(forward.target_name) == measure::Distance::kNone) {
    return 0;
  }
  std::vector<measure::InputError> operands;
  const Item* output = nullptr;
  double largest = 1;
  for (const ComparedRow& row : measure::RowsOf(state.comparison, forward)) {
    if (!HasTensors(row)) continue;
    if (measure::IsInput(row)) {
      largest = std::max(largest, measure::ElementsOf(*row.golden));
      operands.push_back({&*row.golden, known->read});
    } else if (output == nullptr) {
      output = &NonZeroOf(row);
    }
  }
  const auto gradients = measure::RowsOf(state.comparison, *backward);
  const auto incoming = std::ranges::find_if(
      gradients, [](const ComparedRow& row) { return HasTensors(row) && measure::IsInput(row); });
  if (output == nullptr || incoming == gradients.end()) return 0;
  const double rounding =
      measure::OwnError(measure::CallClass::kDefault, measure::RoundoffOf(result, result), largest);
  return measure::DistanceGradientError({result, *incoming->golden, *output}, forward.target_name,
                                        operands, rounding);
}

// What a backward call returned for a value of this shape may be off by, over what is left of it.
double OfReturned(const WalkState& state, const ComparedCall& backward, const Item& result) {
  double error = 0;
  const double size = measure::RmsOf(result).value_or(0);
  for (const ComparedRow& row : measure::RowsOf(state.comparison, backward)) {
    if (!HasTensors(row) || measure::IsInput(row) || row.golden->shape != result.shape) continue;
    const double whole = measure::RmsOf(*row.golden).value_or(0);
    if (!measure::IsGood(row.verdict) || !(size <= kLeft * whole)) continue;
    const double own = std::isfinite(row.error) ? row.error : 0;
    error = std::max(error, (own + state.RoundoffOf(row)) * whole / size);
  }
  return error;
}

// Of a call of several nodes, recorded with what the last of them returned: what it gave to `value`
// the others computed. As far off as results of that many calls.
double OfUnseenNodes(const WalkState& state, uint32_t reader, const ComparedCall& backward,
                     const Item& value) {
  const ComparedCall& forward = state.comparison.calls[reader];
  const ForwardResult* known = state.forward.Of(backward.target_name);
  const measure::CallClass kind = measure::ClassOfCall(forward.target_name);
  if (known == nullptr ||
      (kind != measure::CallClass::kDefault && kind != measure::CallClass::kComposite)) {
    return 0;
  }
  const auto returned = measure::RowsOf(state.comparison, backward);
  const bool is_seen = std::ranges::any_of(returned, [&](const ComparedRow& row) {
    return HasTensors(row) && !measure::IsInput(row) &&
           measure::ElementsOf(*row.golden) == measure::ElementsOf(value);
  });
  if (is_seen) return 0;
  measure::InputSizes inputs;
  double output = 0;
  for (const ComparedRow& row : measure::RowsOf(state.comparison, forward)) {
    if (!HasTensors(row)) continue;
    const double count = measure::ElementsOf(*row.golden);
    if (measure::IsInput(row)) {
      inputs.Add(count);
    } else {
      output = std::max(output, count);
    }
  }
  const double read = std::max(measure::RoundoffOf(value, value), known->read);
  return state.noise.AtMost(
      measure::OwnError(measure::CallClass::kComposite, read, inputs.ReductionLengthTo(output)));
}

}  // namespace

std::optional<double> ExplainedByReaders(const WalkState& state, const ComparedRow& row) {
  if (!state.IsGradient(row) || !HasTensors(row)) return std::nullopt;
  const Text& name = state.comparison.calls[row.call].target_name;
  const ForwardResult* maker = state.forward.Of(name);
  if (maker == nullptr) return std::nullopt;
  const Item& gradient = NonZeroOf(row);
  double error = 0;
  for (const ComparedRow& made :
       measure::RowsOf(state.comparison, state.comparison.calls[maker->call])) {
    if (!HasTensors(made) || measure::IsInput(made)) continue;
    if (made.golden->shape != row.golden->shape) continue;
    for (const uint32_t reader : state.forward.ReadersOf(*made.golden)) {
      const ComparedCall* backward = state.forward.BackwardOf(reader);
      if (backward == nullptr || measure::IsBad(state.comparison.calls[reader].verdict)) continue;
      error += OfDistance(state, reader, gradient) + OfReturned(state, *backward, gradient) +
               OfUnseenNodes(state, reader, *backward, *made.golden);
    }
  }
  return error > 0 && std::isfinite(error) ? std::optional(error) : std::nullopt;
}

double ExplainedByDistance(const WalkState& state, const ComparedRow& row, const Item& result) {
  const ForwardResult* forward = state.forward.Of(state.comparison.calls[row.call].target_name);
  const double error = forward == nullptr ? 0 : OfDistance(state, forward->call, result);
  return std::isfinite(error) ? error : 0;
}

double HandedOn(const WalkState& state, double explained, double measured) {
  if (!(measured <= measure::kNoiseFactor * explained)) return explained;  // also for NaN
  const bool is_all = state.comparison.mode == CompareMode::kTensor;
  return std::min(explained, is_all ? measured : measure::kNoiseFactor * measured);
}

}  // namespace plumbline::verdict
