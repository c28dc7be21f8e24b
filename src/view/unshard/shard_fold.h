// What the ranks of a parallel run hold of one tensor of a run on one rank.

#ifndef PLUMBLINE_VIEW_UNSHARD_SHARD_FOLD_H_
#define PLUMBLINE_VIEW_UNSHARD_SHARD_FOLD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plumbline/record.h"

namespace plumbline::view {

enum class Share : uint8_t {
  kWhole,     // every rank holds all of it, with the same statistics
  kDivided,   // of golden's shape everywhere, but the ranks disagree: one of them at least is wrong
  kShards,    // parts along one dimension or several
  kPacked,    // parts with other dimensions and the same number of elements
  kAverage,   // of one element: each rank has its own, golden's is their average or sum
  kSummands,  // each rank has a summand of it, or of which it is the average: nothing to compare
  kUnknown,   // none of these: other shapes, or a dtype that has no mean
};

// One tensor, from those of the ranks.
struct FoldedTensor {
  Share share = Share::kUnknown;
  std::vector<size_t> dimensions{};  // of shards: along which golden is larger
  int64_t parts = 1;                 // of shards: into how many golden is divided
  // As one rank would have recorded it, with golden's shape. Of summands and the unknown: without
  // statistics.
  TensorRecord tensor{};
};

// How the ranks' tensors make up golden's, by shapes and statistics alone, and what comes out: of
// shards Max and Min, the mean weighted by elements, the root of the sum of squared norms. Shards
// that several ranks hold count once, as far as they are equal. Where the ranks disagree about
// a whole tensor, the one that is farthest from golden counts, so that it is named.
//
// Summands are told by their means alone, whose sum or average is golden's: they are nothing that a
// difference could be found in, and are never said to be equal. Requires: one part at least.
FoldedTensor FoldShards(const TensorRecord& golden, std::span<const TensorRecord* const> parts);

// Divides all statistics: of a gradient by the number of ranks that each average over their own
// part of the batch.
void Divide(TensorRecord& tensor, double divisor);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_UNSHARD_SHARD_FOLD_H_
