// Small questions that many passes ask about a row of a comparison or one side of it.

#ifndef PLUMBLINE_MEASURE_COMPARED_ROW_H_
#define PLUMBLINE_MEASURE_COMPARED_ROW_H_

#include <span>
#include <string>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::measure {

// Whether a verdict is one that somebody must look at: suspicious or broken.
inline bool IsBad(Verdict verdict) {
  return verdict == Verdict::kSuspicious || verdict == Verdict::kBroken;
}

// Whether the two sides agree: the same, or apart by no more than noise.
inline bool IsGood(Verdict verdict) {
  return verdict == Verdict::kSame || verdict == Verdict::kWithinNoise;
}

// Whether an item is something the call is given: an argument or a parameter.
inline bool IsInput(const Item& item) {
  return item.role == ItemRole::kInput || item.role == ItemRole::kParameter;
}

// Whether a row is something the call is given: an argument or a parameter.
inline bool IsInput(const ComparedRow& row) { return IsInput(row.item()); }

// Whether both sides have the row, as tensors.
inline bool HasTensors(const ComparedRow& row) {
  return row.target && row.golden && row.target->is_tensor && row.golden->is_tensor;
}

// Elements of the recorded shape; 1 for values without dimensions, 0 for a shape beyond 64 bits.
double ElementsOf(const Item& item);
// The recorded mean; NaN where it is not known.
double MeanOf(const Item& item);

// Whether the recorded maximum and minimum are both zero.
bool IsAllZero(const Item& item);

// Whether the recorded maximum or minimum is NaN or infinite, or the mean or norm where there are
// no such.
bool HasNonFinite(const Item& item);

// Whether an element is NaN, as far as the statistics tell: an extreme that is NaN, the norm where
// there are no such, else the mean. Infinities are none.
bool HasNan(const Item& item);

// Whether both sides hold NaN and nothing else speaks against the row: then nothing tells whether
// it is right.
bool IsNanOnBoth(const ComparedRow& row);

// The name within its call: "output.0" of "Functional.linear.0.forward.output.0".
std::string_view ShortName(const Item& item, std::string_view call_name);

// What stands in a row on one of the sides.
inline const Slot<Item>& SideOf(const ComparedRow& row, bool of_target) {
  return of_target ? row.target : row.golden;
}

// How the call is named on one of the sides; empty where that side has none.
inline const Text& NameOn(const ComparedCall& call, bool of_target) {
  return of_target ? call.target_name : call.golden_name;
}

// Whether maximum and minimum are the same: a cast to a wider type keeps them.
inline bool HasSameExtremes(const Item& a, const Item& b) {
  return a.statistics[0] == b.statistics[0] && a.statistics[1] == b.statistics[1];
}

// The rows of one call.
inline std::span<const ComparedRow> RowsOf(const Comparison& comparison, const ComparedCall& call) {
  return std::span(comparison.rows).subspan(call.first_row, call.row_count);
}

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_COMPARED_ROW_H_
