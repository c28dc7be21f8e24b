#include "report/result_database.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "formats/sqlite_table.h"
#include "report/json_object.h"
#include "report/result_json.h"

namespace plumbline::report {
namespace {

using sqlite_table::Cell;

constexpr std::array<std::string_view, 4> kStatistics = {"max", "min", "mean", "norm"};

struct MetricColumn {
  std::string_view name;
  Metric TensorMetrics::*metric;
};
constexpr std::array<MetricColumn, 7> kTensorMetrics = {{
    {"cosine", &TensorMetrics::cosine},
    {"max_abs_error", &TensorMetrics::max_abs_error},
    {"max_relative_error", &TensorMetrics::max_relative_error},
    {"below_thousandth_ratio", &TensorMetrics::below_thousandth_ratio},
    {"below_five_thousandths_ratio", &TensorMetrics::below_five_thousandths_ratio},
    {"relative_l2", &TensorMetrics::relative_l2},
    {"max_ulp", &TensorMetrics::max_ulp},
}};

constexpr size_t kCallColumns = 7;
constexpr std::string_view kRowsHead =
    "CREATE TABLE rows (row INTEGER PRIMARY KEY, call INTEGER NOT NULL REFERENCES calls(call), "
    "name TEXT NOT NULL, role TEXT NOT NULL, verdict TEXT NOT NULL, reason TEXT NOT NULL, "
    "error REAL, explained_error REAL, result TEXT NOT NULL, target_dtype TEXT, golden_dtype TEXT, "
    "target_shape TEXT, golden_shape TEXT";

// Columns of the rows after the fixed ones; their values are made in the same order.
std::vector<std::string> ValueColumns(CompareMode mode) {
  std::vector<std::string> columns;
  for (const std::string_view side : {"target", "golden"}) {
    for (const std::string_view name : kStatistics) {
      columns.push_back(fmt::format("{}_{}", side, name));
    }
  }
  switch (mode) {
    case CompareMode::kTensor:
      for (const MetricColumn& column : kTensorMetrics) columns.emplace_back(column.name);
      columns.emplace_back("element_count");
      columns.emplace_back("mismatch_count");
      break;
    case CompareMode::kStatistics:
      for (const std::string_view kind : {"diff", "percent"}) {
        for (const std::string_view name : kStatistics) {
          columns.push_back(fmt::format("{}_{}", name, kind));
        }
      }
      break;
    case CompareMode::kDigest:
      columns.emplace_back("target_md5");
      columns.emplace_back("golden_md5");
      break;
  }
  columns.emplace_back("notes");
  return columns;
}

std::string Schema(const std::vector<std::string>& value_columns) {
  std::string rows(kRowsHead);
  for (const std::string& column : value_columns) rows += ", " + column;
  return "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);"
         "CREATE TABLE calls (call INTEGER PRIMARY KEY, target_name TEXT, golden_name TEXT, "
         "verdict TEXT NOT NULL, unmatched_reason TEXT, unmatched_detail TEXT, stack TEXT);" +
         rows +
         ");CREATE VIEW wrong AS SELECT * FROM rows WHERE verdict IN ('suspicious', 'broken');";
}

Cell Number(double value) {
  if (std::isnan(value)) return std::string_view("nan");
  return value;
}

Cell MetricCell(const Metric& metric) {
  const double* value = std::get_if<double>(&metric);
  return value == nullptr ? Cell() : Number(*value);
}

Cell RecordedCell(const Recorded& recorded) {
  if (const auto* truth = std::get_if<bool>(&recorded)) return int64_t{*truth};
  if (const auto* integer = std::get_if<int64_t>(&recorded)) return *integer;
  if (const auto* real = std::get_if<double>(&recorded)) return Number(*real);
  if (const auto* text = std::get_if<std::string>(&recorded)) return std::string_view(*text);
  return {};
}

Cell TextOrNull(const std::string& text) {
  return text.empty() ? Cell() : Cell(std::string_view(text));
}

Cell OptionalText(const std::optional<Item>& item, std::optional<std::string> Item::*member) {
  if (!item || !((*item).*member)) return {};
  return std::string_view(*((*item).*member));
}

void AddMetrics(const Comparison& comparison, const ComparedRow& row, std::vector<Cell>& cells) {
  switch (comparison.mode) {
    case CompareMode::kTensor:
      for (const MetricColumn& column : kTensorMetrics) {
        cells.push_back(MetricCell(row.tensor.*column.metric));
      }
      cells.emplace_back(static_cast<int64_t>(row.tensor.element_count));
      cells.emplace_back(static_cast<int64_t>(row.tensor.mismatch_count));
      return;
    case CompareMode::kStatistics:
      for (const Metric& metric : row.statistics.difference) cells.push_back(MetricCell(metric));
      for (const Metric& metric : row.statistics.relative_percent) {
        cells.push_back(MetricCell(metric));
      }
      return;
    case CompareMode::kDigest:
      for (const std::optional<Item>* side : {&row.target, &row.golden}) {
        cells.push_back(*side ? TextOrNull((*side)->digest) : Cell());
      }
      return;
  }
}

std::string NotesText(const ComparedRow& row) {
  std::string text;
  for (const Note& note : row.notes) {
    text += fmt::format("{}[{}] {}", text.empty() ? "" : "; ", note.code, note.text);
  }
  return text;
}

Status AddFacts(const Comparison& comparison, sqlite_table::Writer& writer) {
  PL_TRY(writer.Begin("facts", 2));
  const std::string answer = SummaryText(comparison);
  std::string summary = SummaryJson(comparison);
  summary.pop_back();
  const std::array<std::pair<std::string_view, std::string_view>, 7> facts = {{
      {"format", "plumbline compare"},
      {"version", "1"},
      {"mode", CompareModeName(comparison.mode)},
      {"target", comparison.target_path},
      {"golden", comparison.golden_path},
      {"answer", std::string_view(answer).substr(0, answer.find('\n'))},
      {"summary", summary},
  }};
  for (const auto& [name, value] : facts) {
    PL_TRY(writer.Add(std::array<Cell, 2>{name, value}));
  }
  return {};
}

Status AddCalls(const Comparison& comparison, sqlite_table::Writer& writer) {
  PL_TRY(writer.Begin("calls", kCallColumns));
  for (size_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    std::string stack;
    if (i < comparison.stacks.size() && !comparison.stacks[i].empty()) {
      AppendTexts(comparison.stacks[i], stack);
    }
    const std::array<Cell, kCallColumns> cells = {static_cast<int64_t>(i),
                                                  TextOrNull(call.target_name),
                                                  TextOrNull(call.golden_name),
                                                  VerdictName(call.verdict),
                                                  TextOrNull(call.unmatched_reason),
                                                  TextOrNull(call.unmatched_detail),
                                                  TextOrNull(stack)};
    PL_TRY(writer.Add(cells));
  }
  return {};
}

Status AddRow(const Comparison& comparison, size_t index, std::vector<Cell>& cells,
              sqlite_table::Writer& writer) {
  const ComparedRow& row = comparison.rows[index];
  const auto error_cell = [](double error) { return std::isnan(error) ? Cell() : Cell(error); };
  cells.clear();
  cells.emplace_back(static_cast<int64_t>(index));
  cells.emplace_back(static_cast<int64_t>(row.call));
  cells.emplace_back(std::string_view(row.item().name));
  cells.emplace_back(RoleName(row.item().role));
  cells.emplace_back(VerdictName(row.verdict));
  cells.emplace_back(std::string_view(row.reason));
  cells.push_back(error_cell(row.error));
  cells.push_back(error_cell(row.expected));
  cells.emplace_back(std::string_view(row.result));
  for (const auto member : {&Item::dtype, &Item::shape_text}) {
    cells.push_back(OptionalText(row.target, member));
    cells.push_back(OptionalText(row.golden, member));
  }
  for (const std::optional<Item>* side : {&row.target, &row.golden}) {
    for (size_t i = 0; i < kStatistics.size(); ++i) {
      cells.push_back(*side ? RecordedCell((*side)->statistics[i]) : Cell());
    }
  }
  AddMetrics(comparison, row, cells);
  const std::string notes = NotesText(row);
  cells.push_back(TextOrNull(notes));
  return writer.Add(cells);
}

}  // namespace

Status WriteDatabase(const Comparison& comparison, const std::string& path) {
  const std::vector<std::string> value_columns = ValueColumns(comparison.mode);
  PL_TRY_ASSIGN(sqlite_table::Writer writer,
                sqlite_table::Writer::Create(path, Schema(value_columns)));
  PL_TRY(AddFacts(comparison, writer));
  PL_TRY(AddCalls(comparison, writer));
  constexpr size_t kFixedColumns = 13;
  PL_TRY(writer.Begin("rows", kFixedColumns + value_columns.size()));
  std::vector<Cell> cells;
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    PL_TRY(AddRow(comparison, i, cells, writer));
  }
  return writer.Finish();
}

}  // namespace plumbline::report
