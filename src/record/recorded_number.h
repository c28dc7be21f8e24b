// Recorded statistics as numbers.

#ifndef PLUMBLINE_RECORD_RECORDED_NUMBER_H_
#define PLUMBLINE_RECORD_RECORDED_NUMBER_H_

#include <cstdint>
#include <optional>
#include <variant>

#include "plumbline/compare.h"
#include "plumbline/record.h"

namespace plumbline {

// The number in a recorded value, or nothing for null, truth values and texts.
inline std::optional<double> NumberOf(const Recorded& recorded) {
  if (const auto* v = std::get_if<double>(&recorded)) return *v;
  if (const auto* v = std::get_if<int64_t>(&recorded)) return static_cast<double>(*v);
  return std::nullopt;
}

// The same of a statistic.
inline std::optional<double> NumberOf(const Statistic& statistic) {
  if (const auto* v = std::get_if<double>(&statistic)) return *v;
  if (const auto* v = std::get_if<int64_t>(&statistic)) return static_cast<double>(*v);
  return std::nullopt;
}

// The same with truth values as 0 and 1.
inline std::optional<double> NumberOrTruth(const Statistic& statistic) {
  if (const auto* v = std::get_if<bool>(&statistic)) return *v ? 1.0 : 0.0;
  return NumberOf(statistic);
}

}  // namespace plumbline

#endif  // PLUMBLINE_RECORD_RECORDED_NUMBER_H_
