// NaN and Inf in the recorded statistics of one call.

#ifndef PLUMBLINE_PIPELINE_OVERFLOW_BAD_VALUE_H_
#define PLUMBLINE_PIPELINE_OVERFLOW_BAD_VALUE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/overflow/overflow_scan.h"
#include "plumbline/record.h"

namespace plumbline {

// What was found in one part of a call.
struct ValueJudgement {
  std::optional<BadValue> bad;  // the first bad tensor; -Inf alone gives way to worse
  std::string number;           // path of the first plain number that is NaN or infinite
  std::string number_text;      // "NaN", "Inf" or "-Inf"
  uint64_t tensors = 0;
  uint64_t not_judged = 0;  // tensors that may hold NaN, but have neither statistics nor counts
};

// Adds what `value` (any nesting) holds; `path` is its name in messages.
void Judge(const Value& value, const std::string& path, ValueJudgement& judgement);

// "NaN", "Inf", "-Inf", or empty for a finite or absent one.
std::string_view BadKindOf(const Statistic& statistic);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_OVERFLOW_BAD_VALUE_H_
