// Whether MindSpore computed a call right, by the rule of its pre-check: one limit of the cosine
// and one of the absolute error for every output.

#ifndef PLUMBLINE_PRECHECK_MINDSPORE_JUDGE_H_
#define PLUMBLINE_PRECHECK_MINDSPORE_JUDGE_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "measure/standards.h"
#include "plumbline/record.h"
#include "precheck/call_value.h"
#include "precheck/outcome.h"

namespace plumbline::precheck {

// An output passes if its cosine is above and its largest absolute error below.
struct MindSporeLimits {
  double cosine = measure::kCosineStrict;
  double max_abs_error = 1e-4;  // as upstream's manual says; its program has 1e-3
};

// What one side returned, and the memory in which its tensors lie.
struct ReturnedSide {
  const CallValue* value = nullptr;
  std::span<const std::byte> memory;
};

// How the gradients of the two sides belong together.
enum class GradientOrder : uint8_t {
  kAligned,   // one per tensor of the arguments on both sides, null where there is none
  kRecorded,  // the same, and null on the tested side where none was recorded
  kListed,    // the recording leaves out some, and does not say which
};

// The rows and the status of a forward or a backward (`kind`) of `call_name`, such as
// "Mint.where.0". Rows are numbered as upstream numbers them: by what is left when absent outputs
// and, of a backward, all that is not floating were left out. A benchmark without output leaves
// nothing to judge: kSkip.
DirectionOutcome JudgeForward(std::string_view call_name, const ReturnedSide& bench,
                              const ReturnedSide& tested, const MindSporeLimits& limits);
DirectionOutcome JudgeBackward(std::string_view call_name, const ReturnedSide& bench,
                               const ReturnedSide& tested, GradientOrder order,
                               const MindSporeLimits& limits);

// "mindspore.Tensor"'s name of a dtype, "Float32"; "complex64" and such where MindSpore has none.
std::string_view MindSporeDTypeText(DType dtype);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_MINDSPORE_JUDGE_H_
