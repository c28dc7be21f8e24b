#include "report/newest_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "base/file/file.h"
#include "base/file/text_file.h"
#include "base/text/csv.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/table/xlsx.h"
#include "match/expand.h"
#include "measure/compared_row.h"
#include "record/recorded_number.h"
#include "report/graph_table.h"

namespace plumbline::report {

namespace {

constexpr size_t kNorm = 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Limits of release 26.2.0; the fall of the ratio as its documents have it (the program says 0.1).
constexpr double kNormInput = 0.1, kNormOutput = 0.5;
constexpr double kRatioInput = 0.9, kRatioOutput = 0.6;
constexpr double kNormGrowth = 10, kNormFromZero = 0.1;
constexpr double kCosineInput = 0.9, kCosineDrop = 0.1;

// What a statistic is, in the order in which the release asks.
enum class Kind : uint8_t { kNan, kInf, kMinusInf, kNumber, kDevice, kMissing, kOther };

Kind KindOf(const Recorded& recorded, const std::string& text) {
  if (const std::optional<double> number = NumberOf(recorded)) {
    if (std::isnan(*number)) return Kind::kNan;
    if (std::isinf(*number)) return *number > 0 ? Kind::kInf : Kind::kMinusInf;
    return Kind::kNumber;
  }
  const std::string lower = LowerCase(text);
  if (lower == "nan") return Kind::kNan;
  if (lower == "n/a") return Kind::kMissing;
  for (const std::string_view device : {"npu", "cpu", "cuda"}) {
    if (lower.find(device) != std::string::npos) return Kind::kDevice;
  }
  return Kind::kOther;
}

NewestDifference Same(std::string_view text) {
  return {std::string(text), std::string(text), std::nullopt};
}

NewestDifference OfNumbers(double target, double golden) {
  const double difference = target - golden;
  if (golden == 0) return {PythonFloat(difference), "inf", kInfinity};
  const double percent = std::abs(difference / golden * 100);
  return {PythonFloat(difference), PythonFloat(percent) + "%", percent / 100};
}

NewestDifference OfNonFinite(Kind target, Kind golden) {
  if (target == Kind::kNan || golden == Kind::kNan) return Same("Nan");
  const bool up = target == Kind::kInf || (target == Kind::kNumber && golden == Kind::kMinusInf);
  NewestDifference difference = Same(up ? "inf" : "-inf");
  difference.ratio = kInfinity;
  return difference;
}

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// "linear" of "Functional.linear.0.forward".
std::string_view ApiOf(std::string_view name) {
  const size_t first = name.find('.');
  if (first == std::string_view::npos) return {};
  const size_t second = name.find('.', first + 1);
  return name.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
}

constexpr auto kUnjudged = std::to_array<std::string_view>(
    {"empty", "empty_like", "numpy", "to", "__setitem__", "empty_with_format", "new_empty_strided",
     "new_empty", "empty_strided"});
// Their inputs are not what the result is computed from on this rank.
constexpr auto kInputsUnjudged = std::to_array<std::string_view>(
    {"_reduce_scatter_base", "_all_gather_base", "all_to_all_single", "batch_isend_irecv"});

// Types that mean the same: across frameworks the kind of number decides.
bool TypesAgree(const Item& target, const Item& golden) {
  if (target.dtype == golden.dtype || !target.dtype || !golden.dtype) {
    return target.dtype == golden.dtype;
  }
  const bool same_framework =
      target.dtype->starts_with("torch.") == golden.dtype->starts_with("torch.");
  const std::optional<DType> a = ParseDType(*target.dtype);
  const std::optional<DType> b = ParseDType(*golden.dtype);
  return !same_framework && a && b && InfoOf(*a).kind == InfoOf(*b).kind;
}

class CallRules {
 public:
  CallRules(const Comparison& comparison, const ComparedCall& call)
      : mode_(comparison.mode), rows_(measure::RowsOf(comparison, call)), results_(rows_.size()) {
    const std::string_view api = ApiOf(call.name());
    judged_ = !Contains(kUnjudged, api);
    inputs_judged_ = !Contains(kInputsUnjudged, api);
  }

  std::vector<NewestResult> Run() && {
    if (judged_ && mode_ == CompareMode::kDigest) {
      for (size_t i = 0; i < rows_.size(); ++i) JudgeDigest(i);
    } else if (judged_) {
      for (size_t i = 0; i < rows_.size(); ++i) JudgeValues(i);
      JudgeFromInputsToOutputs();
      for (size_t i = 0; i < rows_.size(); ++i) JudgeForm(i);
      if (inputs_judged_) JudgeGrowth();
    }
    for (size_t i = 0; i < rows_.size(); ++i) AddRepairs(i);
    return std::move(results_);
  }

 private:
  static bool IsOutput(const ComparedRow& row) {
    return row.item().name.find(".output.") != std::string::npos;
  }

  bool IsJudged(size_t i) const { return IsOutput(rows_[i]) || inputs_judged_; }

  void Add(size_t i, NewestLevel level, std::string_view text) {
    results_[i].level = std::max(results_[i].level, level);
    results_[i].messages.push_back(
        fmt::format("{}: {}", level == NewestLevel::kError ? "error" : "warning", text));
  }

  void JudgeDigest(size_t i) {
    const ComparedRow& row = rows_[i];
    if (!row.target || !row.golden || !IsJudged(i)) return;
    if (row.target->digest == row.golden->digest) return;
    const bool lacking = row.target->digest.empty() || row.golden->digest.empty();
    Add(i, lacking ? NewestLevel::kWarning : NewestLevel::kError, "[crc] The checksums differ.");
  }

  void JudgeValues(size_t i) {
    const ComparedRow& row = rows_[i];
    if (!row.target || !row.golden || !IsJudged(i)) return;
    if (measure::HasNonFinite(*row.target) && !measure::HasNonFinite(*row.golden)) {
      Add(i, NewestLevel::kError, "[naninf] Maximum or minimum of the target is NaN or infinite.");
    }
  }

  // Largest relative error of the norm; percentages only, as the release reads them.
  double LargestNorm(bool outputs) const {
    double largest = 0;
    for (const ComparedRow& row : rows_) {
      if (!row.target || !row.golden || IsOutput(row) != outputs) continue;
      const std::optional<double> ratio = NormOf(row);
      if (ratio && std::isfinite(*ratio)) largest = std::max(largest, *ratio);
    }
    return largest;
  }

  static std::optional<double> NormOf(const ComparedRow& row) {
    return NewestDifferenceOf(row.target->statistics[kNorm], row.golden->statistics[kNorm]).ratio;
  }

  double Smallest(bool outputs, Metric TensorMetrics::*member) const {
    double smallest = 1;
    for (const ComparedRow& row : rows_) {
      if (!row.target || !row.golden || IsOutput(row) != outputs) continue;
      const double* value = std::get_if<double>(&((*row.tensor).*member));
      if (value != nullptr && row.tensor->element_count > 1) smallest = std::min(smallest, *value);
    }
    return smallest;
  }

  std::optional<size_t> FirstOutput() const {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (IsOutput(rows_[i]) && rows_[i].target && rows_[i].golden) return i;
    }
    return std::nullopt;
  }

  void JudgeFromInputsToOutputs() {
    const std::optional<size_t> first = FirstOutput();
    if (!first || !inputs_judged_) return;
    if (mode_ == CompareMode::kTensor) {
      const bool good = Smallest(false, &TensorMetrics::below_thousandth_ratio) > kRatioInput;
      const bool bad = Smallest(true, &TensorMetrics::below_thousandth_ratio) < kRatioOutput;
      if (good && bad) {
        Add(*first, NewestLevel::kError,
            "[thousandth] The one-thousandth ratio falls from above 0.9 to below 0.6.");
      }
      return;
    }
    if (!(LargestNorm(false) < kNormInput)) return;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const ComparedRow& row = rows_[i];
      if (!row.target || !row.golden || !IsOutput(row)) continue;
      const std::optional<double> ratio = NormOf(row);
      if (ratio && *ratio > kNormOutput) {
        Add(i, NewestLevel::kError, "[norm] The norm is off by more than half.");
      }
    }
  }

  // Arguments, types and shapes.
  void JudgeForm(size_t i) {
    const ComparedRow& row = rows_[i];
    if (!row.target || !row.golden || !IsJudged(i)) return;
    const Item& target = *row.target;
    const Item& golden = *row.golden;
    if (target.requires_grad && golden.requires_grad &&
        target.requires_grad != golden.requires_grad) {
      Add(i, NewestLevel::kError, "[requires-grad] requires_grad differs.");
    }
    const auto is_scalar = [](const Item& item) {
      return item.dtype && item.dtype->find("class") != std::string::npos;
    };
    if (!IsOutput(row) && is_scalar(target) && is_scalar(golden) && target.shape_text == "[]" &&
        target.statistics[0] != golden.statistics[0]) {
      Add(i, NewestLevel::kError, "[scalar] The argument differs.");
    }
    const bool fused = golden.name.find("qkv") != std::string::npos ||
                       golden.name.find("gate_up") != std::string::npos;
    if (!TypesAgree(target, golden) && !fused) {
      Add(i, NewestLevel::kError, "[dtype] The data types differ.");
    }
    if (target.shape_text != golden.shape_text) {
      Add(i, NewestLevel::kError, "[shape] The shapes differ.");
    }
  }

  void JudgeGrowth() {
    const std::optional<size_t> first = FirstOutput();
    if (!first) return;
    if (mode_ == CompareMode::kTensor) {
      const double input = Smallest(false, &TensorMetrics::cosine);
      if (input > kCosineInput && input - Smallest(true, &TensorMetrics::cosine) > kCosineDrop) {
        Add(*first, NewestLevel::kWarning, "[cosine] The cosine falls by over 0.1.");
      }
      return;
    }
    const double input = LargestNorm(false);
    const double output = LargestNorm(true);
    if (input == 0 ? output > kNormFromZero : output / input > kNormGrowth) {
      Add(*first, NewestLevel::kWarning, "[norm-grows] The norm's error grows over tenfold.");
    }
  }

  // What upstream passes and must not, and why rows are paired as they are.
  void AddRepairs(size_t i) {
    static constexpr auto kSaid = std::to_array<std::string_view>(
        {"no-bench", "no-target", "unreadable", "structure", "recomputed", "renumbered",
         "unwrapped", "renamed", "fuzzy", "mapped", "post-processed"});
    const ComparedRow& row = rows_[i];
    const bool exceptional =
        row.verdict == Verdict::kNotComparable ||
        (row.verdict == Verdict::kBroken &&
         (row.reason.starts_with("nonfinite") || row.reason.starts_with("zero")));
    const bool allocated = row.reason == "uninitialised" || row.reason == "overwritten";
    if (results_[i].level == NewestLevel::kPass && exceptional && !allocated) {
      const bool broken = row.verdict == Verdict::kBroken || row.reason.ends_with("-differs");
      Add(i, broken ? NewestLevel::kError : NewestLevel::kWarning,
          fmt::format("[{}] This row proves nothing good.", row.reason));
    }
    for (const Note& note : row.notes) {
      if (!Contains(kSaid, note.code)) continue;
      results_[i].messages.push_back(fmt::format("note: [{}] {}", note.code, note.text));
    }
  }

  const CompareMode mode_;
  const std::span<const ComparedRow> rows_;
  std::vector<NewestResult> results_;
  bool judged_ = true;
  bool inputs_judged_ = true;
};

}  // namespace

std::string NewestStatisticText(const Recorded& recorded) {
  if (const auto* v = std::get_if<bool>(&recorded)) return *v ? "True" : "False";
  if (const auto* v = std::get_if<int64_t>(&recorded)) return std::to_string(*v);
  if (const auto* v = std::get_if<Text>(&recorded)) return *v;
  const auto* number = std::get_if<double>(&recorded);
  if (number == nullptr) return "None";
  if (std::isnan(*number)) return "Nan";
  if (std::isinf(*number)) return *number > 0 ? " inf" : " -inf";
  return PythonFloat(*number);
}

NewestDifference NewestDifferenceOf(const Recorded& target, const Recorded& golden) {
  const std::string a = NewestStatisticText(target);
  const std::string b = NewestStatisticText(golden);
  if (a == b) return Same("0");
  const Kind kind = KindOf(target, a);
  const Kind other = KindOf(golden, b);
  if (kind == Kind::kMissing || other == Kind::kMissing) return Same("N/A");
  if (kind == Kind::kDevice && other == Kind::kDevice) return Same("N/A");
  const auto is_value = [](Kind k) { return k <= Kind::kNumber; };
  if (!is_value(kind) || !is_value(other)) return Same("Diff");
  if (kind == Kind::kNumber && other == Kind::kNumber) {
    return OfNumbers(*NumberOf(target), *NumberOf(golden));
  }
  return OfNonFinite(kind, other);
}

std::vector<NewestResult> NewestResultsOf(const Comparison& comparison, const ComparedCall& call) {
  return CallRules(comparison, call).Run();
}

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

std::string TextOr(const OptionalText& text) {
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

  std::vector<std::string> Metrics() && {
    if (comparison_.mode == CompareMode::kTensor) AddTensorMetrics();
    AddGradConsistency();
    return std::move(cells_);
  }

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

  void AddGradConsistency() {
    Add(RequiresGrad(row_.target) == RequiresGrad(row_.golden) ? "True" : "False");
  }

  void AddResult(const NewestResult& result) {
    AddGradConsistency();
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

std::vector<NewestMetric> NewestMetricsOf(const Comparison& comparison, const ComparedRow& row) {
  std::vector<std::string_view> columns;
  if (comparison.mode == CompareMode::kTensor) Append(kTensor, columns);
  columns.push_back(kResult.front());
  std::vector<std::string> texts = RowWriter(comparison, row, false).Metrics();
  std::vector<NewestMetric> metrics;
  metrics.reserve(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) metrics.push_back({columns[i], std::move(texts[i])});
  return metrics;
}

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

namespace {

// Numbers as such; "12.5%" is a text there too.
Status WriteNewestCell(std::string_view text, bool may_be_number, xlsx::Writer& writer) {
  if (!may_be_number) return writer.Text(text);
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  const bool is_number = read.ec == std::errc() && read.ptr == end && std::isfinite(number);
  if (is_number) return writer.Number(number);
  if (text.starts_with(' ')) text.remove_prefix(1);  // " inf", for programs that open a csv file
  return writer.Text(text);
}

xlsx::Fill FillOfLevel(NewestLevel level) {
  switch (level) {
    case NewestLevel::kPass:
      return xlsx::Fill::kNone;
    case NewestLevel::kWarning:
      return xlsx::Fill::kYellow;
    case NewestLevel::kError:
      return xlsx::Fill::kRed;
  }
  return xlsx::Fill::kNone;
}

}  // namespace

Status WriteNewestXlsx(const Comparison& comparison, const std::string& path) {
  if (comparison.of_graphs()) {
    return WriteXlsx(comparison, GraphColumnsOf(comparison, /*newest=*/true), path);
  }
  const std::vector<std::string_view> header = NewestHeader(comparison);
  const auto results = std::ranges::find(header, kResult.front());
  const auto numbers_end = comparison.mode == CompareMode::kDigest
                               ? kPrefix.size()
                               : static_cast<size_t>(results - header.begin());
  PL_TRY_ASSIGN(xlsx::Writer writer, xlsx::Writer::CreateEmpty(path));
  PL_TRY(writer.BeginSheet("Sheet1", header));
  for (const ComparedCall& call : comparison.calls) {
    const std::vector<NewestResult> of_rows = NewestResultsOf(comparison, call);
    for (uint32_t i = 0; i < call.row_count; ++i) {
      const ComparedRow& row = comparison.rows[call.first_row + i];
      const std::vector<std::string> cells =
          RowWriter(comparison, row, i == 0).Cells(of_rows[i]);
      PL_TRY(writer.BeginRow(FillOfLevel(of_rows[i].level)));
      for (size_t k = 0; k < cells.size(); ++k) {
        PL_TRY(WriteNewestCell(cells[k], k >= kPrefix.size() && k < numbers_end, writer));
      }
    }
  }
  return writer.Close();
}

}  // namespace plumbline::report
