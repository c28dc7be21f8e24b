// Which statistics a recorder was asked for: summary_mode, or the categories of a static-graph
// dump, may be a list.

#ifndef PLUMBLINE_MEASURE_STATISTIC_CHOICE_H_
#define PLUMBLINE_MEASURE_STATISTIC_CHOICE_H_

#include <array>
#include <span>
#include <string>

#include "plumbline/compare.h"

namespace plumbline::measure {

// Of max, min, mean and norm.
using StatisticSet = std::array<bool, 4>;

struct StatisticChoice {
  // What no tensor of that side has and tensors of the other side do. None where nothing would be
  // left to compare.
  StatisticSet target_lacks{}, golden_lacks{};

  [[nodiscard]] bool is_complete() const;
  // Of either side.
  [[nodiscard]] StatisticSet left_out() const;
};

// Of the tensors in `rows`. One tensor alone says nothing about what was asked for.
StatisticChoice ChoiceOf(std::span<const ComparedRow> rows);

// "the target has no min and norm: only max and mean were compared". Requires: not is_complete().
std::string ChoiceText(const StatisticChoice& choice);

// Whether the digests of `rows` are XORs of words, as of `summary_mode: xor`. Unequal contents may
// have equal ones: equal words cancel in pairs.
bool AreXorDigests(std::span<const ComparedRow> rows);

// Whether a recorder may leave mean and norm out: release 26.2.0 does for integers and float64, and
// 1.2.2 the norm for complex numbers.
bool MayLackMean(const Item& item);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_STATISTIC_CHOICE_H_
