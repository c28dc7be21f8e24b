#include "operators/operator_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/file/input_files.h"
#include "base/file/text_file.h"
#include "base/process/parallel.h"
#include "base/text/csv.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/acl/acl_dump.h"
#include "plumbline/compare.h"
#include "report/result_names.h"

namespace plumbline::operators {

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
  const report::FreeName name = report::FreePath(directory, prefix, ".csv");
  PL_TRY(WriteOperatorTable(comparison, name.text, /*is_csv=*/true));
  return name.text;
}

Result<std::string> WriteOperatorMapping(const OperatorComparison& comparison,
                                         const std::string& directory) {
  PL_TRY(MakeDirectories(directory));
  const report::FreeName name = report::FreePath(directory, "mapping", ".csv");
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

namespace {

constexpr double kSimilar = 0.99;

constexpr const char* kOverflowAdvice =
    "float16 data overflow in this operator. Fix the overflow and compare again.";
constexpr const char* kInputAdvice =
    "The inputs of the two sides differ. Use the same data, or check the preprocessing.";
constexpr const char* kConsistentAdvice =
    "All comparisons meet the requirement. If the model is still wrong, look at the "
    "post-processing.";
constexpr const char* kProblemAdvice =
    "The accuracy of this operator and of the result is low, possibly by quantisation. Check the "
    "operator, or calibrate.";
constexpr const char* kDeviationAdvice =
    "Some tensors deviate and the final result is fine: probably an internal optimisation.";
constexpr const char* kBrokenAdvice =
    "No similarity is low, but this operator has a tensor that is broken by its Verdict: numbers "
    "of another size have the same direction.";

// Columns of a csv by name.
class Table {
 public:
  explicit Table(std::vector<csv::Row> rows) : rows_(std::move(rows)) {
    // Blank lines are rows without cells.
    std::erase_if(rows_, [](const csv::Row& row) { return row.empty(); });
  }

  [[nodiscard]] std::optional<size_t> Column(std::string_view name) const {
    if (rows_.empty()) return std::nullopt;
    const auto found = std::find(rows_[0].begin(), rows_[0].end(), name);
    if (found == rows_[0].end()) return std::nullopt;
    return static_cast<size_t>(found - rows_[0].begin());
  }
  [[nodiscard]] size_t size() const { return rows_.empty() ? 0 : rows_.size() - 1; }
  [[nodiscard]] std::string Cell(size_t row, size_t column) const {
    const csv::Row& cells = rows_[row + 1];
    return column < cells.size() ? cells[column] : "";
  }

 private:
  std::vector<csv::Row> rows_;
};

struct Columns {
  size_t index = 0;
  size_t cosine = 0;
  std::optional<size_t> name, overflow, verdict;
};

double CosineOf(const Table& table, size_t row, const Columns& columns) {
  return ParseReal(table.Cell(row, columns.cosine)).value_or(std::nan(""));
}

OperatorAdvice Overall(const Table& table, const Columns& columns) {
  std::optional<size_t> first_low, first_broken;
  double last = std::nan("");
  uint64_t without = 0;
  for (size_t row = 0; row < table.size(); ++row) {
    const bool is_broken =
        columns.verdict && table.Cell(row, *columns.verdict) == VerdictName(Verdict::kBroken);
    if (is_broken && !first_broken) first_broken = row;
    const double cosine = CosineOf(table, row, columns);
    if (std::isnan(cosine)) {
      ++without;
      continue;
    }
    last = cosine;
    if (!first_low && cosine < kSimilar) first_low = row;
  }
  OperatorAdvice advice{"Global Consistency", "NA", kConsistentAdvice, {}};
  if (first_low) {
    advice.index = table.Cell(*first_low, columns.index);
    advice.advice = last < kSimilar ? kProblemAdvice : kDeviationAdvice;
  } else if (first_broken) {
    advice.index = table.Cell(*first_broken, columns.index);
    advice.advice = kBrokenAdvice;
  } else if (std::isnan(last)) {
    advice.advice = "No tensor could be compared.";
  } else if (without > 0) {
    advice.advice = "All tensors that could be compared meet the requirement.";
  }
  if (without > 0) {
    advice.advice += fmt::format(" {} could not be compared.", CountText(without, "tensor"));
  }
  return advice;
}

}  // namespace

Result<OperatorAdvice> AdviseOn(const std::string& csv_path,
                                const std::vector<std::string>& input_nodes) {
  PL_TRY_ASSIGN(std::vector<csv::Row> rows, csv::ReadRows(csv_path));
  const Table table(std::move(rows));
  const auto index = table.Column("Index"), cosine = table.Column("CosineSimilarity");
  if (!index || !cosine) {
    return Error(ErrorCode::kInvalidArgument,
                 csv_path +
                     ": no columns Index and CosineSimilarity (expected a result of "
                     "msaccucmp compare with this algorithm)");
  }
  const Columns columns{*index, *cosine, table.Column("NPUDump"), table.Column("OverFlow"),
                        table.Column("Verdict")};
  std::vector<std::string> notes;
  if (!columns.overflow) notes.emplace_back("no column OverFlow: overflows are not looked for");
  if (input_nodes.empty()) notes.emplace_back("no input nodes are known: inputs are not looked at");
  for (size_t row = 0; columns.overflow && row < table.size(); ++row) {
    if (table.Cell(row, *columns.overflow) != "YES") continue;
    return OperatorAdvice{"FP16 Overflow", table.Cell(row, *index), kOverflowAdvice, notes};
  }
  for (size_t row = 0; columns.name && row < table.size(); ++row) {
    const std::string name = table.Cell(row, *columns.name);
    const bool is_input =
        std::find(input_nodes.begin(), input_nodes.end(), name) != input_nodes.end();
    if (!is_input || !(CosineOf(table, row, columns) < kSimilar)) continue;
    return OperatorAdvice{"Input Inconsistent", table.Cell(row, *index), kInputAdvice, notes};
  }
  OperatorAdvice advice = Overall(table, columns);
  advice.notes = std::move(notes);
  return advice;
}

std::string AdviceText(const OperatorAdvice& advice) {
  return fmt::format("Detection Type: {}\nOperator Index: {}\nExpert Advice: {}\n",
                     advice.detection_type, advice.index, advice.advice);
}

Result<std::string> WriteAdvice(const OperatorAdvice& advice, const std::string& csv_path,
                                const std::string& directory) {
  std::string path = JoinPath(directory, "advisor_summary.txt");
  PL_TRY(InputFiles({csv_path}).CheckSpares(path));
  PL_TRY(MakeDirectories(directory));
  PL_TRY(WriteFileAtomically(path, AdviceText(advice), false));
  return path;
}

Result<std::vector<std::string>> SaveSpaceLogs(const std::string& dump_path,
                                               const std::string& directory) {
  PL_TRY_ASSIGN(const acl::DumpFile file, acl::DumpFile::Open(dump_path));
  PL_TRY(MakeDirectories(directory));
  std::vector<std::string> paths;
  for (const acl::DumpedBytes& space : file.message().spaces) {
    const size_t index = paths.size();
    if (space.is_cut()) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: space {} is cut (expected {} bytes, got {})", dump_path, index,
                               space.size, space.data.size()));
    }
    std::string text(reinterpret_cast<const char*>(space.data.data()), space.data.size());
    std::erase(text, '\0');
    paths.push_back(JoinPath(directory, fmt::format("{}.{}.log", BaseName(dump_path), index)));
    PL_TRY(WriteFileAtomically(paths.back(), text, false));
  }
  return paths;
}

}  // namespace plumbline::operators
