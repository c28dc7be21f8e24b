// The page of a pre-check: its data as JSON, drawn by the scripts of html/.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "precheck/precheck_files.h"
#include "precheck/result_rows.h"
#include "report/html_report.h"
#include "report/result_json.h"

namespace plumbline::precheck {

// Contents of html/, embedded by cmake/embed.cmake.
extern const std::string_view kPrecheckHtml;
extern const std::string_view kPrecheckCss;
extern const std::string_view kPrecheckJs;

namespace {

using report::ObjectWriter;

void AppendCounts(const StatusCounts& counts, ObjectWriter object) {
  for (const Status status : {Status::kError, Status::kWarning, Status::kPass, Status::kSkip}) {
    object.Integer(StatusWord(status), counts[static_cast<size_t>(status)]);
  }
  object.End();
}

void AppendFacts(const PrecheckReport& report, ObjectWriter object) {
  object.Text("recording", report.dump_json);
  object.Text("device", report.device);
  object.Text("framework", report.framework_version.empty()
                               ? report.framework
                               : report.framework + " " + report.framework_version);
  object.Text("details", report.details_path);
  object.Text("data", report.error_data);
  object.End();
}

// What the reader should know before he trusts the counts.
std::vector<std::string> RemarksOf(const PrecheckReport& report) {
  std::vector<std::string> remarks;
  if (report.was_interrupted) {
    remarks.push_back(
        fmt::format("the run was interrupted. Go on with: plumb precheck {} --csv_path {}",
                    report.dump_json, report.result_path));
  }
  if (report.earlier() > 0) {
    remarks.push_back(
        fmt::format("{} calls were judged by an earlier run: their errors are in numbers only",
                    report.earlier()));
  }
  if (report.merged() > 0) {
    remarks.push_back(fmt::format("{} calls like others were left out", report.merged()));
  }
  remarks.insert(remarks.end(), report.warnings.begin(), report.warnings.end());
  return remarks;
}

void AppendCauses(const PrecheckReport& report, std::string& out) {
  out += '[';
  for (const CauseCount& cause : report.causes()) {
    if (out.back() != '[') out += ',';
    ObjectWriter object(out);
    object.Text("cause", CauseName(cause.cause));
    object.Integer("calls", cause.calls);
    object.Text("example", cause.example_call);
    object.Text("detail", cause.example_detail);
    object.End();
  }
  out += ']';
}

void AppendColumns(ResultForm form, std::string& out) {
  out += '[';
  for (const DetailsColumn& column : DetailsColumns(form)) {
    if (!column.is_number) continue;
    if (out.back() != '[') out += ',';
    ObjectWriter object(out);
    object.Text("key", column.key);
    object.Text("header", column.header);
    object.End();
  }
  out += ']';
}

void AppendWorstElement(const FailureFacts& facts, ObjectWriter object) {
  object.Integer("index", facts.worst_index);
  object.Number("bench", facts.worst_bench);
  object.Number("device", facts.worst_device);
  std::string& bins = object.Key("histogram");
  for (size_t i = 0; i < facts.histogram.size(); ++i) {
    bins += i == 0 ? "[" : ",";
    bins += std::to_string(facts.histogram[i]);
  }
  bins += ']';
  object.End();
}

bool IsWrong(const OutputRow& row) {
  return row.status == Status::kError || row.status == Status::kWarning;
}

void AppendFinding(const PrecheckReport& report, const OutputRow& row, std::string& out) {
  const std::vector<DetailsColumn> columns = DetailsColumns(FormOf(report));
  const std::vector<DetailsCell> cells = DetailsCells(row, FormOf(report));
  ObjectWriter object(out);
  object.Text("name", row.name);
  object.Text("output", OutputText(row.name));
  object.Text("status", StatusWord(row.status));
  object.Text("reason", ReasonText(row));
  object.Text("message", row.message);
  object.Text("bench_dtype", row.bench_dtype);
  object.Text("device_dtype", row.device_dtype);
  object.Text("shape", row.shape);
  if (IsWrong(row)) {
    object.Text("as_test", ExtractCommand(report, CallOfOutput(row.name)));
  }
  ObjectWriter numbers(object.Key("numbers"));
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto* number = std::get_if<double>(&cells[i]);
    if (number != nullptr) numbers.Number(columns[i].key, *number);
  }
  numbers.End();
  if (row.facts) AppendWorstElement(*row.facts, ObjectWriter(object.Key("worst")));
  object.End();
}

// The output that the answer is about, where that is an error.
void AppendWorst(const PrecheckReport& report, const std::vector<OutputRow>& findings,
                 std::string& out) {
  if (findings.empty() || findings.front().status != Status::kError) {
    out += "null";
    return;
  }
  AppendFinding(report, findings.front(), out);
}

void AppendFindings(const PrecheckReport& report, const std::vector<OutputRow>& findings,
                    std::string& out) {
  out += '[';
  const size_t count = std::min(findings.size(), kMostFindings);
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out += ",\n";
    AppendFinding(report, findings[i], out);
  }
  out += ']';
}

std::string PageData(const PrecheckReport& report, const std::vector<OutputRow>& findings) {
  std::string out;
  ObjectWriter object(out);
  object.Text("format", "plumbline precheck report");
  object.Integer("version", 1);
  object.Text("answer", FirstLine(report));
  const uint64_t judged = report.count(Status::kPass) + report.count(Status::kWarning);
  object.Truth("is_good", report.count(Status::kError) == 0 && judged > 0);
  AppendWorst(report, findings, object.Key("worst"));
  AppendFacts(report, ObjectWriter(object.Key("facts")));
  object.Texts("remarks", RemarksOf(report));
  ObjectWriter counts(object.Key("counts"));
  AppendCounts(report.calls(), ObjectWriter(counts.Key("calls")));
  AppendCounts(report.forward(), ObjectWriter(counts.Key("forward")));
  AppendCounts(report.backward(), ObjectWriter(counts.Key("backward")));
  counts.End();
  AppendCauses(report, object.Key("causes"));
  AppendColumns(FormOf(report), object.Key("columns"));
  object.Integer("finding_total", findings.size() + report.left_out());
  AppendFindings(report, findings, object.Key("findings"));
  object.End();
  return report::InScript(std::move(out));
}

}  // namespace

plumbline::Status WriteHtml(const PrecheckReport& report, const std::string& path) {
  PL_TRY_ASSIGN(const std::vector<OutputRow> findings, FindingsOf(report));
  const report::HtmlFrame frame{kPrecheckHtml,
                                {report::kPageCss, kPrecheckCss},
                                {report::kElementsJs, kPrecheckJs},
                                AnswerText(report)};
  return report::WriteHtmlFrame(path, frame, [&](AtomicFile& file) -> plumbline::Status {
    return file.Write(PageData(report, findings));
  });
}

}  // namespace plumbline::precheck
