#include "precheck/overflow/overflow_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text/json.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "precheck/result_rows.h"

namespace plumbline::precheck {
namespace {

constexpr std::string_view kColumns[] = {"API Name",        "Input Overflow", "CPU Overflow",
                                         "Device Overflow", "Result",         "Message"};
constexpr size_t kMostShown = 10;      // calls of one result in the summary
constexpr size_t kLongestCause = 240;  // of an error in the summary

std::string_view CellOf(const std::optional<bool>& truth) {
  if (!truth) return "";
  return *truth ? "True" : "False";
}

const OverflowRow* FirstOf(const OverflowReplayReport& report, OverflowResult result) {
  const auto found = std::ranges::find(report.rows, result, &OverflowRow::result);
  return found == report.rows.end() ? nullptr : &*found;
}

std::string MoreText(uint64_t count) {
  return count > 1 ? fmt::format(" (and {} more)", count - 1) : std::string();
}

std::string FirstLine(const OverflowReplayReport& report) {
  const std::string calls = CountText(report.rows.size(), "call");
  const uint64_t abnormal = report.count(OverflowResult::kAbnormal);
  const uint64_t normal = report.count(OverflowResult::kNormal);
  const uint64_t errors = report.count(OverflowResult::kError);
  const uint64_t judged = abnormal + normal + report.count(OverflowResult::kNotReproduced);
  if (const OverflowRow* row = FirstOf(report, OverflowResult::kAbnormal)) {
    return fmt::format("abnormal overflow: {}, {}{}", row->name, row->message, MoreText(abnormal));
  }
  if (report.rows.empty()) return "nothing judged: no calls of APIs are in the recording";
  if (judged == 0) {
    return fmt::format("nothing judged: of {} {} skipped, {} failed", calls,
                       report.count(OverflowResult::kSkip), errors);
  }
  std::string line = fmt::format("no abnormal overflow in {} ({} judged)", calls, judged);
  if (const OverflowRow* row = FirstOf(report, OverflowResult::kNormal)) {
    line += fmt::format("; normal: {}{}", row->name, MoreText(normal));
  } else {
    line += ", and none at all";
  }
  if (errors > 0) line += fmt::format("; {} failed", errors);
  return line;
}

std::string CountsText(const OverflowReplayReport& report) {
  std::string text;
  for (size_t i = 0; i < kOverflowResults; ++i) {
    const auto result = static_cast<OverflowResult>(i);
    if (report.count(result) == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", report.count(result),
                        OverflowWord(result));
  }
  return text.empty() ? "none" : text;
}

void AppendRows(const OverflowReplayReport& report, OverflowResult result, std::string& text) {
  size_t shown = 0;
  for (const OverflowRow& row : report.rows) {
    if (row.result != result) continue;
    if (shown++ == kMostShown) break;
    std::string_view message = Utf8Beginning(row.message, kLongestCause);
    text += fmt::format("  {}: {}{}{}\n", OverflowWord(result), row.name,
                        message.empty() ? "" : ": ", message);
  }
  if (report.count(result) > kMostShown) {
    text += fmt::format("  {}: {} more\n", OverflowWord(result), report.count(result) - kMostShown);
  }
}

void AppendMember(std::string_view name, std::string_view text, std::string& out) {
  out += fmt::format("\"{}\":", name);
  json::AppendString(text, out);
  out += ',';
}

void AppendTruth(std::string_view name, const std::optional<bool>& truth, std::string& out) {
  out += fmt::format("\"{}\":{},", name, !truth ? "null" : *truth ? "true" : "false");
}

}  // namespace

uint64_t OverflowReplayReport::count(OverflowResult result) const {
  return static_cast<uint64_t>(std::ranges::count(rows, result, &OverflowRow::result));
}

std::string OverflowCsv(const std::vector<OverflowRow>& rows) {
  std::string text = HeaderText(kColumns);
  for (const OverflowRow& row : rows) {
    const std::string cells[] = {row.name,
                                 std::string(CellOf(row.input)),
                                 std::string(CellOf(row.cpu)),
                                 std::string(CellOf(row.device)),
                                 std::string(OverflowWord(row.result)),
                                 row.message};
    AppendCsvRow(cells, text);
  }
  return text;
}

std::string AnswerText(const OverflowReplayReport& report) {
  std::string text = FirstLine(report) + "\n";
  text += fmt::format("  calls: {}\n", CountsText(report));
  for (const OverflowResult result :
       {OverflowResult::kAbnormal, OverflowResult::kNormal, OverflowResult::kError}) {
    AppendRows(report, result, text);
  }
  text += fmt::format("  inputs: {}\n",
                      report.has_recorded_data ? "as recorded" : "drawn from their statistics");
  if (!report.device.empty()) {
    text += fmt::format("  device: {} (pytorch {}), {:.1f} s\n", report.device,
                        report.framework_version, report.seconds);
  }
  return text + fmt::format("  written: {}\n", report.result_path);
}

std::string AnswerJson(const OverflowReplayReport& report) {
  std::string out = "{";
  AppendMember("answer", FirstLine(report), out);
  AppendMember("dump_json", report.dump_json, out);
  AppendMember("device", report.device, out);
  AppendMember("framework_version", report.framework_version, out);
  AppendMember("result_path", report.result_path, out);
  out += fmt::format("\"recorded_data\":{},\"interrupted\":{},\"seconds\":{:.3f},\"counts\":{{",
                     report.has_recorded_data, report.was_interrupted, report.seconds);
  for (size_t i = 0; i < kOverflowResults; ++i) {
    const auto result = static_cast<OverflowResult>(i);
    out += fmt::format("{}\"{}\":{}", i > 0 ? "," : "", OverflowWord(result), report.count(result));
  }
  out += "},\"calls\":[";
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const OverflowRow& row = report.rows[i];
    out += i > 0 ? ",{" : "{";
    AppendMember("name", row.name, out);
    AppendTruth("input_overflow", row.input, out);
    AppendTruth("cpu_overflow", row.cpu, out);
    AppendTruth("device_overflow", row.device, out);
    AppendMember("result", OverflowWord(row.result), out);
    AppendMember("message", row.message, out);
    out.back() = '}';
  }
  return out + "]}\n";
}

}  // namespace plumbline::precheck
