#include "watch/rules/watch_row.h"

#include <fmt/format.h>

#include "base/text/number_text.h"

namespace plumbline::watch {
namespace {

// Of several checks those that hit, where one does; each in its place, with blanks between.
template <class Part>
std::string JoinedChecks(const WatchRow& row, const Part& part) {
  std::string text;
  for (const RowCheck& check : row.checks) {
    if (row.verdict == Truth::kTrue && check.truth != Truth::kTrue) continue;
    const std::string one = part(check);
    if (one.empty()) continue;
    text += (text.empty() ? "" : " ") + one;
  }
  return text;
}

// "abs_mean 2.1e-10 < 1e-9", or what a hit of another form is.
std::string CheckText(const RowCheck& check) {
  switch (check.quantity) {
    case Quantity::kOverflow:
      return fmt::format("{} NaN or Inf", IntervalText(check.actual));
    case Quantity::kOperatorOverflow:
      return "the operator overflowed";
    case Quantity::kUnchanged:
      return fmt::format("unchanged, {}={}", check.parameter, PythonFloat(check.threshold));
    default:
      break;
  }
  std::string_view name = check.parameter;
  for (const std::string_view end : {"_gt", "_lt", "_ge"}) {
    if (name.ends_with(end)) name.remove_suffix(end.size());
  }
  return fmt::format("{} {} {} {}", name, IntervalText(check.actual),
                     RelationText(check.relation), IntervalText(Interval::Of(check.threshold)));
}

std::string PlaceText(const WatchRow& row) {
  std::string text = fmt::format("step {} rank {} {} {} {}", row.step, row.rank, row.name, row.io,
                                 row.slot);
  if (row.prev_step) text += fmt::format(", before: step {}", *row.prev_step);
  return text;
}

}  // namespace

std::string_view VerdictText(Truth verdict) {
  if (verdict == Truth::kUnknown) return "not_evaluated";
  return verdict == Truth::kTrue ? "hit" : "no_hit";
}

bool HasNumber(const RowCheck& check) {
  return check.quantity != Quantity::kOverflow && check.quantity != Quantity::kOperatorOverflow;
}

RuleCounts& RuleCounts::operator+=(const RuleCounts& other) {
  selected += other.selected;
  hits += other.hits;
  passes += other.passes;
  unjudged += other.unjudged;
  for (size_t i = 0; i < kReasonCount; ++i) reasons[i] += other.reasons[i];
  return *this;
}

std::string CountsText(const RuleCounts& counts) {
  std::string text = fmt::format("{}, {} no hit, {} not evaluated",
                                 CountText(counts.hits, "hit"), counts.passes, counts.unjudged);
  std::string reasons;
  for (int i = 0; i < kReasonCount; ++i) {
    const uint64_t count = counts.reasons[static_cast<size_t>(i)];
    if (count == 0) continue;
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", ReasonWord(i), count);
  }
  return reasons.empty() ? text : fmt::format("{} ({})", text, reasons);
}

std::string HitText(const Rule& rule, const WatchRow& row) {
  std::string checks;
  for (const RowCheck& check : row.checks) {
    if (check.truth != Truth::kTrue) continue;
    checks += (checks.empty() ? "" : ", ") + CheckText(check);
  }
  if (checks.empty()) checks = rule.text;
  return fmt::format("{} at {} ({})", rule.name, PlaceText(row), checks);
}

std::array<std::string, kWatchColumns.size()> WatchCells(const Rule& rule, const WatchRow& row) {
  return {rule.name,
          std::string(SeverityName(rule.severity)),
          std::to_string(row.step),
          row.prev_step ? std::to_string(*row.prev_step) : "",
          std::to_string(row.rank),
          row.graph,
          row.name,
          row.io,
          row.slot,
          row.dtype,
          row.shape,
          JoinedChecks(row, [](const RowCheck& check) { return std::string(check.parameter); }),
          JoinedChecks(row,
                 [](const RowCheck& check) {
                   return HasNumber(check) ? IntervalText(Interval::Of(check.threshold))
                                           : std::string();
                 }),
          JoinedChecks(row,
                 [](const RowCheck& check) {
                   return check.reasons != 0 && check.truth == Truth::kUnknown &&
                                  !check.actual.is_bounded()
                              ? std::string("?")
                              : IntervalText(check.actual);
                 }),
          std::string(VerdictText(row.verdict)),
          ReasonText(row.reasons),
          row.verdict == Truth::kUnknown ? std::to_string(UpstreamCode(row.reasons)) : "0",
          row.source_line,
          row.file};
}

}  // namespace plumbline::watch
