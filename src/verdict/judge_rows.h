// The walk over the calls of a comparison: the verdicts of all rows, and the first wrong call.

#ifndef PLUMBLINE_VERDICT_JUDGE_ROWS_H_
#define PLUMBLINE_VERDICT_JUDGE_ROWS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "measure/standards.h"
#include "measure/verdict.h"
#include "plumbline/compare.h"
#include "verdict/call_rows.h"
#include "verdict/choose_culprit.h"
#include "verdict/walk_state.h"

namespace plumbline::verdict {

// One walk over all calls in recorded order, which judges their rows.

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

// All that it takes until the call to name is known.

// Fills verdict, reason, error and expected of every row and the verdict of every call; returns the
// call to name (docs/design/verdict.md). The arguments are those of WalkCalls().
std::optional<CulpritEvent> FindCulprit(const Run& target, const measure::PairContext& context,
                                        Comparison& comparison,
                                        std::span<const double> measured_noise = {});

// Makes the rows as they were before they were judged.
void ForgetVerdicts(std::span<ComparedRow> rows);

// As FindCulprit(), and warns of what can neither be named nor passed.
std::optional<CulpritEvent> JudgeRows(const Run& target, const measure::PairContext& context,
                                      Comparison& comparison,
                                      std::span<const double> measured_noise = {});

// The verdict on what one call reads (judge_inputs.cc).

// Judges an input `row` of the paired call number `call` and adds it to `inputs`, those of this
// call so far: contents met before keep the verdict they had there, others come from outside the
// recording or from calls without counterpart (docs/design/verdict.md). Adds an event to
// `state.found` where the row itself is wrong; arguments that differ go to `inputs`.
void JudgeInput(WalkState& state, uint32_t call, ComparedRow& row, CallInputs& inputs);

// The verdict on what one call returns (judge_outputs.cc).

// A paired call whose inputs are judged.
struct JudgedInputs {
  uint32_t call = 0;  // index into Comparison::calls
  measure::CallClass call_class = measure::CallClass::kDefault;
  const CallInputs& inputs;
};

// Judges a result `row` of the call by its own rounding and by its inputs
// (docs/design/verdict.md, "What a correct call may do"). Adds an event to `state.found` where the
// call is to blame.
void JudgeOutput(WalkState& state, const JudgedInputs& call, ComparedRow& row);

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_JUDGE_ROWS_H_
