#include "pipeline/culprit/known_contents.h"

#include <cmath>
#include <optional>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"

namespace plumbline::pipeline {
namespace {

// Whether `wide` holds the values of `narrow`, a tensor of a narrower floating type, as far as
// recorded: such a cast is exact, but recorders sum up in the type of the tensor, so that mean and
// norm are those of the narrow one to its rounding.
bool IsCastOf(const Item& wide, const Item& narrow) {
  constexpr double kRoundings = 4;
  const auto key = KeyOf(wide), from = KeyOf(narrow);
  if (!key || !from || key->HasDigest() || from->HasDigest()) return false;
  if (key->element_count != from->element_count) return false;
  const double roundoff = measure::RoundoffOf(narrow, narrow);
  if (!(roundoff > measure::RoundoffOf(wide, wide))) return false;
  if (key->statistics[0] != from->statistics[0] || key->statistics[1] != from->statistics[1]) {
    return false;
  }
  const std::optional<double> size = measure::RmsOf(wide);
  const auto is_near = [&](size_t which, double scale) {
    const std::optional<double> a = NumberOf(wide.statistics[which]);
    const std::optional<double> b = NumberOf(narrow.statistics[which]);
    return a && b && std::abs(*a - *b) <= kRoundings * roundoff * scale;
  };
  return size && is_near(2, *size) && is_near(3, *size * std::sqrt(measure::ElementsOf(wide)));
}

}  // namespace

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
  const bool is_cast = !is_negative && IsCastOf(*row.target, *source.target);
  if (KeyOf(*source.target) != target && !is_cast) return nullptr;
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
