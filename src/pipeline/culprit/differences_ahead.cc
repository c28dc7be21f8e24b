#include "pipeline/culprit/differences_ahead.h"

#include <algorithm>
#include <limits>

#include "base/parallel.h"

namespace plumbline::pipeline {
namespace {

constexpr size_t kShare = 512;  // of calls that one thread measures in one go

}  // namespace

void DifferencesAhead::Measure(std::span<const uint32_t> calls) {
  first_row_ = std::numeric_limits<uint32_t>::max();
  uint32_t end = 0;
  for (const uint32_t i : calls) {
    const ComparedCall& call = comparison_.calls[i];
    first_row_ = std::min(first_row_, call.first_row);
    end = std::max(end, call.first_row + call.row_count);
  }
  differences_.resize(end - std::min(end, first_row_));
  const bool real = comparison_.mode == CompareMode::kTensor;
  ParallelBlocks(calls.size(), kShare, [&](size_t begin, size_t until) {
    for (const uint32_t i : calls.subspan(begin, until - begin)) {
      const ComparedCall& call = comparison_.calls[i];
      for (uint32_t k = call.first_row; call.paired() && k < call.first_row + call.row_count; ++k) {
        const ComparedRow& row = comparison_.rows[k];
        differences_[k - first_row_] = measure::DifferenceOf(*row.target, *row.golden, context_,
                                                             real ? &*row.tensor : nullptr);
      }
    }
  });
}

}  // namespace plumbline::pipeline
