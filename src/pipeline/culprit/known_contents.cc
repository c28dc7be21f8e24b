#include "pipeline/culprit/known_contents.h"

#include <optional>

#include "measure/compared_row.h"

namespace plumbline::pipeline {

const ComparedRow* KnownContents::SourceOf(const measure::Difference& difference,
                                           const ComparedRow& row) const {
  using Kind = measure::Difference::Kind;
  const bool decided_bad = difference.kind == Kind::kDecided && measure::IsBad(difference.verdict);
  if (difference.kind != Kind::kNumeric && !decided_bad) return nullptr;
  const RowAhead& ahead = ahead_.Of(IndexOf(row));
  if (!ahead.has_contents) return nullptr;
  const auto negative = [](const Item& item) { return NegativeOf(item, *KeyOf(item)); };
  std::optional<uint32_t> found = known_.Find(ahead.contents, [&] { return KeyOf(*row.golden); });
  const bool is_negative = !found && ahead.has_negative;
  // `-x` is not recorded
  if (is_negative) found = known_.Find(ahead.negative, [&] { return negative(*row.golden); });
  if (!found) return nullptr;
  std::optional<ContentKey> target = KeyOf(*row.target);
  if (is_negative && !target) return nullptr;
  if (is_negative) target = NegativeOf(*row.target, *target);
  const ComparedRow& source = comparison_.rows[*found];
  if (KeyOf(*source.target) != target) return nullptr;
  const bool explains = measure::IsBad(source.verdict) || source.verdict == Verdict::kWithinNoise ||
                        (source.verdict == Verdict::kNotComparable && source.error > 0);
  return explains ? &source : nullptr;
}

void KnownContents::Expect(uint32_t index) const {
  const ComparedCall& call = comparison_.calls[index];
  if (!call.paired()) return;
  for (uint32_t k = call.first_row; k < call.first_row + call.row_count; ++k) {
    const RowAhead& ahead = ahead_.Of(k);
    if (ahead.has_contents) known_.Expect(ahead.contents);
    if (ahead.has_negative) known_.Expect(ahead.negative);
  }
}

void KnownContents::Remember(const ComparedRow& row) {
  const uint32_t index = IndexOf(row);
  const RowAhead& ahead = ahead_.Of(index);
  if (ahead.has_contents) known_.Remember(ahead.contents, index);
}

}  // namespace plumbline::pipeline
