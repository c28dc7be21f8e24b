// Rows that differ rightly: discrete results that flip within noise, and memory that a call
// replaces.

#ifndef PLUMBLINE_VERDICT_RIGHTLY_DIFFERENT_H_
#define PLUMBLINE_VERDICT_RIGHTLY_DIFFERENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::verdict {

// Results that jump: what noise in the inputs of topk, argmax, a comparison or round makes of them.

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
// ceil and trunc). So are indices that a module returns beside scores which agree, where they are
// those of the largest scores in all rows. Nothing where it is otherwise, or cannot be told:
// tensors must be recorded, of at most 2^20 elements. Whether the inputs agree is the caller's to
// ask.
std::optional<std::string> ValidFlip(const Comparison& comparison, const ComparedRow& row);

// Whether what the tensors in `row` hold was taken out of those of one of the rows `flips` by calls
// that nobody recorded, the same on both sides: views, repeats, parts and casts. Every pair of
// their elements, the target's and golden's, is a pair of that row, and no larger a share of them
// differs. Of at most 2^20 elements, and of the last 64 flips.
bool IsTakenFromFlip(const Comparison& comparison, const ComparedRow& row,
                     std::span<const uint32_t> flips);

// Whether `row`, which no recorded call returned, may be made of what follows from a flip by a call
// that nobody recorded (a grouped product, a division in place): the first input of a forward call,
// or whole numbers, with as many rows as something that follows in the eight calls before it, or
// whose module holds calls that follow: `is_beside`. A weight stands behind what it is applied to.
bool IsNearBehindFlip(const Comparison& comparison, const ComparedRow& row, bool is_beside);

// Says in the row that it is such a flip.
void MarkAsFlip(const std::string& text, ComparedRow& row);

// What a write in place replaces.

// Reason of memory that is written over before anything is made of it.
inline constexpr std::string_view kOverwritten = "overwritten";

// Whether the paired forward call `name` with these rows writes into the tensor `row`, one of its
// inputs, so that on both sides nothing is left of what was there: memory that nobody wrote yet, in
// many programs. `copy_`, `fill_`, `zero_` and random numbers; `out=` of a function;
// `__setitem__` and `index_copy_` where the index names every place: all of a dimension, true
// throughout, or each number once.
bool IsOverwritten(const ComparedRow& row, std::string_view name,
                   std::span<const ComparedRow> rows);

// Whether nothing is made of the differing contents in `row`, which no recorded call returned: the
// paired forward call takes a view of them or writes into a part, and of the next 256 calls none
// reads them, or the view, but such calls. That alone may be a wrong result as well, whose reader
// was not recorded. So it is memory that nobody wrote yet only where
// - the view is one of such memory: `is_of_unwritten`;
// - or one of these calls reads the memory when it is whole: a tensor of its type and shape that
//   agrees and comes from no recorded call (`is_known` tells by golden's item whether it was met
//   before), or is what a write in place returned;
// - or what is written into it differs: then that is judged;
// - or a communication that receives into it, or a part of it, holds a tensor of the type and shape
//   of the memory or of what is viewed, which agrees: FSDP gathers into memory that nobody wrote;
// - or the view is a `narrow`, DeepSpeed's of its buckets, and a later one of memory of this type and
//   shape takes this place, or one around it, which agrees; or one of these calls reads a tensor of
//   the type and shape of the place, or of a view of it, that agrees and that no call computed; or
//   the place agrees, and memory of this type and shape was told to be such before:
//   `is_of_known_form`.
bool IsUnwritten(const Comparison& comparison, const ComparedRow& row, bool is_of_unwritten,
                 bool is_of_known_form,
                 const std::function<bool(const Item& golden)>& is_known);

// Whether one of the next 16 calls is communication that receives a tensor.
bool IsBeforeReceiver(const Comparison& comparison, const ComparedRow& row);

// Whether the paired forward call of `row` takes a view of it; and the same, or writes into a part
// of it.
bool IsViewed(const Comparison& comparison, const ComparedRow& row);
bool IsViewedOrWritten(const Comparison& comparison, const ComparedRow& row);

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_RIGHTLY_DIFFERENT_H_
