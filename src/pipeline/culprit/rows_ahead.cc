#include "pipeline/culprit/rows_ahead.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/parallel.h"
#include "measure/compared_row.h"
#include "pipeline/culprit/content_key.h"

namespace plumbline::pipeline {
namespace {

constexpr size_t kShare = 512;  // of calls that one thread prepares in one go

}  // namespace

void RowsAhead::Prepare(std::span<const uint32_t> calls) {
  uint32_t first = std::numeric_limits<uint32_t>::max(), end = 0;
  for (const uint32_t i : calls) {
    const ComparedCall& call = comparison_.calls[i];
    first = std::min(first, call.first_row);
    end = std::max(end, call.first_row + call.row_count);
  }
  next_.first_row = first;
  next_.rows.resize(end - std::min(end, first));
  ParallelBlocks(calls.size(), kShare, [&](size_t begin, size_t until) {
    for (const uint32_t i : calls.subspan(begin, until - begin)) {
      const ComparedCall& call = comparison_.calls[i];
      for (uint32_t k = call.first_row; call.paired() && k < call.first_row + call.row_count; ++k) {
        next_.rows[k - first] = Of(comparison_.rows[k]);
      }
    }
  });
}

RowAhead RowsAhead::Of(const ComparedRow& row) const {
  const bool real = comparison_.mode == CompareMode::kTensor;
  RowAhead ahead;
  ahead.difference =
      measure::DifferenceOf(*row.target, *row.golden, context_, real ? &*row.tensor : nullptr);
  const std::optional<ContentKey> key = KeyOf(*row.golden);
  if (!key) return ahead;
  ahead.has_contents = true;
  ahead.contents = ContentKeyHash()(*key);
  ahead.has_negative = measure::IsInput(row) && !key->HasDigest();
  if (ahead.has_negative) ahead.negative = ContentKeyHash()(NegativeOf(*row.golden, *key));
  return ahead;
}

}  // namespace plumbline::pipeline
