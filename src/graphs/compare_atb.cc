#include "graphs/compare_atb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/acl/atb_bin.h"
#include "formats/table/xlsx.h"
#include "kernels/tensor_scan.h"
#include "measure/stats_metrics.h"
#include "measure/tensor_metrics.h"
#include "record/tensor_stats.h"
#include "report/result_names.h"

namespace plumbline::graphs {
namespace {

using load::AtbTensor;
using measure::ArrayVerdict;

constexpr std::string_view kNotAvailable = "N/A";

std::string StatisticText(const Statistic& statistic) {
  if (const auto* truth = std::get_if<bool>(&statistic)) return *truth ? "True" : "False";
  double value = std::numeric_limits<double>::quiet_NaN();
  if (const auto* number = std::get_if<double>(&statistic)) value = *number;
  if (const auto* number = std::get_if<int64_t>(&statistic)) value = static_cast<double>(*number);
  return std::isnan(value) ? std::string(kNotAvailable) : PythonFloat(value);
}

// As upstream fills them: none of tensors without dimensions, without elements, or with NaN.
std::array<std::string, 4> StatisticsOf(const TensorView& view) {
  std::array<std::string, 4> cells;
  cells.fill(std::string(kNotAvailable));
  if (view.sizes.empty() || view.element_count() == 0) return cells;
  const kernels::TensorScan scan = kernels::ScanTensor(view, {});
  const TensorStats stats = ComputeStats(view.dtype, scan.moments, false);
  return {StatisticText(stats.max), StatisticText(stats.min), StatisticText(stats.mean),
          StatisticText(stats.norm)};
}

// "2,0": a size of 0.
bool HasNoElements(const load::AtbTensor& tensor) {
  return std::ranges::any_of(SplitAt(tensor.shape, ','),
                             [](std::string_view size) { return size == "0"; });
}

bool SameShape(const TensorView& a, const TensorView& b) {
  return std::ranges::equal(a.sizes, b.sizes);
}

void MeasureTensors(AtbRow& row) {
  row.metrics = measure::AbsentMetrics(Absent::kUnreadable);
  row.target_statistics.fill(std::string(kNotAvailable));
  row.golden_statistics.fill(std::string(kNotAvailable));
  const auto target = atb::BinFile::Open(row.target->path);
  const auto golden = atb::BinFile::Open(row.golden->path);
  if (target) row.target_statistics = StatisticsOf(target->view());
  if (golden) row.golden_statistics = StatisticsOf(golden->view());
  if (!target || !golden) {
    row.problem = !target ? target.error().message() : golden.error().message();
    row.verdict = measure::NotComparable("unreadable");
    return;
  }
  const TensorView a = target->view(), b = golden->view();
  if (!SameShape(a, b)) {
    row.metrics = measure::AbsentMetrics(Absent::kShapeMismatch);
    row.verdict = {Verdict::kBroken, "shape-differs", 0, 0};
    return;
  }
  if (a.element_count() == 0) {
    row.metrics = measure::AbsentMetrics(Absent::kEmpty);
    row.verdict = measure::NotComparable("empty");
    return;
  }
  const auto sums = measure::SumPairs(a, b);
  if (!sums) {
    row.problem = sums.error().message();
    row.verdict = measure::NotComparable("unreadable");
    return;
  }
  row.metrics = measure::MetricsFromSums(*sums, a.sizes.size());
  row.verdict = measure::JudgeElements(*sums, a, b);
}

// From printed statistics alone.
void JudgeStatistics(AtbRow& row) {
  std::array<Recorded, 4> target, golden;
  bool any = false, same = true, any_nan = false, nan_differs = false;
  for (size_t i = 0; i < target.size(); ++i) {
    row.target_statistics[i] = row.target->statistics[i];
    row.golden_statistics[i] = row.golden->statistics[i];
    const auto a = ParseReal(row.target->statistics[i]), b = ParseReal(row.golden->statistics[i]);
    if (a.has_value() != b.has_value()) nan_differs = true;
    if (!a || !b) continue;
    any = true;
    any_nan = any_nan || std::isnan(*a) || std::isnan(*b);
    nan_differs = nan_differs || std::isnan(*a) != std::isnan(*b);
    same = same && *a == *b;
    target[i] = *a;
    golden[i] = *b;
  }
  if (row.target->shape != row.golden->shape) {
    row.verdict = {Verdict::kBroken, "shape-differs", 0, 0};
  } else if (nan_differs) {
    row.verdict = {Verdict::kBroken, "nonfinite-position", 0, 0};
  } else if (!any) {
    row.verdict = measure::NotComparable(HasNoElements(*row.target) ? "empty" : "no-data");
  } else if (any_nan) {
    row.verdict = measure::NotComparable("nonfinite-both");
  } else if (same) {
    const bool zero = std::get<double>(target[0]) == 0 && std::get<double>(target[1]) == 0;
    row.verdict =
        zero ? measure::NotComparable("zero-both") : ArrayVerdict{Verdict::kSame, "", 0, 0};
  } else {
    const bool is_brain = row.target->dtype == "bf16";
    const DType dtype =
        is_brain ? DType::kBFloat16 : ParseDType(row.target->dtype).value_or(DType::kFloat32);
    const double error = measure::StatisticError(target, golden, 1);
    const double expected = std::max(measure::RoundingError(dtype, dtype), measure::kSixDigitError);
    row.verdict = {Verdict::kBroken, "exceeds-rounding", error, expected};
    if (error <= expected) row.verdict = {Verdict::kWithinNoise, "", error, expected};
    const double limit =
        std::max(measure::LargestPlausibleError(dtype, dtype), measure::kSixDigitError);
    if (error > expected && error <= limit) row.verdict.verdict = Verdict::kSuspicious;
  }
}

// --- workbook ---------------------------------------------------------------------------------

class RowCells {
 public:
  void Pair(const std::string& target, const std::string& golden) {
    cells_.push_back(target);
    cells_.push_back(golden);
  }
  void Text(std::string_view text) { cells_.emplace_back(text); }
  void Metric(const plumbline::Metric& metric) {
    const double* value = std::get_if<double>(&metric);
    const bool number = value != nullptr && !std::isnan(*value);
    cells_.push_back(number ? PythonFloat(*value) : std::string(kNotAvailable));
  }
  [[nodiscard]] const std::vector<std::string>& cells() const { return cells_; }

 private:
  std::vector<std::string> cells_;
};

void AddDifferences(const AtbRow& row, RowCells& cells) {
  std::array<std::string, 4> differences, relative;
  differences.fill(std::string(kNotAvailable));
  relative.fill(std::string(kNotAvailable));
  for (size_t i = 0; i < differences.size() && row.target && row.golden; ++i) {
    const auto a = ParseReal(row.target->statistics[i]), b = ParseReal(row.golden->statistics[i]);
    if (!a || !b) continue;
    const double difference = *a - *b;
    differences[i] = PythonFloat(difference);
    if (difference == 0) {
      relative[i] = "0.0";
    } else if (*b != 0) {
      relative[i] = PythonFloat(std::abs(difference / *b * 100));
    }
  }
  for (const std::string& text : differences) cells.Text(text);
  for (const std::string& text : relative) cells.Text(text);
}

std::vector<std::string> CellsOf(const AtbRow& row, bool has_tensors) {
  static const AtbTensor kNone{"", "N/A", false, "N/A", "N/A", "N/A", "N/A", {}, ""};
  const AtbTensor& target = row.target ? *row.target : kNone;
  const AtbTensor& golden = row.golden ? *row.golden : kNone;
  RowCells cells;
  cells.Pair(target.name, golden.name);
  cells.Pair(target.device_and_pid, golden.device_and_pid);
  cells.Pair(target.execution_count, golden.execution_count);
  cells.Pair(target.dtype, golden.dtype);
  cells.Pair(target.shape, golden.shape);
  if (has_tensors) {
    cells.Metric(row.metrics.cosine);
    cells.Metric(row.metrics.euclidean_distance);
    cells.Metric(row.metrics.max_abs_error);
    cells.Metric(row.metrics.max_relative_error);
    cells.Metric(row.metrics.below_thousandth_ratio);
    cells.Metric(row.metrics.below_five_thousandths_ratio);
  } else {
    AddDifferences(row, cells);
  }
  for (size_t i = 0; i < 4; ++i) cells.Pair(row.target_statistics[i], row.golden_statistics[i]);
  cells.Text(VerdictName(row.verdict.verdict));
  cells.Text(row.verdict.reason);
  cells.Text(row.problem);
  return cells.cells();
}

std::vector<std::string> HeaderOf(bool has_tensors) {
  std::vector<std::string> header;
  const auto pair = [&](std::string_view name) {
    header.push_back(fmt::format("Target {}", name));
    header.push_back(fmt::format("Golden {}", name));
  };
  for (const char* name :
       {"Data Name", "Device and PID", "Execution Count", "Data Type", "Data Shape"}) {
    pair(name);
  }
  static constexpr std::array kTensor = {"Cosine",
                                         "Euc Distance",
                                         "Max Absolute Err",
                                         "Max Relative Err",
                                         "One Thousandth Err Ratio",
                                         "Five Thousandth Err Ratio"};
  static constexpr std::array kStatistics = {"Max Diff",
                                             "Min Diff",
                                             "Mean Diff",
                                             "Norm Diff",
                                             "Relative Err of Max(%)",
                                             "Relative Err of Min(%)",
                                             "Relative Err of Mean(%)",
                                             "Relative Err of Norm(%)"};
  if (has_tensors) {
    header.insert(header.end(), kTensor.begin(), kTensor.end());
  } else {
    header.insert(header.end(), kStatistics.begin(), kStatistics.end());
  }
  for (const char* name : {"Max", "Min", "Mean", "Norm"}) pair(name);
  for (const char* name : {"Verdict", "Reason", "Problem"}) header.emplace_back(name);
  return header;
}

}  // namespace

Result<AtbComparison> CompareAtb(const std::string& target, const std::string& golden,
                                 int threads) {
  PL_TRY_ASSIGN(load::AtbDump left, load::ReadAtbDump(target));
  PL_TRY_ASSIGN(load::AtbDump right, load::ReadAtbDump(golden));
  if (left.has_tensors != right.has_tensors) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: holds {}, but {} holds {} (expected two of one kind)", target,
                             left.has_tensors ? "tensors" : "statistics", golden,
                             right.has_tensors ? "tensors" : "statistics"));
  }
  AtbComparison comparison;
  comparison.has_tensors = left.has_tensors;
  comparison.left_out = left.left_out + right.left_out;
  // The k-th tensor of a name stands against the k-th.
  std::map<std::pair<std::string, size_t>, size_t> places;
  std::map<std::string, size_t> seen;
  for (size_t i = 0; i < right.tensors.size(); ++i) {
    const std::string& name = right.tensors[i].name;
    places.emplace(std::pair(name, seen[name]++), i);
  }
  seen.clear();
  for (AtbTensor& tensor : left.tensors) {
    AtbRow& row = comparison.rows.emplace_back();
    const auto found = places.find({tensor.name, seen[tensor.name]++});
    if (found != places.end()) {
      row.golden = std::move(right.tensors[found->second]);
      places.erase(found);
    }
    row.target = std::move(tensor);
  }
  std::set<size_t> alone;
  for (const auto& place : places) alone.insert(place.second);
  for (const size_t i : alone) {
    comparison.rows.emplace_back().golden = std::move(right.tensors[i]);
  }
  RunWithThreads(threads, [&] {
    ParallelFor(comparison.rows.size(), [&](size_t i) {
      AtbRow& row = comparison.rows[i];
      if (!row.target || !row.golden) {
        row.metrics = measure::AbsentMetrics(Absent::kNoCounterpart);
        row.target_statistics.fill(std::string(kNotAvailable));
        row.golden_statistics.fill(std::string(kNotAvailable));
        row.verdict = measure::NotComparable(row.target ? "only-target" : "only-golden");
      } else if (comparison.has_tensors) {
        MeasureTensors(row);
      } else {
        JudgeStatistics(row);
      }
    });
  });
  return comparison;
}

Result<std::string> WriteAtbWorkbook(const AtbComparison& comparison,
                                     const std::string& directory) {
  PL_TRY(MakeDirectories(directory));
  const report::FreeName name = report::FreePath(
      directory, fmt::format("atb_{}_compare_result", comparison.has_tensors ? "tensor" : "stats"),
      ".xlsx");
  const std::vector<std::string> names = HeaderOf(comparison.has_tensors);
  const std::vector<std::string_view> header(names.begin(), names.end());
  PL_TRY_ASSIGN(xlsx::Writer out, xlsx::Writer::CreateEmpty(name.text));
  PL_TRY(out.BeginSheet("Sheet1", header));
  for (const AtbRow& row : comparison.rows) {
    PL_TRY(out.BeginRow(xlsx::Fill::kNone));
    for (const std::string& cell : CellsOf(row, comparison.has_tensors)) PL_TRY(out.Text(cell));
  }
  PL_TRY(out.Close());
  return name.text;
}

report::TensorAnswer AtbAnswer(const AtbComparison& comparison) {
  std::vector<report::JudgedTensor> tensors;
  for (const AtbRow& row : comparison.rows) {
    tensors.push_back({row.any().operation, row.any().name, row.any().is_output,
                       row.target && row.golden, row.verdict});
  }
  return report::AnswerOf(tensors, comparison.left_out);
}

}  // namespace plumbline::graphs
