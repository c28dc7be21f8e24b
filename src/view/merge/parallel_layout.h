// How the ranks of a recorded run share one model, as the user says it, and the groups of ranks
// that follow from it by arithmetic.

#ifndef PLUMBLINE_VIEW_MERGE_PARALLEL_LAYOUT_H_
#define PLUMBLINE_VIEW_MERGE_PARALLEL_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::view {

inline constexpr std::string_view kDefaultOrder = "tp-cp-ep-dp-pp";  // Megatron's

// Sizes of one run; what is left of the ranks is data parallelism.
struct ParallelLayout {
  int64_t ranks = 1;     // --rank_size
  int64_t tensor = 1;    // --tp
  int64_t pipeline = 1;  // --pp
  int64_t chunks = 1;    // --vpp: parts of the model on each rank of a pipeline
  // Which dimension varies fastest over the ranks, and so on.
  std::string order = std::string(kDefaultOrder);
  int64_t context = 1, expert = 1;  // of one recording: the hint of a comparison

  [[nodiscard]] bool is_single() const { return ranks == 1; }
};

// The options as they were given: one value for one recording, two (target, golden) for a pair.
struct ParallelOptions {
  std::vector<int64_t> rank_size, tp, pp, vpp;
  std::vector<std::string> order;

  [[nodiscard]] bool are_given() const {
    return !rank_size.empty() || !tp.empty() || !pp.empty() || !vpp.empty() || !order.empty();
  }
};

// The layout of the target and, of a pair, that of golden. --vpp and --order count for a pair only
// with a value for each side. kInvalidArgument names the option that is missing or has another
// number of values.
Result<std::vector<ParallelLayout>> LayoutsOf(const ParallelOptions& options, bool is_pair);

// Whether the sizes agree with each other and with the `found` ranks of the recording. `side`:
// "target" or "golden". kInvalidArgument.
Status CheckLayout(const ParallelLayout& layout, size_t found, std::string_view side);

// Whether an order names each dimension once. `option`: how a message calls it. kInvalidArgument.
Status CheckOrder(std::string_view order, std::string_view option);

// Each group in order of its dimension; groups in order of their first rank's other dimensions.
using RankGroups = std::vector<std::vector<int64_t>>;

enum class ParallelDimension : uint8_t { kTensor, kPipeline, kExpert };

// rank = sum of index * stride, the stride being the product of the sizes of the dimensions that
// come before in the order; a group varies one dimension. Experts are divided among ranks that have
// their own part of the batch or of the sequence: where they are asked for, "cp" is 1, and else
// "ep". kInvalidArgument when the order lacks a dimension larger than 1 or has "ep" apart from
// "dp".
Result<RankGroups> GroupsByArithmetic(const ParallelLayout& layout, ParallelDimension dimension);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_PARALLEL_LAYOUT_H_
