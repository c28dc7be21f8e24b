#include "precheck/precheck_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <unordered_set>
#include <utility>

#include "base/file/file.h"
#include "precheck/result_rows.h"
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
  if (outcome.status != Status::kSkip || !outcome.rows.empty() || !outcome.skip) return;
  OutputRow& row = found.emplace_back();
  row.name = fmt::format("{}.{}.output.0", call, direction);
  row.status = Status::kSkip;
  row.message = outcome.skip->Text();
}

void AddFindings(const CallOutcome& outcome, std::vector<OutputRow>& found) {
  for (const DirectionOutcome* direction : {&outcome.forward, &outcome.backward}) {
    for (const OutputRow& row : direction->rows) {
      if (row.status != Status::kPass && row.status != Status::kNone) found.push_back(row);
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
    const Status status = row.output.status;
    if (status == Status::kPass || status == Status::kNone || known.contains(row.output.name)) {
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

report::CellKind KindOf(const DetailsColumn& column) {
  if (column.is_number) return report::CellKind::kReal;
  const bool is_free = column.key == "name" || column.key == "message";
  return is_free ? report::CellKind::kText : report::CellKind::kWord;
}

}  // namespace

std::string_view PrecheckFormatName(PrecheckFormat format) { return NamesOf(format).word; }

Result<std::vector<PrecheckFormat>> PrecheckFormatsOf(const std::vector<std::string>& words) {
  std::vector<PrecheckFormat> formats;
  for (const std::string& word : words) {
    const bool is_known = std::ranges::find(kFormats, word, &FormatNames::word) != std::end(kFormats);
    if (!is_known && word != "csv") {
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
  std::ranges::stable_sort(found, [](const OutputRow& a, const OutputRow& b) {
    return SeverityOf(a) > SeverityOf(b);
  });
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
    columns.push_back({std::string(column.key), KindOf(column)});
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
    object.Text("forward", row.forward == Status::kNone ? "" : StatusWord(row.forward));
    object.Text("backward", row.backward == Status::kNone ? "" : StatusWord(row.backward));
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

}  // namespace plumbline::precheck
