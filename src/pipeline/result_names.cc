#include "pipeline/result_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/file.h"

namespace plumbline::pipeline {
namespace {

std::string TimeStamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  const size_t size = std::strftime(text, sizeof(text), "%Y%m%d%H%M%S", &local);
  return std::string(text, size);
}

}  // namespace

std::string FreeStamp(const std::string& directory, std::string_view prefix,
                      std::span<const std::string_view> extensions) {
  const std::string time = TimeStamp();
  for (int attempt = 0;; ++attempt) {
    const std::string stamp = attempt == 0 ? time : fmt::format("{}_{}", time, attempt);
    const bool taken = std::ranges::any_of(extensions, [&](std::string_view extension) {
      const std::string name = fmt::format("{}_{}{}", prefix, stamp, extension);
      return KindOf(JoinPath(directory, name)) != PathKind::kMissing;
    });
    if (!taken) return stamp;
  }
}

std::string FreePath(const std::string& directory, std::string_view prefix,
                     std::string_view extension) {
  const std::string stamp = FreeStamp(directory, prefix, {&extension, 1});
  return JoinPath(directory, fmt::format("{}_{}{}", prefix, stamp, extension));
}

}  // namespace plumbline::pipeline
