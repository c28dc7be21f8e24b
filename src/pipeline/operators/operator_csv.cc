#include "pipeline/operators/operator_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/csv.h"
#include "base/text_file.h"
#include "pipeline/result_names.h"

namespace plumbline::pipeline {
namespace {

constexpr const char* kNoValue = "NaN";

std::string AddressCell(uint64_t address) {
  return address == 0 ? kNoValue : std::to_string(address);
}

std::string TextOr(const std::string& text, const char* otherwise) {
  return text.empty() ? otherwise : text;
}

std::vector<std::string> Header(const OperatorComparison& comparison) {
  std::vector<std::string> header = {"Index"};
  if (comparison.has_sequence) header.emplace_back("OpSequence");
  header.insert(header.end(), {"OpType", "NPUDump", "DataType"});
  if (!comparison.is_target_array) header.emplace_back("Address");
  header.insert(header.end(), {"GroundTruth", "DataType"});
  if (!comparison.is_golden_array) header.emplace_back("Address");
  header.insert(header.end(), {"TensorIndex", "Shape"});
  if (comparison.with_overflow) header.emplace_back("OverFlow");
  header.insert(header.end(), comparison.algorithms.begin(), comparison.algorithms.end());
  header.insert(header.end(), {"CompareFailReason", "Verdict", "Reason", "RelativeError"});
  return header;
}

std::vector<std::string> CellsOf(const OperatorComparison& comparison, const OperatorRow& row) {
  const PairedOperator& pair = comparison.pairs[row.pair];
  std::vector<std::string> cells = {std::to_string(pair.index)};
  if (comparison.has_sequence) cells.push_back(std::to_string(pair.sequence));
  cells.insert(cells.end(), {TextOr(pair.op_type, kNoValue), pair.target_name,
                             TextOr(row.target_type, kNoValue)});
  if (!comparison.is_target_array) cells.push_back(AddressCell(row.target_address));
  cells.insert(cells.end(), {row.golden_name, TextOr(row.golden_type, kNoValue)});
  if (!comparison.is_golden_array) cells.push_back(AddressCell(row.golden_address));
  cells.insert(cells.end(), {TextOr(row.tensor, kNoValue), TextOr(row.shape, kNoValue)});
  if (comparison.with_overflow) cells.push_back(row.overflow);
  for (size_t i = 0; i < comparison.algorithms.size(); ++i) {
    cells.push_back(row.values.empty() ? kNoValue : row.values[i]);
  }
  cells.push_back(row.reason);
  cells.emplace_back(VerdictName(row.verdict.verdict));
  cells.emplace_back(row.verdict.reason);
  cells.push_back(std::isnan(row.verdict.error) ? "" : fmt::format("{:.6g}", row.verdict.error));
  return cells;
}

}  // namespace

bool IsResultColumn(std::string_view name) {
  OperatorComparison widest;
  widest.has_sequence = widest.with_overflow = true;
  const std::vector<std::string> header = Header(widest);
  return std::ranges::find(header, name) != header.end();
}

Status WriteOperatorTable(const OperatorComparison& comparison, const std::string& path,
                          bool is_csv) {
  PL_TRY_ASSIGN(TextFile out, TextFile::Create(path));
  const auto append = [&](const std::vector<std::string>& cells) {
    if (is_csv) {
      csv::AppendRow(cells, out.text());
    } else {
      out.text() += fmt::format("{}\n", fmt::join(cells, " "));
    }
  };
  append(Header(comparison));
  for (const OperatorRow& row : comparison.rows) {
    append(CellsOf(comparison, row));
    PL_TRY(out.Flush());
  }
  return out.Close();
}

Result<std::string> WriteOperatorCsv(const OperatorComparison& comparison,
                                     const std::string& directory, const std::string& prefix) {
  PL_TRY(MakeDirectories(directory));
  const FreeName name = FreePath(directory, prefix, ".csv");
  PL_TRY(WriteOperatorTable(comparison, name.text, /*is_csv=*/true));
  return name.text;
}

Result<std::string> WriteOperatorMapping(const OperatorComparison& comparison,
                                         const std::string& directory) {
  PL_TRY(MakeDirectories(directory));
  const FreeName name = FreePath(directory, "mapping", ".csv");
  PL_TRY_ASSIGN(TextFile out, TextFile::Create(name.text));
  csv::Row header = {"Index"};
  if (comparison.has_sequence) header.emplace_back("OpSequence");
  for (const char* column :
       {"OpType", "NPUDump", "GroundTruth", "TensorIndex", "NPUDumpPath", "GroundTruthPath"}) {
    header.emplace_back(column);
  }
  csv::AppendRow(header, out.text());
  for (const PairedOperator& pair : comparison.pairs) {
    for (const TensorTask& task : pair.tasks.value_or(std::vector<TensorTask>{})) {
      csv::Row cells = {std::to_string(pair.index)};
      if (comparison.has_sequence) cells.push_back(std::to_string(pair.sequence));
      cells.insert(cells.end(), {TextOr(pair.op_type, kNoValue), pair.target_name,
                                 task.golden ? task.golden->name : "*",
                                 TensorName(pair.target_name, task.target), pair.target_path,
                                 task.golden ? task.golden->path : ""});
      csv::AppendRow(cells, out.text());
      PL_TRY(out.Flush());
    }
  }
  PL_TRY(out.Close());
  return name.text;
}

}  // namespace plumbline::pipeline
