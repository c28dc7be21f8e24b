#include "report/result_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace plumbline::report {
namespace {

std::string TimeStamp(StampForm form) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  const size_t size = std::strftime(
      text, sizeof(text), form == StampForm::kDigits ? "%Y%m%d%H%M%S" : "%Y%m%d_%H%M%S", &local);
  return std::string(text, size);
}

}  // namespace

FreeName FreeStamp(const std::string& directory, std::string_view prefix,
                   std::span<const std::string_view> extensions, StampForm form) {
  const std::string time = TimeStamp(form);
  for (int attempt = 0;; ++attempt) {
    std::string stamp = attempt == 0 ? time : fmt::format("{}_{}", time, attempt);
    // The hold first: between a look and a hold another process can write its files and be gone.
    auto hold = NameHold::Make(JoinPath(directory, fmt::format(".{}_{}.tmp", prefix, stamp)));
    if (hold && !*hold) continue;
    const bool taken = std::ranges::any_of(extensions, [&](std::string_view extension) {
      const std::string name = fmt::format("{}_{}{}", prefix, stamp, extension);
      return KindOf(JoinPath(directory, name)) != PathKind::kMissing;
    });
    if (!taken) return {std::move(stamp), hold ? std::move(*hold) : std::nullopt};
  }
}

FreeName FreePath(const std::string& directory, std::string_view prefix, std::string_view extension,
                  StampForm form) {
  FreeName name = FreeStamp(directory, prefix, {&extension, 1}, form);
  name.text = JoinPath(directory, fmt::format("{}_{}{}", prefix, name.text, extension));
  return name;
}

std::string FreeDirectory(const std::string& parent) {
  const std::string time = TimeStamp(StampForm::kDigits);
  std::string path = JoinPath(parent, time);
  for (int n = 1; KindOf(path) != PathKind::kMissing; ++n) {
    path = JoinPath(parent, fmt::format("{}_{}", time, n));
  }
  return path;
}

}  // namespace plumbline::report
