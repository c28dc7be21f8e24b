// How bad a recorded call is by its NaN and Inf.

#ifndef PLUMBLINE_RECORD_OVERFLOW_LEVEL_H_
#define PLUMBLINE_RECORD_OVERFLOW_LEVEL_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plumbline {

// overflow/overflow_grade.h has what makes each.
enum class OverflowLevel : uint8_t { kMedium, kHigh, kCritical };
inline constexpr size_t kOverflowLevels = 3;

constexpr std::string_view OverflowLevelName(OverflowLevel level) {
  switch (level) {
    case OverflowLevel::kMedium:
      return "medium";
    case OverflowLevel::kHigh:
      return "high";
    case OverflowLevel::kCritical:
      break;
  }
  return "critical";
}

}  // namespace plumbline

#endif  // PLUMBLINE_RECORD_OVERFLOW_LEVEL_H_
