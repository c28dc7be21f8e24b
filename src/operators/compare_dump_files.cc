#include "operators/compare_dump_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/number_text.h"
#include "formats/acl/acl_dump.h"
#include "formats/acl/acl_file_name.h"
#include "load/operator_dumps.h"
#include "load/run_reader.h"

namespace plumbline::operators {
namespace {

// What one file says about its operator.
struct DumpedOperator {
  std::string file_name, op_type, op_name;
  std::string full_name;  // as the model has it, where the file says so
};

Result<DumpedOperator> ReadOperator(const std::string& path) {
  DumpedOperator found;
  found.file_name = load::DumpNameOf(path).value_or(std::string(BaseName(path)));
  // A file that cannot be opened is the answer, and not a row of it.
  PL_TRY_ASSIGN(const acl::DumpFile file, acl::DumpFile::Open(path, found.file_name));
  found.full_name = file.message().op_name;
  if (const auto name = acl::ParseDumpFileName(found.file_name)) {
    found.op_type = name->op_type;
    found.op_name = name->op_name;
  } else if (const auto output = load::ParseOperatorDumpName(found.file_name)) {
    found.op_name = output->op_name;
  }
  if (found.op_name.empty()) found.op_name = found.full_name;
  if (found.op_name.empty()) found.op_name = found.file_name;
  return found;
}

// One sentence where the files may not be of one operator.
std::string OtherOperator(const DumpedOperator& target, const DumpedOperator& golden) {
  const bool are_full = !target.full_name.empty() && !golden.full_name.empty();
  const std::string& mine = are_full ? target.full_name : target.op_name;
  const std::string& theirs = are_full ? golden.full_name : golden.op_name;
  if (mine == theirs && target.op_type == golden.op_type) return {};
  const auto text = [](const std::string& name, const std::string& type) {
    return type.empty() ? name : fmt::format("{} ({})", name, type);
  };
  return fmt::format("the files are of two operators: {} and {}", text(mine, target.op_type),
                     text(theirs, golden.op_type));
}

std::string RowText(const OperatorRow& row) {
  std::string text = row.tensor.empty() ? "operator" : row.tensor;
  if (!row.shape.empty()) text += fmt::format(" {}", row.shape);
  if (!row.target_type.empty()) {
    text += fmt::format(" {}", row.target_type);
    if (row.golden_type != row.target_type) text += fmt::format(" ({})", row.golden_type);
  }
  text += fmt::format(": {}", VerdictName(row.verdict.verdict));
  const bool is_measured = std::isfinite(row.verdict.error) && row.verdict.error > 0;
  if (is_measured) text += fmt::format(", relative error {:.3g}", row.verdict.error);
  if (!row.verdict.reason.empty()) text += fmt::format(", {}", row.verdict.reason);
  if (!row.reason.empty()) text += fmt::format(": {}", row.reason);
  return "  " + OneLine(text) + "\n";
}

}  // namespace

Result<OperatorComparison> CompareDumpFiles(const std::string& target, const std::string& golden,
                                            int threads) {
  PL_TRY_ASSIGN(DumpedOperator mine, ReadOperator(target));
  PL_TRY_ASSIGN(DumpedOperator theirs, ReadOperator(golden));
  OperatorComparison comparison;
  for (const measure::DumpAlgorithm algorithm : measure::AllDumpAlgorithms()) {
    comparison.algorithms.emplace_back(measure::DumpAlgorithmName(algorithm));
  }
  std::string note = OtherOperator(mine, theirs);
  if (!note.empty()) comparison.notes.push_back(std::move(note));
  PairedOperator& pair = comparison.pairs.emplace_back();
  pair.op_type = std::move(mine.op_type);
  pair.target_name = std::move(mine.op_name);
  pair.golden_name = std::move(theirs.op_name);
  pair.target_path = target;
  pair.golden_path = golden;
  pair.target_file_name = std::move(mine.file_name);
  pair.golden_file_name = std::move(theirs.file_name);
  OperatorRequest request;
  request.threads = threads;
  request.with_overflow = true;
  MeasurePairs(request, comparison);
  return comparison;
}

std::string DumpFilesText(const OperatorComparison& comparison) {
  std::string text = OperatorText(comparison);
  constexpr size_t kMostRows = 100;
  for (size_t i = 0; i < std::min(kMostRows, comparison.rows.size()); ++i) {
    text += RowText(comparison.rows[i]);
  }
  if (comparison.rows.size() > kMostRows) {
    text += fmt::format("and {} more\n", CountText(comparison.rows.size() - kMostRows, "row"));
  }
  return text;
}

}  // namespace plumbline::operators
