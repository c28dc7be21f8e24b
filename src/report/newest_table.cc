#include "report/newest_table.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number_text.h"
#include "base/text_file.h"
#include "match/python_text.h"
#include "report/graph_table.h"
#include "report/newest_verdict.h"

namespace plumbline::report {
namespace {

constexpr std::string_view kNotAvailable = "N/A";

constexpr auto kPrefix = std::to_array<std::string_view>(
    {"NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape",
     "NPU Requires_grad", "Bench Requires_grad"});
constexpr auto kTensor =
    std::to_array<std::string_view>({"Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr",
                                     "One Thousandth Err Ratio", "Five Thousandths Err Ratio"});
constexpr auto kDifferences = std::to_array<std::string_view>(
    {"Max diff", "Min diff", "Mean diff", "L2norm diff", "MaxRelativeErr", "MinRelativeErr",
     "MeanRelativeErr", "NormRelativeErr"});
constexpr auto kStatistics =
    std::to_array<std::string_view>({"NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max",
                                     "Bench min", "Bench mean", "Bench l2norm"});
constexpr auto kDigests = std::to_array<std::string_view>({"NPU MD5", "BENCH MD5"});
constexpr auto kResult =
    std::to_array<std::string_view>({"Requires_grad Consistent", "Result", "Err_message"});

template <size_t count>
void Append(const std::array<std::string_view, count>& names, std::vector<std::string_view>& out) {
  out.insert(out.end(), names.begin(), names.end());
}

std::string TextOr(const std::optional<Text>& text) {
  return text ? std::string(*text) : std::string(kNotAvailable);
}

std::string RequiresGrad(const Slot<Item>& item) {
  if (!item || !item->requires_grad) return std::string(kNotAvailable);
  return *item->requires_grad ? "True" : "False";
}

// Writes the cells of one row after the other.
class RowWriter {
 public:
  RowWriter(const Comparison& comparison, const ComparedRow& row, bool first_of_call)
      : comparison_(comparison), row_(row), first_of_call_(first_of_call) {}

  std::vector<std::string> Cells(const NewestResult& result) && {
    AddPrefix();
    switch (comparison_.mode) {
      case CompareMode::kTensor:
        AddTensorMetrics();
        AddStatistics();
        break;
      case CompareMode::kStatistics:
        AddDifferences();
        AddStatistics();
        break;
      case CompareMode::kDigest:
        for (const auto* side : {&row_.target, &row_.golden}) {
          Add(*side && !(*side)->digest.empty() ? std::string((*side)->digest)
                                                : std::string(kNotAvailable));
        }
        break;
    }
    AddResult(result);
    return std::move(cells_);
  }

 private:
  void Add(std::string cell) { cells_.push_back(std::move(cell)); }

  void AddPrefix() {
    const auto& target = row_.target;
    const auto& golden = row_.golden;
    for (const auto* side : {&target, &golden}) {
      Add(*side ? std::string((*side)->name) : std::string(kNotAvailable));
    }
    for (const auto* side : {&target, &golden}) {
      Add(*side ? TextOr((*side)->dtype) : std::string(kNotAvailable));
    }
    for (const auto* side : {&target, &golden}) {
      Add(*side ? TextOr((*side)->shape_text) : std::string(kNotAvailable));
    }
    for (const auto* side : {&target, &golden}) Add(RequiresGrad(*side));
  }

  // Tensors of one element have these metrics no more than those without dimensions.
  void AddMetric(const Metric& metric, bool for_many) {
    const double* value = std::get_if<double>(&metric);
    if (value != nullptr && !(for_many && row_.tensor->element_count == 1)) {
      Add(std::isnan(*value) ? "Nan" : PythonFloat(*value));
      return;
    }
    const Absent* reason = std::get_if<Absent>(&metric);
    if (reason == nullptr) return Add("unsupported");
    switch (*reason) {
      case Absent::kShapeMismatch:
        return Add("shape unmatched");
      case Absent::kNonFinite:
        return Add(std::string(kNotAvailable));
      case Absent::kZeroNorm:
        return Add("Nan");
      default:
        return Add("unsupported");
    }
  }

  void AddTensorMetrics() {
    const TensorMetrics& metrics = row_.tensor;
    AddMetric(metrics.cosine, true);
    AddMetric(metrics.euclidean_distance, true);
    AddMetric(metrics.max_abs_error, false);
    AddMetric(metrics.max_relative_error, false);
    AddMetric(metrics.below_thousandth_ratio, true);
    AddMetric(metrics.below_five_thousandths_ratio, true);
  }

  void AddDifferences() {
    std::array<NewestDifference, 4> differences;
    differences.fill({std::string(kNotAvailable), std::string(kNotAvailable), std::nullopt});
    for (size_t i = 0; i < differences.size() && row_.target && row_.golden; ++i) {
      differences[i] = NewestDifferenceOf(row_.target->statistics[i], row_.golden->statistics[i]);
    }
    for (NewestDifference& difference : differences) Add(std::move(difference.difference));
    for (NewestDifference& difference : differences) Add(std::move(difference.relative));
  }

  void AddStatistics() {
    for (const auto* side : {&row_.target, &row_.golden}) {
      for (size_t i = 0; i < 4; ++i) {
        Add(*side ? NewestStatisticText((*side)->statistics[i]) : std::string(kNotAvailable));
      }
    }
  }

  void AddResult(const NewestResult& result) {
    Add(RequiresGrad(row_.target) == RequiresGrad(row_.golden) ? "True" : "False");
    static constexpr std::string_view kLevels[] = {"pass", "warning", "error"};
    Add(std::string(kLevels[static_cast<size_t>(result.level)]));
    std::string messages = "[";
    for (const std::string& message : result.messages) {
      if (messages.size() > 1) messages += ", ";
      json::AppendString(message, messages);
    }
    Add(messages + "]");
    if (!comparison_.stacks.empty()) {
      const std::vector<std::string>& stack = comparison_.stacks[row_.call];
      const bool shown = first_of_call_ && row_.target && !stack.empty();
      Add(shown ? match::ListText(stack) : std::string(kNotAvailable));
    }
    if (comparison_.mode == CompareMode::kTensor) Add(DataNames());
    Add(std::string(VerdictName(row_.verdict)));
    Add(row_.reason);
  }

  std::string DataNames() const {
    std::vector<std::string> names;
    for (const auto* side : {&row_.target, &row_.golden}) {
      if (!*side) {
        names.emplace_back(kNotAvailable);
      } else {
        names.push_back((*side)->data_name.empty() ? "-1" : (*side)->data_name);
      }
    }
    return match::ListText(names);
  }

  const Comparison& comparison_;
  const ComparedRow& row_;
  const bool first_of_call_;
  std::vector<std::string> cells_;
};

}  // namespace

std::vector<std::string_view> NewestHeader(const Comparison& comparison) {
  std::vector<std::string_view> names;
  Append(kPrefix, names);
  if (comparison.mode == CompareMode::kTensor) Append(kTensor, names);
  if (comparison.mode == CompareMode::kStatistics) Append(kDifferences, names);
  if (comparison.mode == CompareMode::kDigest) Append(kDigests, names);
  if (comparison.mode != CompareMode::kDigest) Append(kStatistics, names);
  Append(kResult, names);
  if (!comparison.stacks.empty()) names.push_back("NPU_Stack_Info");
  if (comparison.mode == CompareMode::kTensor) names.push_back("Data_name");
  names.push_back("Verdict");
  names.push_back("Reason");
  return names;
}

namespace {

// Rows `first` to `end` of the comparison.
Status WritePart(const Comparison& comparison, size_t first, size_t end, const std::string& path) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  csv::AppendRow(std::span<const std::string_view>(NewestHeader(comparison)), file.text());
  for (const ComparedCall& call : comparison.calls) {
    if (call.first_row + call.row_count <= first || call.first_row >= end) continue;
    const std::vector<NewestResult> results = NewestResultsOf(comparison, call);
    for (uint32_t i = 0; i < call.row_count; ++i) {
      const size_t row = call.first_row + i;
      if (row < first || row >= end) continue;
      const std::vector<std::string> cells =
          RowWriter(comparison, comparison.rows[row], i == 0).Cells(results[i]);
      csv::AppendRow(std::span<const std::string>(cells), file.text());
    }
    PL_TRY(file.Flush());
  }
  return file.Close();
}

}  // namespace

std::vector<std::string> NewestCsvPaths(const Comparison& comparison, const std::string& path,
                                        size_t most_rows) {
  constexpr std::string_view kExtension = ".csv";
  const size_t rows = comparison.rows.size();
  if (rows <= most_rows || comparison.of_graphs()) return {path};
  const std::string_view stem = std::string_view(path).substr(0, path.size() - kExtension.size());
  std::vector<std::string> paths;
  for (size_t first = 0; first < rows; first += most_rows) {
    paths.push_back(fmt::format("{}_part_{}{}", stem, paths.size() + 1, kExtension));
  }
  return paths;
}

Status WriteNewestCsv(const Comparison& comparison, const std::string& path, size_t most_rows) {
  if (comparison.of_graphs()) {
    return WriteCsv(comparison, GraphColumnsOf(comparison, /*newest=*/true), path);
  }
  const std::vector<std::string> paths = NewestCsvPaths(comparison, path, most_rows);
  for (size_t k = 0; k < paths.size(); ++k) {
    Status status = WritePart(comparison, k * most_rows, (k + 1) * most_rows, paths[k]);
    if (status) continue;
    for (size_t earlier = 0; earlier < k; ++earlier) (void)RemoveFile(paths[earlier]);
    return status;
  }
  return {};
}

}  // namespace plumbline::report
