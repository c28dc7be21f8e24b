// Results that jump: what noise in the inputs of topk, argmax, a comparison or round makes of them.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_DISCRETE_FLIP_H_
#define PLUMBLINE_PIPELINE_CULPRIT_DISCRETE_FLIP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Reason of a result that differs and is right: each side chose, compared or rounded what it read.
inline constexpr std::string_view kFlip = "flip";
// Reason of what differs because of such a result. Nothing tells whether it is right.
inline constexpr std::string_view kFollowsFlip = "follows-flip";

inline bool IsOfFlip(const ComparedRow& row) {
  return row.reason == kFlip || row.reason == kFollowsFlip;
}

// Where both sides' results in `row` are exactly what the forward call makes of that side's own
// inputs: what differs, as "routing flip: 1 of 4096 rows" (of the indices of topk, sort, argsort,
// max, min, argmax and argmin) or "flip: 1 of 4096 elements" (of comparisons, sign, round, floor,
// ceil and trunc). Nothing where it is otherwise, or cannot be told: tensors must be recorded, of
// at most 2^20 elements. Whether the inputs agree is the caller's to ask.
std::optional<std::string> ValidFlip(const Comparison& comparison, const ComparedRow& row);

// Whether what the tensors in `row` hold was taken out of those of one of the rows `flips` by calls
// that nobody recorded, the same on both sides: views, repeats, parts and casts. Every pair of
// their elements, the target's and golden's, is a pair of that row, and no larger a share of them
// differs. Of at most 2^20 elements, and of the last 64 flips.
bool IsTakenFromFlip(const Comparison& comparison, const ComparedRow& row,
                     std::span<const uint32_t> flips);

// Says in the row that it is such a flip.
void MarkAsFlip(const std::string& text, ComparedRow& row);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_DISCRETE_FLIP_H_
