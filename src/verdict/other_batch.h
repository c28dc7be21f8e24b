// Runs that saw other data, and calls of which nothing but results is known.

#ifndef PLUMBLINE_VERDICT_OTHER_BATCH_H_
#define PLUMBLINE_VERDICT_OTHER_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::verdict {

// Two runs of the same data that cut their batches into other parts: micro batches of another
// number (docs/design/verdict.md, "Another cut of the batch").

// ComparedCall::unmatched_reason of calls that see a part of the batch which the other side has
// not. The first one says in ComparedCall::unmatched_detail what the parts are.
inline constexpr std::string_view kOtherBatch = "other-batch";

// Calls that cannot be compared one by one, as indices into Comparison::calls.
struct OtherBatch {
  std::vector<uint32_t> calls;
  uint32_t entry = 0;  // among them: where a part of the data is read first
  std::string parts;   // there: "2 of [4, 16] against 1 of [8, 16]"
  // Parts of one batch on each side, and how many batches are cut so; 0: not all in the same way.
  size_t target_parts = 0, golden_parts = 0, times = 0;

  [[nodiscard]] bool empty() const { return calls.empty(); }
};

// Where both sides read the same data from outside in other parts along its first dimension, by
// shapes and statistics: the calls that read or return such a part or what was made of one, up to
// where the parts are joined again and up to the gradients that forward calls read; and pairs that
// are numbered otherwise because of it. Nothing where the data differ, or samples were dropped.
OtherBatch FindOtherBatch(const Comparison& comparison);

// What may be rounding where neither side recorded what calls read (`data_mode`).

// Wrong rows of a comparison without inputs of forward and backward calls that a gradient of
// nothing but rounding explains, in order: gradients that are, on both sides, no larger than the
// rounding of others of their module or backward call; and behind a step results of forward calls
// that are off by what was added to all of them along some axis (with tensors), while the next
// softmax or normalisation, which loses it, agrees. It may be a fault as well: nothing proves
// either. Requires: verdicts of all rows.
std::vector<uint32_t> ResultsWithoutProof(const Comparison& comparison);

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_OTHER_BATCH_H_
