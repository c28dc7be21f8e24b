#include "watch/live/progress.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/process/log.h"
#include "base/text/number_text.h"

namespace plumbline::watch {
namespace {

constexpr std::chrono::seconds kBetween{1};

// "5,432".
std::string InGroups(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string ByteText(uint64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"kB", "MB", "GB", "TB"};
  constexpr double kThousand = 1000;
  auto size = static_cast<double>(bytes) / kThousand;
  size_t unit = 0;
  for (; size >= kThousand && unit + 1 < kUnits.size(); ++unit) size /= kThousand;
  return fmt::format("{:.1f} {}", size, kUnits[unit]);
}

}  // namespace

std::string ProgressText(const MonitorCounts& counts, const std::string& place) {
  std::string text =
      fmt::format("monitor: step {}, {}", counts.step, CountText(counts.alerts, "alert"));
  if (counts.hits > 0) text += ", " + CountText(counts.hits, "hit");
  text += fmt::format(", {} {}", InGroups(counts.rows), counts.rows == 1 ? "row" : "rows");
  if (!place.empty()) text += fmt::format(", {} in {}", ByteText(counts.bytes), OneLine(place));
  return text;
}

MonitorProgress::MonitorProgress(std::string place, std::FILE* stream)
    : line_(stream),
      place_(std::move(place)),
      is_on_(line_.is_on() && IsLogged(LogLevel::kInfo)) {}

void MonitorProgress::Show(const MonitorCounts& counts) {
  const auto now = std::chrono::steady_clock::now();
  if (!is_on_ || now - last_ < kBetween) return;
  last_ = now;
  was_shown_ = true;
  line_.Show(ProgressText(counts, place_), /*is_end=*/false);
}

void MonitorProgress::End(const MonitorCounts& counts) {
  if (was_shown_) line_.Show(ProgressText(counts, place_), /*is_end=*/true);
}

}  // namespace plumbline::watch
