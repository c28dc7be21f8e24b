// Recorded statistics as numbers.

#ifndef PLUMBLINE_RECORD_RECORDED_NUMBER_H_
#define PLUMBLINE_RECORD_RECORDED_NUMBER_H_

#include <cstdint>
#include <optional>
#include <variant>

#include "plumbline/compare.h"

namespace plumbline {

// The number in a recorded value, or nothing for null, truth values and texts.
inline std::optional<double> NumberOf(const Recorded& recorded) {
  if (const auto* v = std::get_if<double>(&recorded)) return *v;
  if (const auto* v = std::get_if<int64_t>(&recorded)) return static_cast<double>(*v);
  return std::nullopt;
}

}  // namespace plumbline

#endif  // PLUMBLINE_RECORD_RECORDED_NUMBER_H_
