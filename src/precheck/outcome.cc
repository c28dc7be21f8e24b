#include "precheck/outcome.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text_parts.h"

namespace plumbline::precheck {
namespace {

constexpr std::string_view kOnDevice = "on the device: ";

// Ends of a process, which happen on either side.
bool IsEnd(SkipCause cause) { return cause == SkipCause::kCrashed || cause == SkipCause::kTimeout; }

}  // namespace

std::string_view StatusWord(CheckStatus status) {
  switch (status) {
    case CheckStatus::kNone:
      return " ";
    case CheckStatus::kPass:
      return "pass";
    case CheckStatus::kWarning:
      return "Warning";
    case CheckStatus::kError:
      return "error";
    case CheckStatus::kSkip:
      return "SKIP";
  }
  return " ";
}

std::optional<CheckStatus> ParseStatus(std::string_view word) {
  const std::string lower = LowerCase(word);
  if (lower.find_first_not_of(' ') == std::string::npos) return CheckStatus::kNone;
  for (const CheckStatus status : {CheckStatus::kPass, CheckStatus::kError}) {
    if (lower == StatusWord(status)) return status;
  }
  if (lower == "warning") return CheckStatus::kWarning;
  if (lower == "skip") return CheckStatus::kSkip;
  return std::nullopt;
}

// Upstream keeps the last one that is no pass, by which an error behind which a warning comes is a
// warning; and counts skipped outputs as good ones.
CheckStatus Worst(const std::vector<CheckStatus>& statuses) {
  CheckStatus worst = CheckStatus::kNone;
  bool any_skipped = false;
  for (const CheckStatus status : statuses) {
    if (status == CheckStatus::kSkip) any_skipped = true;
    if (status != CheckStatus::kSkip) worst = std::max(worst, status);
  }
  return worst == CheckStatus::kNone && any_skipped ? CheckStatus::kSkip : worst;
}

std::string_view CauseName(SkipCause cause) {
  switch (cause) {
    case SkipCause::kUnsupportedType:
      return "unsupported-type";
    case SkipCause::kNotInInventory:
      return "not-in-inventory";
    case SkipCause::kFiltered:
      return "filtered";
    case SkipCause::kRandom:
      return "random";
    case SkipCause::kBadArgument:
      return "bad-argument";
    case SkipCause::kMissingData:
      return "missing-data";
    case SkipCause::kCpuFailed:
      return "cpu-failed";
    case SkipCause::kDeviceFailed:
      return "device-failed";
    case SkipCause::kTimeout:
      return "timeout";
    case SkipCause::kCrashed:
      return "crashed";
    case SkipCause::kOutOfMemory:
      return "out-of-memory";
    case SkipCause::kBackwardSkipped:
      return "backward-skipped";
    case SkipCause::kNoOutput:
      return "no-output";
    case SkipCause::kNoCounterpart:
      return "no-counterpart";
    case SkipCause::kOther:
      return "other";
  }
  return "unsupported-type";
}

std::optional<SkipCause> ParseCause(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(SkipCause::kOther); ++i) {
    if (CauseName(static_cast<SkipCause>(i)) == name) return static_cast<SkipCause>(i);
  }
  return std::nullopt;
}

std::string Skip::Text() const { return fmt::format("{}: {}", CauseName(cause), detail); }

Skip ParseSkip(std::string_view text) {
  const size_t colon = text.find(": ");
  const auto cause = ParseCause(text.substr(0, colon));
  if (!cause || colon == std::string_view::npos) return {SkipCause::kOther, std::string(text)};
  return {*cause, std::string(text.substr(colon + 2))};
}

DirectionOutcome DirectionOutcome::Skipped(Skip skip) {
  return {CheckStatus::kSkip, {}, std::move(skip)};
}

Skip OnDevice(Skip skip) {
  if (IsEnd(skip.cause)) skip.detail.insert(0, kOnDevice);
  return skip;
}

bool IsDeviceFailure(const Skip& skip) {
  if (skip.cause == SkipCause::kDeviceFailed) return true;
  return IsEnd(skip.cause) && skip.detail.starts_with(kOnDevice);
}

}  // namespace plumbline::precheck
