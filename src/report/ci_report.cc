#include "report/ci_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "base/file/text_file.h"
#include "match/name_match.h"
#include "report/findings.h"
#include "report/result_json.h"
#include "verdict/meeting_points.h"

namespace plumbline::report {
namespace {

// --- cases of a comparison --------------------------------------------------------------------

// The row that decided about a call.
const ComparedRow* WorstRow(const Comparison& comparison, const ComparedCall& call) {
  const ComparedRow* worst = nullptr;
  for (size_t i = call.first_row; i < call.first_row + call.row_count; ++i) {
    const ComparedRow& row = comparison.rows[i];
    if (row.verdict == Verdict::kNotComparable) continue;
    const bool more = worst == nullptr || row.verdict > worst->verdict ||
                      (row.verdict == worst->verdict && worst->reason == "inherited");
    if (more) worst = &row;
  }
  return worst;
}

CiCase CaseOf(const Comparison& comparison, const ComparedCall& call) {
  CiCase result;
  result.name = call.name();
  if (call.unmatched_reason == match::CallPair::kDefault) {
    result.outcome = CiOutcome::kSkipped;
    result.rule = call.unmatched_reason;
    result.message = "the other side leaves these arguments to their defaults";
    return result;
  }
  if (call.unmatched_reason == verdict::kEquivalent) {
    result.outcome = CiOutcome::kSkipped;
    result.rule = call.unmatched_reason;
    result.message = "another way to results that agree";
    return result;
  }
  if (!call.paired()) {
    result.outcome = CiOutcome::kError;
    result.rule = call.unmatched_reason;
    result.message = "the call has no counterpart: " + call.unmatched_reason +
                     (call.unmatched_detail.empty() ? "" : " (" + call.unmatched_detail + ")");
    return result;
  }
  const ComparedRow* worst = WorstRow(comparison, call);
  if (worst == nullptr) {
    result.outcome = CiOutcome::kSkipped;
    result.rule = "not-comparable";
    result.message = "no value of this call can be judged";
    return result;
  }
  if (worst->verdict != Verdict::kSuspicious && worst->verdict != Verdict::kBroken) return result;
  result.outcome = CiOutcome::kFail;
  result.is_warning = worst->verdict == Verdict::kSuspicious;
  result.rule = worst->reason.empty() ? "differs" : worst->reason;
  result.message = fmt::format("{} is {}: error {:.6g}, explained {:.6g}", worst->item().name,
                               VerdictName(worst->verdict), worst->error, worst->expected);
  return result;
}

CiCase WholeCase(std::string_view name, bool good, std::string_view answer) {
  CiCase result;
  result.name = fmt::format("comparison {}", name);
  if (good) return result;
  result.outcome = CiOutcome::kError;
  result.rule = fmt::format("not-{}", name);
  result.message = answer;
  return result;
}

// --- XML --------------------------------------------------------------------------------------

void AppendAttribute(std::string_view name, std::string_view value, std::string& out) {
  out += fmt::format(" {}=\"", name);
  AppendXmlText(value, out);
  out += '"';
}

void AppendJunitCase(const CiReport& report, const CiCase& item, std::string& out) {
  out += "  <testcase";
  AppendAttribute("classname", report.suite, out);
  AppendAttribute("name", item.name, out);
  out += " time=\"0\"";
  if (item.outcome == CiOutcome::kPass) {
    if (item.message.empty()) {
      out += "/>\n";
      return;
    }
    out += ">\n    <system-out>";
    AppendXmlText(item.message, out);
    out += "</system-out>\n  </testcase>\n";
    return;
  }
  const std::string_view element = item.outcome == CiOutcome::kFail    ? "failure"
                                   : item.outcome == CiOutcome::kError ? "error"
                                                                       : "skipped";
  out += fmt::format(">\n    <{}", element);
  AppendAttribute("message", item.message, out);
  // The schema gives skipped cases no type.
  if (item.outcome != CiOutcome::kSkipped) AppendAttribute("type", item.rule, out);
  const std::string& below = item.frame.empty() ? item.details : item.frame;
  if (below.empty()) {
    out += "/>\n  </testcase>\n";
    return;
  }
  out += '>';
  AppendXmlText(below, out);
  out += fmt::format("</{}>\n  </testcase>\n", element);
}

// --- SARIF ------------------------------------------------------------------------------------

// "File PATH, line N, ..." taken apart; false where it is something else.
bool ParseFrame(std::string_view frame, std::string_view& path, int& line) {
  constexpr std::string_view kFile = "File ", kLine = ", line ";
  const size_t at = frame.find(kLine);
  if (!frame.starts_with(kFile) || at == std::string_view::npos) return false;
  path = frame.substr(kFile.size(), at - kFile.size());
  const std::string_view digits = frame.substr(at + kLine.size());
  return std::from_chars(digits.data(), digits.data() + digits.size(), line).ec == std::errc() &&
         line > 0;
}

std::string UriOf(std::string_view path) {
  std::string uri = path.starts_with("/") ? "file://" : "";
  constexpr std::string_view kPlain = "/-._~";
  for (const char c : path) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || kPlain.find(c) != std::string_view::npos) {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return uri;
}

void AppendLocation(const CiCase& item, std::string& out) {
  out += '[';
  ObjectWriter location(out);
  std::string_view path;
  int line = 0;
  if (ParseFrame(item.frame, path, line)) {
    ObjectWriter physical(location.Key("physicalLocation"));
    ObjectWriter artifact(physical.Key("artifactLocation"));
    artifact.Text("uri", UriOf(path));
    artifact.End();
    ObjectWriter region(physical.Key("region"));
    region.Integer("startLine", static_cast<uint64_t>(line));
    region.End();
    physical.End();
  }
  std::string& logical = location.Key("logicalLocations");
  logical += '[';
  ObjectWriter name(logical);
  name.Text("fullyQualifiedName", item.name);
  name.End();
  logical += ']';
  location.End();
  out += ']';
}

bool IsSarifResult(const CiCase& item) {
  const bool bad = item.outcome == CiOutcome::kFail || item.outcome == CiOutcome::kError;
  return (bad || item.waiver) && item.rule != "inherited";
}

void AppendSarifResult(const CiCase& item, std::string& out) {
  ObjectWriter result(out);
  result.Text("ruleId", item.rule);
  result.Text("level", item.is_note ? "note" : item.is_warning ? "warning" : "error");
  ObjectWriter message(result.Key("message"));
  message.Text("text", item.name + ": " + item.message);
  message.End();
  AppendLocation(item, result.Key("locations"));
  if (item.waiver) {
    std::string& list = result.Key("suppressions");
    list += '[';
    ObjectWriter suppression(list);
    suppression.Text("kind", "external");
    suppression.Text("justification", *item.waiver);
    suppression.End();
    list += ']';
  }
  result.End();
}

void AppendDriver(const CiReport& report, ObjectWriter& run) {
  std::set<std::string> rules;
  for (const CiCase& item : report.cases) {
    if (IsSarifResult(item)) rules.insert(item.rule);
  }
  ObjectWriter tool(run.Key("tool"));
  ObjectWriter driver(tool.Key("driver"));
  driver.Text("name", report.suite);
  std::string& list = driver.Key("rules");
  list += '[';
  for (const std::string& id : rules) {
    if (list.back() != '[') list += ", ";
    ObjectWriter rule(list);
    rule.Text("id", id);
    rule.End();
  }
  list += ']';
  driver.End();
  tool.End();
}

}  // namespace

bool CiReport::fails() const {
  return std::any_of(cases.begin(), cases.end(), [](const CiCase& item) {
    return item.outcome == CiOutcome::kFail || item.outcome == CiOutcome::kError;
  });
}

CiReport CiReportOf(const Comparison& comparison) {
  CiReport report;
  report.suite = "plumb compare";
  report.properties = {{"mode", std::string(CompareModeName(comparison.mode))},
                       {"target", comparison.target_path},
                       {"golden", comparison.golden_path}};
  for (const ComparedCall& call : comparison.calls) {
    report.cases.push_back(CaseOf(comparison, call));
    CiCase& item = report.cases.back();
    if (!comparison.first_wrong_call || comparison.first_wrong_call->name != item.name) continue;
    item.outcome = CiOutcome::kFail;
    item.is_warning = false;
    item.rule = "first-wrong-call";
    item.message = comparison.first_wrong_call->what;
    item.frame = comparison.first_wrong_call->stack_line;
  }
  const std::string summary = SummaryText(comparison);
  const std::string_view answer = std::string_view(summary).substr(0, summary.find('\n'));
  const auto rows = [&](Verdict verdict) {
    return comparison.counts.rows[static_cast<size_t>(verdict)];
  };
  const uint64_t judged = rows(Verdict::kSame) + rows(Verdict::kWithinNoise) +
                          rows(Verdict::kSuspicious) + rows(Verdict::kBroken);
  report.cases.push_back(WholeCase("judged", judged > 0, answer));
  report.cases.push_back(WholeCase("complete", comparison.is_complete(), answer));
  return report;
}

Status WriteJunit(const CiReport& report, const std::string& path) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  const auto count = [&](CiOutcome outcome) {
    return std::count_if(report.cases.begin(), report.cases.end(),
                         [&](const CiCase& item) { return item.outcome == outcome; });
  };
  std::string& out = file.text();
  out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite";
  AppendAttribute("name", report.suite, out);
  out += fmt::format(
      " tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"0\">\n  <properties>\n",
      report.cases.size(), count(CiOutcome::kFail), count(CiOutcome::kError),
      count(CiOutcome::kSkipped));
  for (const auto& [name, value] : report.properties) {
    out += "    <property";
    AppendAttribute("name", name, out);
    AppendAttribute("value", value, out);
    out += "/>\n";
  }
  out += "  </properties>\n";
  for (const CiCase& item : report.cases) {
    AppendJunitCase(report, item, out);
    PL_TRY(file.Flush());
  }
  out += "</testsuite>\n</testsuites>\n";
  return file.Close();
}

Status WriteSarif(const CiReport& report, const std::string& path) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  std::string& out = file.text();
  ObjectWriter log(out);
  log.Text("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
  log.Text("version", "2.1.0");
  log.Key("runs") += '[';
  ObjectWriter run(out);
  AppendDriver(report, run);
  ObjectWriter properties(run.Key("properties"));
  for (const auto& [name, value] : report.properties) properties.Text(name, value);
  properties.End();
  run.Key("results") += '[';
  bool first = true;
  for (const CiCase& item : report.cases) {
    if (!IsSarifResult(item)) continue;
    out += first ? "\n" : ",\n";
    first = false;
    AppendSarifResult(item, out);
    PL_TRY(file.Flush());
  }
  out += ']';
  run.End();
  out += "]";
  log.End();
  out += '\n';
  return file.Close();
}

}  // namespace plumbline::report
