#include "precheck/result_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include "base/text/number_text.h"
#include "base/text/text_parts.h"

namespace plumbline::precheck {
namespace {

// What of a row a column holds.
using Member =
    std::variant<std::string OutputRow::*, Cell OutputRow::*, precheck::CheckStatus OutputRow::*>;
struct Column {
  std::string_view name;
  std::string_view key;  // for programs
  Member member;
};

constexpr Column kPyTorchColumns[] = {
    {"API Name", "name", &OutputRow::name},
    {"Bench Dtype", "bench_dtype", &OutputRow::bench_dtype},
    {"DEVICE Dtype", "device_dtype", &OutputRow::device_dtype},
    {"Shape", "shape", &OutputRow::shape},
    {"\u4f59\u5f26\u76f8\u4f3c\u5ea6", "cosine", &OutputRow::cosine},
    {"\u6700\u5927\u7edd\u5bf9\u8bef\u5dee", "max_abs_error", &OutputRow::max_abs_error},
    {"\u53cc\u767e\u6307\u6807", "hundredth", &OutputRow::hundredth},
    {"\u53cc\u5343\u6307\u6807", "thousandth", &OutputRow::thousandth},
    {"\u53cc\u4e07\u6307\u6807", "ten_thousandth", &OutputRow::ten_thousandth},
    {"\u4e8c\u8fdb\u5236\u4e00\u81f4\u9519\u8bef\u7387", "error_rate", &OutputRow::error_rate},
    {"\u8bef\u5dee\u5747\u8861\u6027", "error_balance", &OutputRow::error_balance},
    {"\u5747\u65b9\u6839\u8bef\u5dee", "rmse", &OutputRow::rmse},
    {"\u5c0f\u503c\u57df\u9519\u8bef\u5360\u6bd4", "small_value_error_ratio",
     &OutputRow::small_value_error_ratio},
    {"\u76f8\u5bf9\u8bef\u5dee\u6700\u5927\u503c", "max_rel_error", &OutputRow::max_rel_error},
    {"\u76f8\u5bf9\u8bef\u5dee\u5e73\u5747\u503c", "mean_rel_error", &OutputRow::mean_rel_error},
    {"inf/nan\u9519\u8bef\u7387", "inf_nan_error_ratio", &OutputRow::inf_nan_error_ratio},
    {"\u76f8\u5bf9\u8bef\u5dee\u9519\u8bef\u7387", "rel_error_ratio", &OutputRow::rel_error_ratio},
    {"\u7edd\u5bf9\u8bef\u5dee\u9519\u8bef\u7387", "abs_error_ratio", &OutputRow::abs_error_ratio},
    {"ULP\u8bef\u5dee\u6700\u5927\u503c", "max_ulp", &OutputRow::max_ulp},
    {"ULP\u8bef\u5dee\u5e73\u5747\u503c", "mean_ulp", &OutputRow::mean_ulp},
    {"ULP\u8bef\u5dee\u5927\u4e8e\u9608\u503c\u5360\u6bd4", "ulp_proportion",
     &OutputRow::ulp_proportion},
    {"Status", "status", &OutputRow::status},
    {"Message", "message", &OutputRow::message},
};
constexpr Column kMindSporeColumns[] = {
    {"API Name", "name", &OutputRow::name},
    {"Bench Dtype", "bench_dtype", &OutputRow::bench_dtype},
    {"Tested Dtype", "device_dtype", &OutputRow::device_dtype},
    {"Shape", "shape", &OutputRow::shape},
    {"Cosine", "cosine", &OutputRow::cosine},
    {"MaxAbsErr", "max_abs_error", &OutputRow::max_abs_error},
    {"MaxRelativeErr", "max_rel_error", &OutputRow::max_rel_error},
    {"Status", "status", &OutputRow::status},
    {"Message", "message", &OutputRow::message},
};

std::span<const Column> ColumnsOf(ResultForm form) {
  if (form == ResultForm::kPyTorch) return kPyTorchColumns;
  return kMindSporeColumns;
}

// How cells of a form look.
struct Spelling {
  ResultForm form;
  int precision;

  // What stands where there is nothing: upstream's readers ask whether a dtype is blank.
  [[nodiscard]] std::string_view nothing() const { return form == ResultForm::kPyTorch ? " " : ""; }
  [[nodiscard]] std::string Word(CheckStatus status) const {
    return std::string(status == CheckStatus::kNone ? nothing() : StatusWord(status));
  }
  [[nodiscard]] std::string NumberText(const Cell& cell) const {
    std::string text;
    if (form == ResultForm::kPyTorch) {
      AppendNumber(cell, precision, text);
    } else if (cell) {
      AppendPythonFloat(cell->value, text);
    }
    return text;
  }
  [[nodiscard]] std::string Text(const OutputRow& row, const Column& column) const {
    if (const auto* number = std::get_if<Cell OutputRow::*>(&column.member)) {
      return NumberText(row.*(*number));
    }
    if (const auto* word = std::get_if<CheckStatus OutputRow::*>(&column.member)) {
      return Word(row.*(*word));
    }
    const auto member = std::get<std::string OutputRow::*>(column.member);
    const std::string& text = row.*member;
    if (text.empty() && member != &OutputRow::message) return std::string(nothing());
    return text;
  }
};

void AppendDetails(const OutputRow& row, const Spelling& spelling, std::string& out) {
  std::vector<std::string> cells;
  for (const Column& column : ColumnsOf(spelling.form)) {
    cells.push_back(spelling.Text(row, column));
  }
  AppendCsvRow(cells, out);
}

// The shortest digits that read back to the float32, laid out as NumPy does: scientific below 1e-4
// and from 1e16 on, otherwise with a point.
void AppendNarrow(double value, std::string& out) {
  const auto narrow = static_cast<float>(value);
  if (!std::isfinite(narrow)) return AppendPythonFloat(narrow, out);
  char text[32];
  const auto end = std::to_chars(text, std::end(text), narrow, std::chars_format::scientific).ptr;
  const std::string_view scientific(text, static_cast<size_t>(end - text));
  const double size = std::abs(static_cast<double>(narrow));
  if (size != 0 && (size < 1e-4 || size >= 1e16)) {
    out += scientific;
    return;
  }
  const size_t mark = scientific.find('e');
  int exponent = 0;
  const char* digits_of_exponent = text + mark + (text[mark + 1] == '+' ? 2 : 1);
  std::from_chars(digits_of_exponent, end, exponent);
  std::string digits;
  for (const char c : scientific.substr(0, mark)) {
    if (c == '-') out += c;
    if (c >= '0' && c <= '9') digits += c;
  }
  if (exponent < 0) digits.insert(0, static_cast<size_t>(-exponent), '0');
  const size_t before_point = exponent < 0 ? 1 : static_cast<size_t>(exponent) + 1;
  // Digits that a float32 does not have are zeros.
  if (digits.size() < before_point + 1) digits.resize(before_point + 1, '0');
  out += digits.insert(before_point, ".");
}

// Line breaks as upstream's csv files have them within a cell.
std::string WithBareLineFeeds(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      out += '\n';
    }
  }
  return out;
}

constexpr std::string_view kNothingReturned = "no-output: nothing to compare was returned";

// A direction as it is written.
struct WrittenDirection {
  CheckStatus status = CheckStatus::kNone;
  std::vector<OutputRow> rows;
  std::string reason;  // of a skip
};

WrittenDirection Written(const std::string& call, std::string_view direction,
                         const DirectionOutcome& outcome) {
  WrittenDirection written{outcome.status, outcome.rows, {}};
  if (outcome.skip) written.reason = outcome.skip->Text();
  if (written.status == CheckStatus::kNone) return written;
  if (written.rows.empty()) {
    OutputRow& row = written.rows.emplace_back();
    row.name = fmt::format("{}.{}.output.0", call, direction);
    if (written.reason.empty()) written.reason = kNothingReturned;
    row.status = written.status = CheckStatus::kSkip;
    row.message = written.reason;
  }
  if (written.reason.empty()) written.reason = written.rows.front().message;
  return written;
}

// Of a direction, as MindSpore's result file has it.
void AddMessages(const WrittenDirection& written, std::string& message) {
  for (const OutputRow& row : written.rows) {
    if (row.status == CheckStatus::kPass || row.message.empty()) continue;
    message += (message.empty() ? "" : "\n") + row.message;
  }
}

std::string ResultMessage(const WrittenDirection& forward, const WrittenDirection& backward,
                          uint64_t merged_calls, ResultForm form) {
  std::string message;
  if (form == ResultForm::kMindSpore) {
    AddMessages(forward, message);
    AddMessages(backward, message);
  } else if (forward.status == CheckStatus::kSkip) {
    message = forward.reason;
  } else if (backward.status == CheckStatus::kSkip) {
    message = backward.reason;
  }
  if (merged_calls == 0) return message;
  if (!message.empty()) message += "\n";
  return message + fmt::format("stands for {} more like it", CountText(merged_calls, "call"));
}

// A cell that holds a number; an Error that says what else stands there.
Result<Cell> ParseNumber(std::string_view text) {
  text = Trimmed(text);
  if (text.empty()) return Cell();
  const std::string_view unsigned_text = text.substr(text.front() == '+' ? 1 : 0);
  Number number;
  const char* end = unsigned_text.data() + unsigned_text.size();
  const auto [stop, error] = std::from_chars(unsigned_text.data(), end, number.value);
  // Digits out of a double's range are read as Python reads them.
  const bool is_read = error == std::errc() || error == std::errc::result_out_of_range;
  if (!is_read || stop != end || unsigned_text.starts_with("+")) {
    return Error(ErrorCode::kCorrupt, fmt::format("\"{}\" is no number", text));
  }
  if (error == std::errc::result_out_of_range) {
    const bool is_tiny = unsigned_text.find("e-") != std::string_view::npos ||
                         unsigned_text.find("E-") != std::string_view::npos;
    number.value = is_tiny ? 0 : HUGE_VAL;
  }
  number.is_integer = unsigned_text.find_first_not_of("-0123456789") == std::string_view::npos;
  return Cell(number);
}

// Puts a cell into its place; an Error that names the column.
plumbline::Status ReadCell(std::string&& text, const Column& column, OutputRow& row) {
  if (const auto* number = std::get_if<Cell OutputRow::*>(&column.member)) {
    const Result<Cell> cell = ParseNumber(text);
    if (!cell) return cell.error().In(column.name);
    row.*(*number) = *cell;
  } else if (const auto* word = std::get_if<CheckStatus OutputRow::*>(&column.member)) {
    const auto status = ParseStatus(Trimmed(text));
    if (!status) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: \"{}\" is no status", column.name, Trimmed(text)));
    }
    row.*(*word) = *status;
  } else {
    const auto member = std::get<std::string OutputRow::*>(column.member);
    row.*member = member == &OutputRow::message ? std::move(text) : std::string(Trimmed(text));
  }
  return {};
}

// The columns of a file, by place: null for one that is not known.
using ColumnPlaces = std::vector<const Column*>;

const Column* FindColumn(std::string_view name) {
  for (const ResultForm form : {ResultForm::kPyTorch, ResultForm::kMindSpore}) {
    for (const Column& column : ColumnsOf(form)) {
      if (column.name == name) return &column;
    }
  }
  return nullptr;
}

Result<ColumnPlaces> FindColumns(const csv::Row& header, std::span<const std::string_view> needed) {
  std::string missing;
  for (const std::string_view name : needed) {
    if (std::find(header.begin(), header.end(), name) != header.end()) continue;
    missing += (missing.empty() ? "" : ", ") + std::string(name);
  }
  if (!missing.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("no column {} (expected those of accuracy_checking_details_*.csv). "
                             "Name a details file",
                             missing));
  }
  ColumnPlaces places;
  for (const std::string& name : header) places.push_back(FindColumn(name));
  return places;
}

DetailsRow ReadDetailsRow(csv::Row& cells, const ColumnPlaces& places) {
  DetailsRow row;
  if (cells.size() != places.size()) {
    row.problem = fmt::format("the row has {} cells (expected {})", cells.size(), places.size());
  }
  for (size_t i = 0; i < std::min(cells.size(), places.size()); ++i) {
    if (places[i] == nullptr) continue;
    if (places[i]->name == kPyTorchColumns[0].name) {
      row.output.name = i == 0 ? ReadName(cells) : std::move(cells[i]);
      continue;
    }
    const plumbline::Status read = ReadCell(std::move(cells[i]), *places[i], row.output);
    if (!read && row.problem.empty()) row.problem = read.error().message();
  }
  return row;
}

}  // namespace

std::vector<std::string_view> ResultHeader(ResultForm form) {
  return {form == ResultForm::kPyTorch ? "API name" : "API Name", "Forward Test Success",
          "Backward Test Success", "Message"};
}

std::vector<std::string_view> DetailsHeader(ResultForm form) {
  std::vector<std::string_view> names;
  for (const Column& column : ColumnsOf(form)) names.push_back(column.name);
  return names;
}

std::vector<DetailsColumn> DetailsColumns(ResultForm form) {
  std::vector<DetailsColumn> columns;
  for (const Column& column : ColumnsOf(form)) {
    columns.push_back(
        {column.name, column.key, std::holds_alternative<Cell OutputRow::*>(column.member)});
  }
  return columns;
}

std::vector<DetailsCell> DetailsCells(const OutputRow& row, ResultForm form) {
  std::vector<DetailsCell> cells;
  for (const Column& column : ColumnsOf(form)) {
    DetailsCell& cell = cells.emplace_back();
    if (const auto* number = std::get_if<Cell OutputRow::*>(&column.member)) {
      if (const Cell& of_row = row.*(*number)) cell = of_row->value;
    } else if (const auto* word = std::get_if<CheckStatus OutputRow::*>(&column.member)) {
      if (row.*(*word) != CheckStatus::kNone) cell = StatusWord(row.*(*word));
    } else {
      const std::string& text = row.*std::get<std::string OutputRow::*>(column.member);
      if (!text.empty()) cell = std::string_view(text);
    }
  }
  return cells;
}

std::string HeaderText(std::span<const std::string_view> names) {
  std::string text(kByteOrderMark);
  AppendCsvRow(std::vector<std::string>(names.begin(), names.end()), text);
  return text;
}

void AppendCsvRow(std::span<const std::string> cells, std::string& out) {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out += ',';
    const bool has_return = cells[i].find('\r') != std::string::npos;
    csv::AppendCell(has_return ? WithBareLineFeeds(cells[i]) : cells[i], out);
  }
  out += "\r\n";
}

void AppendNumber(const Cell& cell, int precision, std::string& out) {
  if (!cell) {
    out += ' ';
  } else if (cell->is_integer && std::isfinite(cell->value)) {
    fmt::format_to(std::back_inserter(out), "{:.0f}", cell->value);
  } else if (!cell->is_double) {
    AppendNarrow(cell->value, out);
  } else if (!std::isfinite(cell->value)) {
    AppendPythonFloat(cell->value, out);
  } else {
    char text[400];  // 309 digits before the point, at most 20 behind it
    const auto end =
        std::to_chars(text, std::end(text), cell->value, std::chars_format::fixed, precision).ptr;
    out.append(text, end);
  }
}

CallRows RowsOf(const CallOutcome& outcome, ResultForm form, int precision) {
  WrittenDirection forward = Written(outcome.name, "forward", outcome.forward);
  WrittenDirection backward = Written(outcome.name, "backward", outcome.backward);
  if (forward.status == CheckStatus::kNone && backward.status == CheckStatus::kNone) {
    forward = Written(outcome.name, "forward", {CheckStatus::kSkip, {}, {}});
  }
  // A call that was not run at all has one row.
  const bool is_skipped_whole = forward.status == CheckStatus::kSkip &&
                                backward.status == CheckStatus::kSkip &&
                                outcome.forward.rows.empty() && outcome.backward.rows.empty();
  if (is_skipped_whole) backward.rows.clear();
  const Spelling spelling{form, precision};
  CallRows rows;
  for (const OutputRow& row : forward.rows) AppendDetails(row, spelling, rows.details);
  for (const OutputRow& row : backward.rows) AppendDetails(row, spelling, rows.details);
  std::vector<std::string> cells = {outcome.name, spelling.Word(forward.status),
                                    spelling.Word(backward.status)};
  std::string message = ResultMessage(forward, backward, outcome.merged_calls, form);
  if (!outcome.note.empty()) {
    message = message.empty() ? outcome.note : fmt::format("{}\n{}", message, outcome.note);
  }
  // Upstream leaves the column out where it has nothing to say.
  if (!message.empty() || form == ResultForm::kMindSpore) cells.push_back(std::move(message));
  AppendCsvRow(cells, rows.result);
  return rows;
}

std::string ReadName(const csv::Row& row) {
  if (row.empty()) return {};
  const std::string& name = row.front();
  if (name.starts_with(' ') && csv::LooksLikeFormula(std::string_view(name).substr(1))) {
    return name.substr(1);
  }
  return name;
}

std::string_view CallOfOutput(std::string_view name) {
  for (const std::string_view middle :
       {".forward.output.", ".backward.output.", ".forward.input."}) {
    const size_t at = name.rfind(middle);
    if (at != std::string_view::npos) return name.substr(0, at);
  }
  return {};
}

std::optional<OutputName> ParseOutputName(std::string_view name) {
  const std::string_view call = CallOfOutput(name);
  const auto dots = std::count(name.begin(), name.end(), '.');
  const auto dots_of_call = std::count(call.begin(), call.end(), '.');
  if (call.empty() || dots != dots_of_call + 3 || dots_of_call < 2 || dots_of_call > 3) {
    return std::nullopt;
  }
  const size_t first = call.find('.');
  const size_t last = call.rfind('.');
  return OutputName{call, call.substr(first + 1, last - first - 1),
                    name.substr(call.size()).starts_with(".forward")};
}

plumbline::Status VisitDetails(const std::string& path, std::span<const std::string_view> needed,
                               const VisitDetailsRow& visit) {
  ColumnPlaces places;
  const auto end = csv::VisitWholeRows(
      path, [&](csv::Row& cells, const csv::RowPlace& /*place*/) -> plumbline::Status {
        if (places.empty()) {
          PL_TRY_ASSIGN(places, FindColumns(cells, needed));
          return {};
        }
        if (cells.empty()) return {};  // a blank line
        DetailsRow row = ReadDetailsRow(cells, places);
        return visit(row);
      });
  if (!end) return end.error();
  if (!places.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: is empty (expected the header of a details file)", path));
}

plumbline::Status VisitResults(const std::string& path, const VisitResultRow& visit) {
  bool is_header = true;
  const auto end = csv::VisitWholeRows(
      path, [&](csv::Row& cells, const csv::RowPlace& /*place*/) -> plumbline::Status {
        if (std::exchange(is_header, false) || cells.empty()) return {};
        ResultRow row;
        row.call = ReadName(cells);
        const auto forward = ParseStatus(cells.size() > 1 ? Trimmed(cells[1]) : "?");
        const auto backward = ParseStatus(cells.size() > 2 ? Trimmed(cells[2]) : "?");
        if (!forward || !backward) {
          return Error(ErrorCode::kCorrupt,
                       fmt::format("the row of {} has no words for both directions (expected pass, "
                                   "Warning, error, SKIP or a blank)",
                                   row.call));
        }
        row.forward = *forward;
        row.backward = *backward;
        if (cells.size() > 3) row.message = std::move(cells[3]);
        return visit(row);
      });
  if (!end) return end.error();
  return {};
}

}  // namespace plumbline::precheck
