#include "report/row_cells.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

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

void AddValueColumns(CompareMode mode, std::vector<CellColumn>& columns) {
  switch (mode) {
    case CompareMode::kTensor:
      for (const MetricColumn& column : kTensorMetrics) {
        columns.push_back({std::string(column.name), CellKind::kReal});
      }
      columns.push_back({"element_count", CellKind::kInteger});
      columns.push_back({"mismatch_count", CellKind::kInteger});
      break;
    case CompareMode::kStatistics:
      for (const std::string_view kind : {"diff", "percent"}) {
        for (const std::string_view name : kStatistics) {
          columns.push_back({fmt::format("{}_{}", name, kind), CellKind::kReal});
        }
      }
      break;
    case CompareMode::kDigest:
      columns.push_back({"target_md5", CellKind::kText});
      columns.push_back({"golden_md5", CellKind::kText});
      break;
  }
}

Cell Number(double value) {
  if (std::isnan(value)) return std::string_view("nan");
  return value;
}

Cell ErrorCell(double error) { return std::isnan(error) ? Cell() : Cell(error); }

Cell MetricCell(const Metric& metric) {
  const double* value = std::get_if<double>(&metric);
  return value == nullptr ? Cell() : Number(*value);
}

Cell RecordedCell(const Recorded& recorded) {
  if (const auto* truth = std::get_if<bool>(&recorded)) return int64_t{*truth};
  if (const auto* integer = std::get_if<int64_t>(&recorded)) return *integer;
  if (const auto* real = std::get_if<double>(&recorded)) return Number(*real);
  if (const auto* text = std::get_if<Text>(&recorded)) return text->view();
  return {};
}

Cell TextOrNull(std::string_view text) { return text.empty() ? Cell() : Cell(text); }

Cell OptionalText(const Slot<Item>& item, std::optional<Text> Item::*member) {
  if (!item || !((*item).*member)) return {};
  return ((*item).*member)->view();
}

}  // namespace

std::vector<CellColumn> CellColumnsOf(CompareMode mode) {
  std::vector<CellColumn> columns = {
      {"row", CellKind::kInteger},       {"call", CellKind::kInteger},
      {"name", CellKind::kText},         {"role", CellKind::kWord},
      {"verdict", CellKind::kWord},      {"reason", CellKind::kWord},
      {"error", CellKind::kReal},        {"explained_error", CellKind::kReal},
      {"result", CellKind::kWord},       {"target_dtype", CellKind::kWord},
      {"golden_dtype", CellKind::kWord}, {"target_shape", CellKind::kWord},
      {"golden_shape", CellKind::kWord},
  };
  for (const std::string_view side : {"target", "golden"}) {
    for (const std::string_view name : kStatistics) {
      columns.push_back({fmt::format("{}_{}", side, name), CellKind::kStatistic});
    }
  }
  AddValueColumns(mode, columns);
  columns.push_back({"notes", CellKind::kText});
  return columns;
}

void RowCells::AddMetrics(const ComparedRow& row) {
  switch (comparison_.mode) {
    case CompareMode::kTensor:
      for (const MetricColumn& column : kTensorMetrics) {
        cells_.push_back(MetricCell((*row.tensor).*column.metric));
      }
      cells_.emplace_back(static_cast<int64_t>(row.tensor->element_count));
      cells_.emplace_back(static_cast<int64_t>(row.tensor->mismatch_count));
      return;
    case CompareMode::kStatistics: {
      const StatisticDifferences differences = row.statistics();
      for (const Metric& metric : differences.difference) cells_.push_back(MetricCell(metric));
      for (const Metric& metric : differences.relative_percent) {
        cells_.push_back(MetricCell(metric));
      }
      return;
    }
    case CompareMode::kDigest:
      for (const Slot<Item>* side : {&row.target, &row.golden}) {
        cells_.push_back(*side ? TextOrNull((*side)->digest) : Cell());
      }
      return;
  }
}

const std::vector<Cell>& RowCells::Of(size_t index) {
  const ComparedRow& row = comparison_.rows[index];
  cells_.clear();
  cells_.emplace_back(static_cast<int64_t>(index));
  cells_.emplace_back(static_cast<int64_t>(row.call));
  cells_.emplace_back(row.item().name.view());
  cells_.emplace_back(RoleName(row.item().role));
  cells_.emplace_back(VerdictName(row.verdict));
  cells_.emplace_back(row.reason.view());
  cells_.push_back(ErrorCell(row.error));
  cells_.push_back(ErrorCell(row.expected));
  cells_.emplace_back(row.result.view());
  for (const auto member : {&Item::dtype, &Item::shape_text}) {
    cells_.push_back(OptionalText(row.target, member));
    cells_.push_back(OptionalText(row.golden, member));
  }
  for (const Slot<Item>* side : {&row.target, &row.golden}) {
    for (size_t i = 0; i < kStatistics.size(); ++i) {
      cells_.push_back(*side ? RecordedCell((*side)->statistics[i]) : Cell());
    }
  }
  AddMetrics(row);
  notes_.clear();
  for (const Note& note : row.notes) {
    fmt::format_to(std::back_inserter(notes_), "{}[{}] {}", notes_.empty() ? "" : "; ", note.code,
                   note.text);
  }
  cells_.push_back(TextOrNull(notes_));
  return cells_;
}

}  // namespace plumbline::report
