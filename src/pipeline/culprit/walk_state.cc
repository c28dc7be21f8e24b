#include "pipeline/culprit/walk_state.h"

#include <cmath>
#include <variant>

#include "measure/compared_row.h"
#include "record/value.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline
