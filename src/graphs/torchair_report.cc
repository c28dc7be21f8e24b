#include <fmt/format.h>

#include "base/file/file.h"
#include "base/file/text_file.h"
#include "base/text/csv.h"
#include "base/text/number_text.h"
#include "graphs/compare_torchair.h"
#include "report/result_names.h"

namespace plumbline::graphs {
namespace {

std::vector<std::string> HeaderOfReport() {
  std::vector<std::string> header = {"token_id", "data_id"};
  for (const std::string_view side : {"golden", "my"}) {
    for (const std::string_view name :
         {"data_path", "op_type", "dtype", "shape", "max_value", "min_value", "mean_value"}) {
      header.push_back(fmt::format("{}_{}", side, name));
    }
  }
  header.insert(header.end(), measure::kTorchairMetricNames.begin(),
                measure::kTorchairMetricNames.end());
  header.insert(header.end(), {"cmp_fail_reason", "verdict", "reason"});
  return header;
}

std::vector<std::string> CellsOf(const TorchairRow& row, size_t number) {
  std::vector<std::string> cells = {std::to_string(row.token), std::to_string(number)};
  for (const TorchairTensor* tensor : {&row.golden, &row.target}) {
    cells.insert(cells.end(), {tensor->path, tensor->operator_type, tensor->dtype, tensor->shape});
    cells.insert(cells.end(), tensor->statistics.begin(), tensor->statistics.end());
  }
  for (size_t i = 0; i < measure::kTorchairMetricNames.size(); ++i) {
    cells.push_back(row.metrics ? PythonFloat((*row.metrics)[i]) : std::string());
  }
  cells.push_back(row.fail_reason);
  cells.emplace_back(VerdictName(row.judged.verdict.verdict));
  cells.emplace_back(row.judged.verdict.reason);
  return cells;
}

}  // namespace

Result<std::string> WriteTorchairReport(const TorchairComparison& comparison,
                                        const std::string& directory) {
  PL_TRY(MakeDirectories(directory));
  const std::string rank = comparison.rank ? fmt::format("_rank{}", *comparison.rank) : "";
  const report::FreeName name = report::FreePath(directory, "msprobe_cmp_report" + rank, ".csv");
  PL_TRY_ASSIGN(TextFile out, TextFile::Create(name.text));
  csv::AppendRow(HeaderOfReport(), out.text());
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    csv::AppendRow(CellsOf(comparison.rows[i], i), out.text());
    PL_TRY(out.Flush());
  }
  PL_TRY(out.Close());
  return name.text;
}

}  // namespace plumbline::graphs
