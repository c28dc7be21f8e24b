// What the inputs of a call contribute to the verdict on its results, and what they explain.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_CALL_INPUTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_CALL_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "pipeline/culprit/choose_culprit.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

struct CallInputs {
  double error = 0;                // largest relative error among agreeing or differing inputs
  Verdict worst = Verdict::kSame;  // of inputs, and of the forward call of a backward call
  double roundoff = 0;
  measure::InputSizes sizes;
  bool hide_errors = false;     // next to which the errors of the other elements vanish
  bool is_of_gradient = false;  // an optimizer's: GradientTrail
  bool forward_is_bad = false;  // of a backward call
  bool follows_flip = false;    // reads what a flip changed (discrete_flip.h)
  std::optional<uint32_t> flip_inside_from;  // of a module that has one inside alone: first call
  bool has_other_fill = false;               // masked with another number that means the same
  double factor = 1;   // the one number among the arguments, if there is but one
  size_t numbers = 0;  // arguments that are numbers
  std::vector<measure::InputError> operands;
  std::vector<CulpritEvent> arguments;  // that differ
};

// Elements of a tensor; 0 for what is none.
inline double CountOf(const Item& item) { return item.is_tensor ? measure::ElementsOf(item) : 0; }

// Relative errors of a result that are no fault.
struct Explained {
  double usual = 0;      // by the call's own rounding and by its inputs
  double cancelled = 0;  // by a sum whose terms cancel, without a ceiling
  double residue = 0;    // what becomes of operands that are rounding alone; among `cancelled`
  double alone = 0;      // whatever the inputs are
  double own = 0;        // by the call's own rounding
  double hidden = 0;     // the same, of which statistics show a small part
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_CALL_INPUTS_H_
