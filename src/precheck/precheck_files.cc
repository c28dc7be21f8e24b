#include "precheck/precheck_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/file/file.h"
#include "base/text/number_text.h"
#include "formats/table/xlsx.h"
#include "precheck/result_rows.h"
#include "report/ci_report.h"
#include "report/html_report.h"
#include "report/result_json.h"
#include "report/table.h"

namespace plumbline::precheck {
namespace {

struct FormatNames {
  PrecheckFormat format;
  std::string_view word, kind, extension;
};
constexpr FormatNames kFormats[] = {
    {PrecheckFormat::kXlsx, "xlsx", "tables", ".xlsx"},
    {PrecheckFormat::kHtml, "html", "report", ".html"},
    {PrecheckFormat::kJunit, "junit", "junit", ".xml"},
};

const FormatNames& NamesOf(PrecheckFormat format) {
  return *std::ranges::find(kFormats, format, &FormatNames::format);
}

// A direction that was skipped before there was any output of it.
void AddSkipped(const std::string& call, std::string_view direction,
                const DirectionOutcome& outcome, std::vector<OutputRow>& found) {
  if (outcome.status != CheckStatus::kSkip || !outcome.rows.empty() || !outcome.skip) return;
  OutputRow& row = found.emplace_back();
  row.name = fmt::format("{}.{}.output.0", call, direction);
  row.status = CheckStatus::kSkip;
  row.message = outcome.skip->Text();
}

void AddFindings(const CallOutcome& outcome, std::vector<OutputRow>& found) {
  for (const DirectionOutcome* direction : {&outcome.forward, &outcome.backward}) {
    for (const OutputRow& row : direction->rows) {
      if (row.status != CheckStatus::kPass && row.status != CheckStatus::kNone)
        found.push_back(row);
    }
  }
  AddSkipped(outcome.name, "forward", outcome.forward, found);
  // A call that was not run at all is said once, as the details file does.
  if (outcome.forward.skip && outcome.forward.rows.empty() && outcome.backward.rows.empty()) return;
  AddSkipped(outcome.name, "backward", outcome.backward, found);
}

// Calls `visit` for every row of the details; a cell that cannot be read is an error, as the file
// is this program's own.
plumbline::Status VisitOwnDetails(const PrecheckReport& report, const VisitDetailsRow& visit) {
  return VisitDetails(report.details_path, DetailsHeader(FormOf(report)),
                      [&](DetailsRow& row) -> plumbline::Status {
                        if (!row.problem.empty()) {
                          return Error(ErrorCode::kCorrupt,
                                       fmt::format("{}: {}", row.output.name, row.problem));
                        }
                        return visit(row);
                      });
}

// Rows that earlier runs wrote: nothing but what the file says is known of them.
plumbline::Status AddEarlier(const PrecheckReport& report, std::vector<OutputRow>& found) {
  std::unordered_set<std::string> known;
  for (const OutputRow& row : found) known.insert(row.name);
  return VisitOwnDetails(report, [&](DetailsRow& row) -> plumbline::Status {
    const CheckStatus status = row.output.status;
    if (status == CheckStatus::kPass || status == CheckStatus::kNone ||
        known.contains(row.output.name)) {
      return {};
    }
    found.push_back(std::move(row.output));
    return {};
  });
}

using TableCell = sqlite::Cell;

// The rows of the details, whose texts the cells of a table may point into.
class DetailsRows {
 public:
  explicit DetailsRows(ResultForm form) : form_(form) {}

  void Add(OutputRow row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] size_t size() const { return rows_.size(); }
  const std::vector<TableCell>& Cells(size_t row) {
    cells_.clear();
    for (const DetailsCell& cell : DetailsCells(rows_[row], form_)) {
      if (const auto* number = std::get_if<double>(&cell)) {
        cells_.emplace_back(*number);
      } else if (const auto* text = std::get_if<std::string_view>(&cell)) {
        cells_.emplace_back(*text);
      } else {
        cells_.emplace_back();
      }
    }
    return cells_;
  }

 private:
  const ResultForm form_;
  std::vector<OutputRow> rows_;
  std::vector<TableCell> cells_;
};

report::CellKind CellKindOf(const DetailsColumn& column) {
  if (column.is_number) return report::CellKind::kReal;
  const bool is_free = column.key == "name" || column.key == "message";
  return is_free ? report::CellKind::kText : report::CellKind::kWord;
}

}  // namespace

std::string_view PrecheckFormatName(PrecheckFormat format) { return NamesOf(format).word; }

Result<std::vector<PrecheckFormat>> PrecheckFormatsOf(const std::vector<std::string>& words) {
  std::vector<PrecheckFormat> formats;
  for (const std::string& word : words) {
    const auto known = std::ranges::find(kFormats, word, &FormatNames::word);
    if (known == std::end(kFormats) && word != "csv") {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("format {} is unknown (expected csv, xlsx, html or junit)", word));
    }
  }
  for (const FormatNames& names : kFormats) {
    if (std::ranges::find(words, names.word) != words.end()) formats.push_back(names.format);
  }
  return formats;
}

std::string PathOf(PrecheckFormat format, const PrecheckReport& report) {
  constexpr std::string_view kEnd = ".csv";
  std::string_view stamp = BaseName(report.result_path);
  stamp.remove_prefix(std::min(stamp.size(), stamp.rfind('_') + 1));
  if (stamp.ends_with(kEnd)) stamp.remove_suffix(kEnd.size());
  const FormatNames& names = NamesOf(format);
  return JoinPath(DirectoryOf(report.result_path),
                  fmt::format("accuracy_checking_{}_{}{}", names.kind, stamp, names.extension));
}

plumbline::Status WritePrecheckFiles(const std::vector<PrecheckFormat>& formats,
                                     PrecheckReport& report) {
  for (const PrecheckFormat format : formats) {
    std::string path = PathOf(format, report);
    switch (format) {
      case PrecheckFormat::kXlsx:
        PL_TRY(WriteXlsx(report, path));
        break;
      case PrecheckFormat::kHtml:
        PL_TRY(WriteHtml(report, path));
        break;
      case PrecheckFormat::kJunit:
        PL_TRY(WriteJunit(report, path));
        break;
    }
    report.files.push_back(std::move(path));
  }
  return {};
}

Result<std::vector<OutputRow>> FindingsOf(const PrecheckReport& report) {
  std::vector<OutputRow> found;
  for (const NotPassed& call : report.not_passed()) AddFindings(call.outcome, found);
  if (report.earlier() > 0) PL_TRY(AddEarlier(report, found));
  std::ranges::stable_sort(
      found, [](const OutputRow& a, const OutputRow& b) { return SeverityOf(a) > SeverityOf(b); });
  return found;
}

Result<std::shared_ptr<const report::RowColumns>> DetailsTable(const PrecheckReport& report) {
  DetailsRows rows(FormOf(report));
  PL_TRY(VisitOwnDetails(report, [&](DetailsRow& row) -> plumbline::Status {
    rows.Add(std::move(row.output));
    return {};
  }));
  std::vector<report::CellColumn> columns;
  for (const DetailsColumn& column : DetailsColumns(FormOf(report))) {
    columns.push_back({std::string(column.key), CellKindOf(column)});
  }
  return report::MakeRowColumns(
      std::move(columns), rows.size(),
      [&](size_t row) -> const std::vector<TableCell>& { return rows.Cells(row); });
}

Result<std::string> CallsJson(const PrecheckReport& report) {
  std::string out = "[";
  PL_TRY(VisitResults(report.result_path, [&](const ResultRow& row) -> plumbline::Status {
    if (out.size() > 1) out += ',';
    report::ObjectWriter object(out);
    object.Text("call", row.call);
    object.Text("forward", row.forward == CheckStatus::kNone ? "" : StatusWord(row.forward));
    object.Text("backward", row.backward == CheckStatus::kNone ? "" : StatusWord(row.backward));
    object.Text("message", row.message);
    object.End();
    return {};
  }));
  return out + "]";
}

Result<std::string> DetailsJson(const PrecheckReport& report) {
  const std::vector<DetailsColumn> columns = DetailsColumns(FormOf(report));
  std::string out = "[";
  PL_TRY(VisitOwnDetails(report, [&](DetailsRow& row) -> plumbline::Status {
    if (out.size() > 1) out += ',';
    report::ObjectWriter object(out);
    const std::vector<DetailsCell> cells = DetailsCells(row.output, FormOf(report));
    for (size_t i = 0; i < columns.size(); ++i) {
      if (const auto* number = std::get_if<double>(&cells[i])) {
        object.Number(columns[i].key, *number);
      } else if (const auto* text = std::get_if<std::string_view>(&cells[i])) {
        object.Text(columns[i].key, *text);
      } else {
        object.Key(columns[i].key) += columns[i].is_number ? "null" : "\"\"";
      }
    }
    object.End();
    return {};
  }));
  return out + "]";
}

// The workbook: the rows of the csv files as people read them.

namespace {

// A pass needs no colour: what is to be looked at has one.
xlsx::Fill FillOf(CheckStatus status) {
  switch (status) {
    case CheckStatus::kError:
      return xlsx::Fill::kRed;
    case CheckStatus::kWarning:
      return xlsx::Fill::kYellow;
    case CheckStatus::kSkip:
      return xlsx::Fill::kGrey;
    case CheckStatus::kPass:
    case CheckStatus::kNone:
      break;
  }
  return xlsx::Fill::kNone;
}

std::string_view WordOf(CheckStatus status) {
  return status == CheckStatus::kNone ? std::string_view() : StatusWord(status);
}

plumbline::Status WriteResults(const PrecheckReport& report, xlsx::Writer& writer) {
  PL_TRY(writer.BeginSheet("result", ResultHeader(FormOf(report)), xlsx::Look::kTable));
  return VisitResults(report.result_path, [&](const ResultRow& row) -> plumbline::Status {
    PL_TRY(writer.BeginRow(FillOf(CallStatus(row.forward, row.backward))));
    PL_TRY(writer.Text(row.call));
    PL_TRY(writer.Text(WordOf(row.forward)));
    PL_TRY(writer.Text(WordOf(row.backward)));
    return writer.Text(row.message);
  });
}

// A number that a sheet cannot hold is a text.
plumbline::Status WriteCell(const DetailsCell& cell, xlsx::Writer& writer) {
  if (const auto* number = std::get_if<double>(&cell)) {
    if (std::isfinite(*number)) return writer.Number(*number);
    std::string text;
    AppendPythonFloat(*number, text);
    return writer.Text(text);
  }
  const auto* text = std::get_if<std::string_view>(&cell);
  return writer.Text(text == nullptr ? std::string_view() : *text);
}

plumbline::Status WriteDetails(const PrecheckReport& report, xlsx::Writer& writer) {
  const ResultForm form = FormOf(report);
  PL_TRY(writer.BeginSheet("details", DetailsHeader(form), xlsx::Look::kTable));
  return VisitOwnDetails(report, [&](DetailsRow& row) -> plumbline::Status {
    PL_TRY(writer.BeginRow(FillOf(row.output.status)));
    for (const DetailsCell& cell : DetailsCells(row.output, form)) PL_TRY(WriteCell(cell, writer));
    return {};
  });
}

}  // namespace

plumbline::Status WriteXlsx(const PrecheckReport& report, const std::string& path) {
  PL_TRY_ASSIGN(xlsx::Writer writer, xlsx::Writer::CreateEmpty(path));
  PL_TRY(WriteResults(report, writer));
  PL_TRY(WriteDetails(report, writer));
  return writer.Close();
}

// JUnit: a test case for each direction of a call.

namespace {

using report::CiCase;
using report::CiOutcome;
using report::CiReport;

// Outputs of one direction that are no pass.
struct Failures {
  double severity = -1;
  std::string reason;  // of the worst one
  std::string lines;   // of all
};
// By the name of a direction: "Functional.softmax.3.backward".
using FailuresByCase = std::unordered_map<std::string, Failures>;

Result<FailuresByCase> ReadFailures(const PrecheckReport& report) {
  FailuresByCase failures;
  const auto add = [&](DetailsRow& read) -> plumbline::Status {
    const OutputRow& row = read.output;
    if (row.status == CheckStatus::kPass || row.status == CheckStatus::kNone) return {};
    const size_t end = row.name.rfind(".output.");
    Failures& of_case = failures[row.name.substr(0, end)];
    if (SeverityOf(row) > of_case.severity) {
      of_case.severity = SeverityOf(row);
      of_case.reason = fmt::format("{}: {}", OutputText(row.name), ReasonText(row));
    }
    of_case.lines += fmt::format("{}: {}\n{}\n", row.name, StatusWord(row.status), row.message);
    return {};
  };
  PL_TRY(VisitOwnDetails(report, add));
  return failures;
}

class Cases {
 public:
  Cases(const PrecheckReport& report, const FailuresByCase& failures, CiReport& out)
      : report_(report), failures_(failures), out_(out) {}

  // Nothing to judge is no case, unless the call has nothing at all.
  void Add(const ResultRow& row, std::string_view direction, CheckStatus status) {
    if (status == CheckStatus::kNone) return;
    CiCase item;
    item.name = fmt::format("{}.{}", row.call, direction);
    const auto at = failures_.find(item.name);
    const Failures* const failures = at == failures_.end() ? nullptr : &at->second;
    switch (status) {
      case CheckStatus::kError:
        item.outcome = CiOutcome::kFail;
        item.rule = "error";
        break;
      case CheckStatus::kSkip:
        item.outcome = CiOutcome::kSkipped;
        item.message = row.message;
        break;
      case CheckStatus::kPass:
      case CheckStatus::kWarning:
      case CheckStatus::kNone:
        break;
    }
    if (failures != nullptr) {
      if (status != CheckStatus::kSkip || item.message.empty()) item.message = failures->reason;
      if (status == CheckStatus::kError) item.details = failures->lines + Command(row.call);
    }
    if (status == CheckStatus::kWarning) item.message = "Warning: " + item.message;
    // A pass has nothing to remark on but warnings.
    if (status == CheckStatus::kPass) item.message.clear();
    out_.cases.push_back(std::move(item));
  }

 private:
  [[nodiscard]] std::string Command(const std::string& call) const {
    const std::string command = ExtractCommand(report_, call);
    return command.empty() ? command : "as a test: " + command + "\n";
  }

  const PrecheckReport& report_;
  const FailuresByCase& failures_;
  CiReport& out_;
};

// Of the run as a whole; green files without a judged call would be read as a pass.
void AddWhole(const PrecheckReport& report, CiReport& out) {
  const uint64_t judged = report.count(CheckStatus::kPass) + report.count(CheckStatus::kWarning) +
                          report.count(CheckStatus::kError);
  const auto add = [&](std::string_view name, std::string_view rule) {
    CiCase& item = out.cases.emplace_back();
    item.name = fmt::format("pre-check {}", name);
    item.outcome = CiOutcome::kError;
    item.rule = rule;
    item.message = FirstLine(report);
  };
  if (judged == 0) add("judged", "not-judged");
  if (report.was_interrupted) add("complete", "interrupted");
}

}  // namespace

plumbline::Status WriteJunit(const PrecheckReport& report, const std::string& path) {
  CiReport out;
  out.suite = "plumb precheck";
  out.properties = {{"recording", report.dump_json},
                    {"device", report.device},
                    {"framework", fmt::format("{} {}", report.framework, report.framework_version)},
                    {"answer", FirstLine(report)}};
  PL_TRY_ASSIGN(const FailuresByCase failures, ReadFailures(report));
  Cases cases(report, failures, out);
  PL_TRY(VisitResults(report.result_path, [&](const ResultRow& row) -> plumbline::Status {
    cases.Add(row, "forward", row.forward);
    cases.Add(row, "backward", row.backward);
    return {};
  }));
  AddWhole(report, out);
  return report::WriteJunit(out, path);
}

// The page: its data as JSON, drawn by the scripts of html/.

// Contents of html/, embedded by cmake/embed.cmake.
extern const std::string_view kPrecheckHtml;
extern const std::string_view kPrecheckCss;
extern const std::string_view kPrecheckJs;

namespace {

using report::ObjectWriter;

void AppendCounts(const StatusCounts& counts, ObjectWriter object) {
  for (const CheckStatus status :
       {CheckStatus::kError, CheckStatus::kWarning, CheckStatus::kPass, CheckStatus::kSkip}) {
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
    remarks.push_back("the run was interrupted. Go on with: " + ResumeCommand(report));
  }
  if (report.earlier() > 0) {
    remarks.push_back(
        fmt::format("{} calls were judged by an earlier run: their errors are in numbers only",
                    report.earlier()));
  }
  if (report.merged() > 0) {
    remarks.push_back(fmt::format("{} calls like others were left out", report.merged()));
  }
  if (report.all_zero() > 0) remarks.push_back(AllZeroText(report));
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
  if (IsWrong(row.status)) {
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
  if (findings.empty() || findings.front().status != CheckStatus::kError) {
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
  const uint64_t judged = report.count(CheckStatus::kPass) + report.count(CheckStatus::kWarning);
  object.Truth("is_good", report.count(CheckStatus::kError) == 0 && judged > 0 &&
                              report.device_failures() == 0);
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
