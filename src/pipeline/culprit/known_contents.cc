#include "pipeline/culprit/known_contents.h"

#include <optional>

#include "measure/compared_row.h"
#include "pipeline/culprit/row_verdict.h"

namespace plumbline::pipeline {

const ComparedRow* KnownContents::SourceOf(const measure::Difference& difference,
                                           const ComparedRow& row) const {
  using Kind = measure::Difference::Kind;
  const bool decided_bad = difference.kind == Kind::kDecided && measure::IsBad(difference.verdict);
  if (difference.kind != Kind::kNumeric && !decided_bad) return nullptr;
  const std::optional<ContentKey> key = KeyOf(*row.golden);
  if (!key) return nullptr;
  std::optional<uint32_t> found = known_.Find(*key);
  std::optional<ContentKey> target = KeyOf(*row.target);
  if (!found && target && !key->HasDigest()) {  // `-x` is not recorded
    const ContentKey negative = NegativeOf(*row.golden, *key);
    found = known_.Find(negative);
    target = NegativeOf(*row.target, *target);
  }
  if (!found) return nullptr;
  const ComparedRow& source = comparison_.rows[*found];
  if (KeyOf(*source.target) != target) return nullptr;
  const bool explains = measure::IsBad(source.verdict) || source.verdict == Verdict::kWithinNoise ||
                        (source.verdict == Verdict::kNotComparable && source.error > 0);
  return explains ? &source : nullptr;
}

void KnownContents::Expect(uint32_t index) const {
  const ComparedCall& call = comparison_.calls[index];
  if (!call.paired()) return;
  for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
    const std::optional<ContentKey> key = KeyOf(*row.golden);
    if (!key) continue;
    known_.Expect(*key);
    if (measure::IsInput(row) && !key->HasDigest()) known_.Expect(NegativeOf(*row.golden, *key));
  }
}

void KnownContents::Remember(const ComparedRow& row) {
  const std::optional<ContentKey> key = KeyOf(*row.golden);
  if (key) known_.Remember(*key, static_cast<uint32_t>(&row - comparison_.rows.data()));
}

}  // namespace plumbline::pipeline
