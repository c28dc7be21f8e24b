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
  kSummands,  // each rank has its own, none of which is golden's: a summand, a gradient that is
              // averaged later, the numbers of its own words: nothing to compare
  kUnknown,   // none of these: other shapes, or a dtype that has no mean
};

enum class TensorKind : uint8_t {
  kValue,
  kParameter,  // never a summand
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
// that several ranks hold count once; where such copies differ they are summands of shards. Where
// one rank has a whole tensor that is golden's and others have another one, the one that is
// farthest from golden counts, so that it is named. Requires: one part at least.
FoldedTensor FoldShards(const TensorRecord& golden, std::span<const TensorRecord* const> parts,
                        TensorKind kind = TensorKind::kValue);

// Whether the statistics are golden's but for the rounding of sums.
bool HasStatisticsOf(const TensorRecord& golden, const TensorRecord& tensor);

// Divides all statistics: of a gradient by the number of ranks that each average over their own
// part of the batch.
void Divide(TensorRecord& tensor, double divisor);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_UNSHARD_SHARD_FOLD_H_
