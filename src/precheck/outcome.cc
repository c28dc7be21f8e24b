#include "precheck/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace plumbline::precheck {

std::string_view StatusWord(Status status) {
  switch (status) {
    case Status::kNone: return " ";
    case Status::kPass: return "pass";
    case Status::kWarning: return "Warning";
    case Status::kError: return "error";
    case Status::kSkip: return "SKIP";
  }
  return " ";
}

std::optional<Status> ParseStatus(std::string_view word) {
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower.find_first_not_of(' ') == std::string::npos) return Status::kNone;
  for (const Status status : {Status::kPass, Status::kError}) {
    if (lower == StatusWord(status)) return status;
  }
  if (lower == "warning") return Status::kWarning;
  if (lower == "skip") return Status::kSkip;
  return std::nullopt;
}

// Upstream keeps the last one that is no pass, by which an error behind which a warning comes is a
// warning; and counts skipped outputs as good ones.
Status Worst(const std::vector<Status>& statuses) {
  Status worst = Status::kNone;
  bool any_skipped = false;
  for (const Status status : statuses) {
    if (status == Status::kSkip) any_skipped = true;
    if (status != Status::kSkip) worst = std::max(worst, status);
  }
  return worst == Status::kNone && any_skipped ? Status::kSkip : worst;
}

std::string_view CauseName(SkipCause cause) {
  switch (cause) {
    case SkipCause::kUnsupportedType: return "unsupported-type";
    case SkipCause::kNotInInventory: return "not-in-inventory";
    case SkipCause::kFiltered: return "filtered";
    case SkipCause::kRandom: return "random";
    case SkipCause::kBadArgument: return "bad-argument";
    case SkipCause::kMissingData: return "missing-data";
    case SkipCause::kCpuFailed: return "cpu-failed";
    case SkipCause::kDeviceFailed: return "device-failed";
    case SkipCause::kTimeout: return "timeout";
    case SkipCause::kCrashed: return "crashed";
    case SkipCause::kOutOfMemory: return "out-of-memory";
    case SkipCause::kBackwardSkipped: return "backward-skipped";
    case SkipCause::kNoOutput: return "no-output";
    case SkipCause::kNoCounterpart: return "no-counterpart";
  }
  return "unsupported-type";
}

std::string Skip::Text() const { return fmt::format("{}: {}", CauseName(cause), detail); }

}  // namespace plumbline::precheck
