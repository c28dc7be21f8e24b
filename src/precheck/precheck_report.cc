#include "precheck/precheck_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/process/log.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "report/findings.h"

namespace plumbline::precheck {
namespace {

constexpr size_t kNextWorst = 9;
constexpr size_t kLongestReason = 240;

// The share of elements that are off by more than a bound, of the coarsest bound that any exceeds.
struct ShareOff {
  double share = 0;
  std::string_view bound;
};
std::optional<ShareOff> ShareOffOf(const OutputRow& row) {
  const std::pair<const Cell&, std::string_view> shares[] = {
      {row.hundredth, "1 %"}, {row.thousandth, "0.1 %"}, {row.ten_thousandth, "0.01 %"}};
  for (const auto& [cell, bound] : shares) {
    if (!cell) continue;
    // NaN is no share: nothing was near.
    const double off = std::isnan(cell->value) ? 1.0 : 1.0 - cell->value;
    if (off > 0) return ShareOff{off, bound};
  }
  if (row.error_rate && row.error_rate->value > 0) {
    return ShareOff{row.error_rate->value, ""};
  }
  return std::nullopt;
}

std::string OneLineOf(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_blank = c == '\n' || c == '\r' || c == ' ';
    if (is_blank && (line.empty() || line.back() == ' ')) continue;
    line += is_blank ? ' ' : c;
  }
  while (line.ends_with(' ')) line.pop_back();
  if (line.size() > kLongestReason) line = line.substr(0, kLongestReason) + "...";
  return line;
}

std::string ShortNumber(double value) {
  std::string text;
  AppendGeneral(value, 4, text);
  return text;
}

std::string CountsText(const StatusCounts& counts) {
  const std::pair<CheckStatus, std::string_view> words[] = {{CheckStatus::kError, "error"},
                                                            {CheckStatus::kWarning, "warning"},
                                                            {CheckStatus::kPass, "pass"},
                                                            {CheckStatus::kSkip, "skipped"}};
  std::string text;
  for (const auto& [status, word] : words) {
    const uint64_t count = counts[static_cast<size_t>(status)];
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
  }
  return text.empty() ? "none" : text;
}

// "wrong: X: why".
std::string SentenceOf(const NotPassed& call, std::string_view word) {
  const OutputRow* const row = WorstRow(call.outcome);
  if (row == nullptr) return fmt::format("{}{}", word, call.outcome.name);
  return fmt::format("{}{}: {}", word, OutputText(row->name), ReasonText(*row));
}

const NotPassed* WorstOf(const PrecheckReport& report, CheckStatus status) {
  for (const NotPassed& call : report.not_passed()) {
    if (CallStatus(call.outcome.forward.status, call.outcome.backward.status) == status) {
      return &call;
    }
  }
  return nullptr;
}

// Of what this run did not judge again.
std::string EarlierText(const PrecheckReport& report) {
  if (report.earlier() == 0) return {};
  return fmt::format("; {} by an earlier run", CountText(report.earlier(), "call"));
}

// "6 random, 5 filtered": why calls have no verdict.
std::string CausesText(const PrecheckReport& report, uint64_t not_reached) {
  std::string text;
  const auto add = [&](uint64_t calls, std::string_view why) {
    if (calls > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", calls, why);
  };
  for (const CauseCount& cause : report.causes()) add(cause.not_judged, CauseName(cause.cause));
  add(report.count(CheckStatus::kNone), "nothing to judge");
  add(not_reached, "not reached");
  return text;
}

// That no judged call is wrong, of how many, and why others were not judged.
std::string NothingWrong(const PrecheckReport& report) {
  const uint64_t judged = report.judged_calls();
  const uint64_t all =
      std::max(report.all_calls(), report.was_interrupted ? report.planned_calls : 0);
  std::string line = "no wrong API in ";
  if (judged < all) line += fmt::format("{} of ", judged);
  line += fmt::format("{} ({} judged", CountText(all, "call"),
                      CountText(report.outputs_judged(), "output"));
  if (const uint64_t warned = report.count(CheckStatus::kWarning); warned > 0) {
    line += fmt::format("; {} with a warning", CountText(warned, "call"));
  }
  line += EarlierText(report) + ")";
  if (judged == all) return line;
  return line + fmt::format(": {} not judged ({})", all - judged,
                            CausesText(report, all - report.all_calls()));
}

// The calls that come behind the first one.
template <class AddLine>
void AddNext(const PrecheckReport& report, const AddLine& add) {
  const bool starts_wrong = report.count(CheckStatus::kError) > 0;
  size_t shown = 0;
  for (size_t i = starts_wrong ? 1 : 0; i < report.not_passed().size(); ++i) {
    const NotPassed& call = report.not_passed()[i];
    if (call.severity < 1 || shown == kNextWorst) break;
    if (shown++ == 0) add(starts_wrong ? "  next:" : "  warnings:");
    add(fmt::format("    {}", SentenceOf(call, call.severity < 2 ? "warning: " : "")));
  }
}

void AppendCounts(const StatusCounts& counts, std::string_view name, std::string& out) {
  out += fmt::format("\"{}\":{{", name);
  for (size_t i = 0; i < kStatuses; ++i) {
    const auto status = static_cast<CheckStatus>(i);
    const std::string_view word = status == CheckStatus::kNone ? "none" : StatusWord(status);
    out += fmt::format("{}\"{}\":{}", i > 0 ? "," : "", word, counts[i]);
  }
  out += "}";
}

void AppendMember(std::string_view name, std::string_view text, std::string& out) {
  out += fmt::format("\"{}\":", name);
  json::AppendString(text, out);
  out += ',';
}

}  // namespace

double SeverityOf(const OutputRow& row) {
  if (!IsWrong(row.status)) return 0;
  const double base = row.status == CheckStatus::kError ? 2 : 1;
  // What has no numbers differs in kind or shape, which is as wrong as can be.
  const bool is_measured = row.max_abs_error || row.error_rate || row.hundredth || row.max_ulp;
  if (!is_measured) return base + 0.999;
  double worst = 0;
  if (const auto off = ShareOffOf(row)) worst = std::max(worst, off->share);
  if (row.inf_nan_error_ratio) worst = std::max(worst, row.inf_nan_error_ratio->value);
  return base + std::clamp(worst, 0.0, 0.999);
}

ResultForm FormOf(const PrecheckReport& report) {
  return report.framework == "pytorch" ? ResultForm::kPyTorch : ResultForm::kMindSpore;
}

std::string ExtractCommand(const PrecheckReport& report, std::string_view call) {
  // The test runs where the call went wrong.
  if (report.framework != "pytorch" || report.dump_json.empty()) return {};
  if (OneLine(call) != call) return {};
  std::string command = fmt::format("plumb extract {} {}", report::ShellWord(report.dump_json),
                                    report::ShellWord(std::string(call)));
  if (!report.device.empty() && report.device != "cpu") {
    command += " --device " + report::ShellWord(report.device);
  }
  return command;
}

std::string ResumeCommand(const PrecheckReport& report) {
  return fmt::format("plumb precheck {} --csv_path {}{}", report::ShellWord(report.dump_json),
                     report::ShellWord(report.result_path), report.resume_options);
}

// A skip counts where nothing worse is known of the call.
CheckStatus CallStatus(CheckStatus forward, CheckStatus backward) {
  const CheckStatus judged = Worst({forward, backward});
  const bool any_skipped = forward == CheckStatus::kSkip || backward == CheckStatus::kSkip;
  return any_skipped && (judged == CheckStatus::kPass || judged == CheckStatus::kNone)
             ? CheckStatus::kSkip
             : judged;
}

void PrecheckReport::Count(CheckStatus forward, CheckStatus backward) {
  ++calls_[static_cast<size_t>(CallStatus(forward, backward))];
  ++forward_[static_cast<size_t>(forward)];
  ++backward_[static_cast<size_t>(backward)];
}

void PrecheckReport::Add(size_t place, CallOutcome outcome) {
  const CheckStatus status = CallStatus(outcome.forward.status, outcome.backward.status);
  Count(outcome.forward.status, outcome.backward.status);
  merged_ += outcome.merged_calls;
  double severity = 0;
  for (const DirectionOutcome* direction : {&outcome.forward, &outcome.backward}) {
    for (const OutputRow& row : direction->rows) {
      AddRow(place, row);
      severity = std::max(severity, SeverityOf(row));
    }
  }
  // One cause per call: that of the forward, which is why there is no backward then.
  const DirectionOutcome& skipped = outcome.forward.skip ? outcome.forward : outcome.backward;
  if (skipped.skip) AddSkip(place, outcome.name, *skipped.skip, status != CheckStatus::kSkip);
  if (status == CheckStatus::kPass || status == CheckStatus::kNone) return;
  not_passed_.push_back({place, std::move(outcome), severity});
  if (not_passed_.size() > 2 * most_kept_) Trim();
}

void PrecheckReport::AddRow(size_t place, const OutputRow& row) {
  if (row.status == CheckStatus::kSkip || row.status == CheckStatus::kNone) return;
  ++outputs_;
  if (!row.is_all_zero) return;
  // Whatever the order in which calls end.
  if (all_zero_++ == 0 || place < all_zero_place_) {
    all_zero_example_ = row.name;
    all_zero_place_ = place;
  }
}

void PrecheckReport::AddEarlier(const EarlierCall& call) {
  Count(call.forward, call.backward);
  ++earlier_;
  outputs_ += call.outputs;
  const CheckStatus status = CallStatus(call.forward, call.backward);
  const bool is_judged = status != CheckStatus::kSkip;
  if (status == CheckStatus::kError &&
      (earlier_error_.empty() || call.place < earlier_error_place_)) {
    earlier_error_ = call.name;
    earlier_error_place_ = call.place;
  }
  if (call.skip) {
    AddSkip(call.place, call.name, *call.skip, is_judged);
  } else if (!is_judged) {
    AddSkip(call.place, call.name, {SkipCause::kOther, "the files do not say why"}, is_judged);
  }
}

void PrecheckReport::AddSkip(size_t place, const std::string& call, const Skip& skip,
                             bool is_judged) {
  if (IsDeviceFailure(skip)) {
    const bool is_first = device_failures_++ == 0 || place < device_failure_place_;
    if (is_first) {
      device_failure_ = call;
      device_failure_place_ = place;
    }
  }
  auto at = std::ranges::find(causes_, skip.cause, &CauseCount::cause);
  if (at == causes_.end()) {
    causes_.push_back({skip.cause, 0, 0, call, skip.detail, place});
    at = causes_.end() - 1;
  }
  ++at->calls;
  at->not_judged += is_judged ? 0 : 1;
  // Whatever the order in which calls end.
  if (place < at->example_place) {
    at->example_call = call;
    at->example_detail = skip.detail;
    at->example_place = place;
  }
}

void PrecheckReport::Trim() {
  std::ranges::sort(not_passed_, [](const NotPassed& a, const NotPassed& b) {
    return a.severity != b.severity ? a.severity > b.severity : a.place < b.place;
  });
  if (not_passed_.size() <= most_kept_) return;
  left_out_ += not_passed_.size() - most_kept_;
  not_passed_.resize(most_kept_);
}

void PrecheckReport::Finish() {
  Trim();
  std::ranges::sort(causes_, [](const CauseCount& a, const CauseCount& b) {
    return a.calls != b.calls ? a.calls > b.calls : a.cause < b.cause;
  });
}

uint64_t PrecheckReport::all_calls() const {
  return std::accumulate(calls_.begin(), calls_.end(), uint64_t{0});
}

uint64_t PrecheckReport::judged_calls() const {
  return count(CheckStatus::kPass) + count(CheckStatus::kWarning) + count(CheckStatus::kError);
}

const OutputRow* WorstRow(const CallOutcome& outcome) {
  const OutputRow* worst = nullptr;
  for (const DirectionOutcome* direction : {&outcome.forward, &outcome.backward}) {
    for (const OutputRow& row : direction->rows) {
      const double severity = SeverityOf(row);
      if (severity > (worst == nullptr ? 0 : SeverityOf(*worst))) worst = &row;
    }
  }
  return worst;
}

std::string ReasonText(const OutputRow& row) {
  const std::optional<ShareOff> off = ShareOffOf(row);
  if (!off) return OneLineOf(row.message);
  std::string text = fmt::format("{} % of elements {}", ShortNumber(100 * off->share),
                                 off->bound.empty() ? "differ" : "off by more than ");
  text += off->bound;
  if (row.facts) {
    text += fmt::format(", worst {} against {}", ShortNumber(row.facts->worst_device),
                        ShortNumber(row.facts->worst_bench));
  }
  return text;
}

std::string OutputText(const std::string& row_name) {
  for (const std::string_view direction : {".forward.", ".backward."}) {
    const size_t at = row_name.rfind(direction);
    if (at == std::string::npos) continue;
    return fmt::format("{} {} {}", row_name.substr(0, at),
                       direction.substr(1, direction.size() - 2),
                       row_name.substr(at + direction.size()));
  }
  return row_name;
}

std::string AllZeroText(const PrecheckReport& report) {
  if (report.all_zero() == 0) return {};
  return fmt::format("{} all zero on both sides, which proves little, such as {}",
                     CountText(report.all_zero(), "output is", "outputs are"),
                     OutputText(report.all_zero_example()));
}

std::string FirstLine(const PrecheckReport& report) {
  const std::string failed = report.device_failures() == 0 ? std::string()
                                                           : fmt::format("failed on the device: {}",
                                                                         report.device_failures());
  const auto behind = [&](std::string line) {
    return OneLine(failed.empty() ? line : line + "; " + failed);
  };
  if (const NotPassed* worst = WorstOf(report, CheckStatus::kError)) {
    return behind(SentenceOf(*worst, "wrong: "));
  }
  const std::string calls = CountText(report.all_calls(), "call");
  if (const uint64_t errors = report.count(CheckStatus::kError); errors > 0) {
    return behind(fmt::format("wrong: {} by an earlier run ({} of {} {} wrong)",
                              report.earlier_error(), errors, calls, errors == 1 ? "is" : "are"));
  }
  if (report.all_calls() == 0) {
    return report.was_interrupted ? "nothing judged: interrupted before the first call was"
                                  : "nothing judged: no calls of APIs are in the recording";
  }
  if (report.judged_calls() == 0)
    return behind(fmt::format("nothing judged: all {} skipped", calls));
  // What a device cannot run is worse news than that the rest is right.
  return failed.empty() ? NothingWrong(report) : failed + "; " + NothingWrong(report);
}

bool FailsOn(const PrecheckReport& report, std::span<const std::string> conditions) {
  const bool has_errors = report.count(CheckStatus::kError) > 0;
  const bool has_warnings = report.count(CheckStatus::kWarning) > 0;
  const bool is_judged = has_errors || has_warnings || report.count(CheckStatus::kPass) > 0;
  const bool is_bad = has_errors || report.device_failures() > 0;
  return std::ranges::any_of(conditions, [&](std::string_view condition) {
    if (!is_judged) return true;
    if (condition == "error") return is_bad;
    if (condition == "warning") return is_bad || has_warnings;
    return report.count(CheckStatus::kSkip) > 0;
  });
}

std::string AnswerText(const PrecheckReport& report) {
  std::string text;
  // Names and messages come from files of anyone: none may begin a line of its own.
  const auto add = [&](std::string_view line) { text += OneLine(line) + "\n"; };
  add(FirstLine(report));
  const NotPassed* const worst = WorstOf(report, CheckStatus::kError);
  const std::string command = worst != nullptr ? ExtractCommand(report, worst->outcome.name)
                              : report.device_failures() > 0
                                  ? ExtractCommand(report, report.device_failure())
                                  : std::string();
  if (!command.empty()) add(fmt::format("  as a test: {}", command));
  add(fmt::format("  calls: {}", CountsText(report.calls())));
  add(fmt::format("  forward: {}", CountsText(report.forward())));
  add(fmt::format("  backward: {}", CountsText(report.backward())));
  AddNext(report, add);
  for (const CauseCount& cause : report.causes()) {
    add(fmt::format("  skipped, {}: {}, such as {}: {}", CauseName(cause.cause), cause.calls,
                    cause.example_call, OneLineOf(cause.example_detail)));
  }
  if (report.all_zero() > 0) add("  " + AllZeroText(report));
  if (report.merged() > 0) {
    add(fmt::format("  left out: {} like others", CountText(report.merged(), "call")));
  }
  if (!report.device.empty()) {
    const auto here = static_cast<double>(report.all_calls() - report.earlier());
    std::string line = fmt::format("  device: {} ({} {})", report.device, report.framework,
                                   report.framework_version);
    if (here > 0) {
      const double rate = here / std::max(report.seconds, 1e-9);
      line += fmt::format(", {:.1f} s, {} calls/s", report.seconds,
                          rate < 10 ? fmt::format("{:.2g}", rate) : fmt::format("{:.0f}", rate));
    }
    add(line);
  }
  for (const std::string* path : {&report.result_path, &report.details_path, &report.error_data}) {
    if (!path->empty()) add(fmt::format("  written: {}", *path));
  }
  for (const std::string& path : report.files) add(fmt::format("  written: {}", path));
  return text;
}

std::string AnswerJson(const PrecheckReport& report) {
  std::string out = "{";
  AppendMember("answer", FirstLine(report), out);
  AppendMember("dump_json", report.dump_json, out);
  AppendMember("framework", report.framework, out);
  AppendMember("framework_version", report.framework_version, out);
  AppendMember("device", report.device, out);
  AppendMember("result_path", report.result_path, out);
  AppendMember("details_path", report.details_path, out);
  AppendMember("error_data", report.error_data, out);
  out += "\"files\":[";
  for (size_t i = 0; i < report.files.size(); ++i) {
    if (i > 0) out += ',';
    json::AppendString(report.files[i], out);
  }
  out += "],";
  AppendCounts(report.calls(), "calls", out);
  out += ',';
  AppendCounts(report.forward(), "forward", out);
  out += ',';
  AppendCounts(report.backward(), "backward", out);
  out += fmt::format(
      ",\"calls_judged\":{},\"outputs_judged\":{},\"all_zero\":{},\"failed_on_device\":{},"
      "\"earlier\":{},\"merged\":{},\"interrupted\":{},\"seconds\":{:.3f}",
      report.judged_calls(), report.outputs_judged(), report.all_zero(), report.device_failures(),
      report.earlier(), report.merged(), report.was_interrupted, report.seconds);
  out += ",\"skipped\":[";
  for (size_t i = 0; i < report.causes().size(); ++i) {
    const CauseCount& cause = report.causes()[i];
    out += i > 0 ? ",{" : "{";
    AppendMember("cause", CauseName(cause.cause), out);
    AppendMember("example", cause.example_call, out);
    AppendMember("detail", cause.example_detail, out);
    out += fmt::format("\"calls\":{}}}", cause.calls);
  }
  out += "],\"worst\":[";
  for (size_t i = 0; i < report.not_passed().size() && i <= kNextWorst; ++i) {
    const NotPassed& call = report.not_passed()[i];
    const OutputRow* const row = WorstRow(call.outcome);
    if (row == nullptr) break;
    out += i > 0 ? ",{" : "{";
    AppendMember("call", call.outcome.name, out);
    AppendMember("output", row->name, out);
    AppendMember("status", StatusWord(row->status), out);
    AppendMember("reason", ReasonText(*row), out);
    AppendMember("message", row->message, out);
    AppendMember("as_test", ExtractCommand(report, call.outcome.name), out);
    out.back() = '}';
  }
  return out + "]}\n";
}

}  // namespace plumbline::precheck
