#include "pipeline/operators/operator_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/csv.h"
#include "base/file.h"
#include "base/input_files.h"
#include "base/number_text.h"
#include "base/text_parts.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {
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

}  // namespace plumbline::pipeline
