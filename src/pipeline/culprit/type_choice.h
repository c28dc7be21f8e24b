// Whether the runs compute in other types on purpose.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_TYPE_CHOICE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_TYPE_CHOICE_H_

#include <cstdint>
#include <optional>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

struct TypeChoice {
  // The target keeps many of its values in a narrower type (autocast). A few are a fault.
  bool is_narrower = false;
  // Most calls that compute have floating types that cannot stand against golden's: float64
  // against float32. Then that is what the runs differ in, not the first such call.
  bool is_other = false;
  // Where is_narrower holds: the call that is the first to read or return a narrower tensor, if it
  // computes that of floating tensors of golden's types. A type given to it as an argument is no
  // choice of the run, which narrows nothing else: all that is narrower follows from it.
  std::optional<uint32_t> starts_at;
};

TypeChoice TypeChoiceOf(const Comparison& comparison);

// Where the target keeps many values in a narrower type, the first row of such a tensor gets the
// note report::kNarrowed: "bfloat16 from Functional.conv2d.0.forward on (218 calls)".
void NoteNarrowed(Comparison& comparison);

// Whether a floating type given as an argument is narrower in the target.
bool IsNarrowerType(const Item& target, const Item& golden);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_TYPE_CHOICE_H_
