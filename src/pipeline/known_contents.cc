#include "pipeline/known_contents.h"

#include <utility>

#include "measure/compared_row.h"
#include "pipeline/row_verdict.h"

namespace plumbline::pipeline {

const ComparedRow* KnownContents::SourceOf(const measure::Difference& difference,
                                           const ComparedRow& row) const {
  using Kind = measure::Difference::Kind;
  const bool decided_bad = difference.kind == Kind::kDecided && measure::IsBad(difference.verdict);
  if (difference.kind != Kind::kNumeric && !decided_bad) return nullptr;
  const std::optional<ContentKey> key = KeyOf(*row.golden);
  if (!key) return nullptr;
  const auto found = known_.find(*key);
  if (found == known_.end() || found->second.target != KeyOf(*row.target)) return nullptr;
  const ComparedRow& source = comparison_.rows[found->second.row];
  const bool explains = measure::IsBad(source.verdict) || source.verdict == Verdict::kWithinNoise ||
                        (source.verdict == Verdict::kNotComparable && source.error > 0);
  return explains ? &source : nullptr;
}

void KnownContents::Remember(const ComparedRow& row) {
  std::optional<ContentKey> key = KeyOf(*row.golden);
  if (!key) return;
  const auto index = static_cast<uint32_t>(&row - comparison_.rows.data());
  known_.insert_or_assign(std::move(*key), Known{index, KeyOf(*row.target)});
}

}  // namespace plumbline::pipeline
