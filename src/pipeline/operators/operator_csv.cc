#include "pipeline/operators/operator_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "base/csv.h"
#include "base/parallel.h"
#include "base/text_file.h"
#include "pipeline/result_names.h"

namespace plumbline::pipeline {
namespace {

constexpr std::string_view kNoValue = "NaN";
// Rows that one thread formats at a time, and how many such texts are held before they are written.
constexpr size_t kBlock = 256, kBlocksHeld = 64;

std::string AddressCell(uint64_t address) {
  return address == 0 ? std::string(kNoValue) : std::to_string(address);
}

std::string_view TextOr(std::string_view text, std::string_view otherwise) {
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

// The cells of one row after the other. They are borrowed from the row and from this object.
class Cells {
 public:
  explicit Cells(const OperatorComparison& comparison) : comparison_(comparison) {}
  const std::vector<std::string_view>& Of(const OperatorRow& row);

 private:
  const OperatorComparison& comparison_;
  std::string index_, sequence_, target_address_, golden_address_, error_;
  std::vector<std::string_view> cells_;
};

const std::vector<std::string_view>& Cells::Of(const OperatorRow& row) {
  const PairedOperator& pair = comparison_.pairs[row.pair];
  cells_.clear();
  index_ = std::to_string(pair.index);
  cells_.push_back(index_);
  if (comparison_.has_sequence) {
    sequence_ = std::to_string(pair.sequence);
    cells_.push_back(sequence_);
  }
  cells_.insert(cells_.end(), {TextOr(pair.op_type, kNoValue), pair.target_name,
                               TextOr(row.target_type, kNoValue)});
  if (!comparison_.is_target_array) {
    target_address_ = AddressCell(row.target_address);
    cells_.push_back(target_address_);
  }
  cells_.insert(cells_.end(), {row.golden_name, TextOr(row.golden_type, kNoValue)});
  if (!comparison_.is_golden_array) {
    golden_address_ = AddressCell(row.golden_address);
    cells_.push_back(golden_address_);
  }
  cells_.insert(cells_.end(), {TextOr(row.tensor, kNoValue), TextOr(row.shape, kNoValue)});
  if (comparison_.with_overflow) cells_.push_back(row.overflow);
  for (size_t i = 0; i < comparison_.algorithms.size(); ++i) {
    cells_.push_back(row.values.empty() ? kNoValue : std::string_view(row.values[i]));
  }
  error_ = std::isnan(row.verdict.error) ? "" : fmt::format("{:.6g}", row.verdict.error);
  cells_.insert(cells_.end(),
                {row.reason, VerdictName(row.verdict.verdict), row.verdict.reason, error_});
  return cells_;
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
  const auto append = [is_csv](std::span<const std::string_view> cells, std::string& text) {
    if (is_csv) return csv::AppendRow(cells, text);
    text += fmt::format("{}\n", fmt::join(cells, " "));
  };
  const std::vector<std::string> header = Header(comparison);
  append(std::vector<std::string_view>(header.begin(), header.end()), out.text());
  std::array<std::string, kBlocksHeld> texts;
  const size_t rows = comparison.rows.size();
  for (size_t begin = 0; begin < rows; begin += kBlock * kBlocksHeld) {
    const size_t count = std::min(rows - begin, kBlock * kBlocksHeld);
    ParallelBlocks(count, kBlock, [&](size_t from, size_t to) {
      std::string& text = texts[from / kBlock];
      text.clear();
      Cells cells(comparison);
      for (size_t i = from; i < to; ++i) append(cells.Of(comparison.rows[begin + i]), text);
    });
    for (size_t k = 0; k * kBlock < count; ++k) PL_TRY(out.Write(texts[k]));
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
      cells.insert(cells.end(), {std::string(TextOr(pair.op_type, kNoValue)), pair.target_name,
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
