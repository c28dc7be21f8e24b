// Where two runs part: one walk over all calls in recorded order, which judges their rows.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_DIVERGENCE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_DIVERGENCE_H_

#include <optional>
#include <span>
#include <vector>

#include "measure/verdict.h"
#include "pipeline/culprit/culprit_text.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// What a walk ends with.
struct Walk {
  std::optional<CulpritEvent> culprit;  // the call to name; none: nothing is wrong
  // Per call: it has no counterpart, and a result of it arrived where both sides agree closely.
  std::vector<bool> is_right;
  double noise = 0;    // largest relative error that counts as noise
  double ceiling = 0;  // what no rounding comes to in the types met, however many calls it grows in
};

// Fills verdict, reason, error and expected of every row, and the verdict of every call
// (docs/design/verdict.md). Requires: rows and calls of `comparison` are filled, with metrics and
// reasons of unmatched calls. `target` supplies stacks and enclosing modules. `measured_noise`:
// empty, or per row the relative error that a third run explains.
Walk WalkCalls(const Run& target, const measure::PairContext& context, Comparison& comparison,
               std::span<const double> measured_noise = {});

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_DIVERGENCE_H_
