// From everything that looks wrong to the one call to name.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_CHOOSE_CULPRIT_H_
#define PLUMBLINE_PIPELINE_CULPRIT_CHOOSE_CULPRIT_H_

#include <optional>
#include <vector>

#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/unpaired_calls.h"

namespace plumbline::pipeline {

// What the walk over the calls found, each list in recorded order.
struct Findings {
  std::vector<CulpritEvent> events;       // wrong numbers
  std::vector<CulpritEvent> other_forms;  // calls of one name with other shapes or arguments
  double noise = 0;                       // largest relative error that counts as noise
};

// The call to name, or none (docs/design/verdict.md, "From rows to the first wrong call").
std::optional<CulpritEvent> ChooseCulprit(const Run& target, const Comparison& comparison,
                                          const Findings& findings, const UnpairedCalls& unpaired);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_CHOOSE_CULPRIT_H_
