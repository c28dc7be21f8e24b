#include "view/store/call_details.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "measure/compared_row.h"
#include "report/certainty.h"

namespace plumbline::view {
namespace {

constexpr double kBeyond = std::numeric_limits<double>::infinity();
constexpr double kNoError = std::numeric_limits<double>::quiet_NaN();

ValueRole RoleOf(ItemRole role) {
  switch (role) {
    case ItemRole::kInput:
      return ValueRole::kInput;
    case ItemRole::kParameter:
      return ValueRole::kParameter;
    case ItemRole::kOutput:
      return ValueRole::kOutput;
    case ItemRole::kBuffer:
      return ValueRole::kBuffer;
    case ItemRole::kParameterGrad:
      return ValueRole::kGradient;
  }
  return ValueRole::kInput;
}

StoredScalar ScalarOf(const Recorded& recorded) {
  if (const auto* truth = std::get_if<bool>(&recorded)) return *truth;
  if (const auto* integer = std::get_if<int64_t>(&recorded)) return *integer;
  if (const auto* real = std::get_if<double>(&recorded)) return *real;
  if (const auto* text = std::get_if<Text>(&recorded)) return text->view();
  return {};
}

// "int" of "<class 'int'>".
std::string_view ClassName(std::string_view dtype) {
  constexpr std::string_view kBegin = "<class '", kEnd = "'>";
  if (!dtype.starts_with(kBegin) || !dtype.ends_with(kEnd)) return dtype;
  return dtype.substr(kBegin.size(), dtype.size() - kBegin.size() - kEnd.size());
}

std::string_view TypeOf(const Item& item, std::string_view dtype) {
  if (!item.is_tensor) return ClassName(dtype);
  return dtype.starts_with("torch.") ? "torch.Tensor" : "mindspore.Tensor";
}

ValueSide SideOfItem(const Item& item) {
  ValueSide side;
  if (item.dtype) side.dtype = *item.dtype;
  if (item.shape_text) side.shape = *item.shape_text;
  side.type = TypeOf(item, side.dtype);
  if (item.is_tensor) {
    for (size_t i = 0; i < side.statistics.size(); ++i) {
      side.statistics[i] = ScalarOf(item.statistics[i]);
    }
  } else {
    side.value = ScalarOf(item.statistics[0]);
  }
  if (item.has_recorded_digest) side.md5 = item.digest;
  side.requires_grad = item.requires_grad;
  side.data_name = item.data_name;
  return side;
}

void AddMetric(std::string_view name, const Metric& metric, StoredValue& value) {
  const double* const number = std::get_if<double>(&metric);
  if (number != nullptr) value.metrics.emplace_back(name, *number);
}

Recorded RecordedOf(const StoredScalar& scalar) {
  if (const auto* truth = std::get_if<bool>(&scalar)) return *truth;
  if (const auto* integer = std::get_if<int64_t>(&scalar)) return *integer;
  if (const auto* real = std::get_if<double>(&scalar)) return *real;
  if (const auto* text = std::get_if<std::string_view>(&scalar)) return Text(*text);
  return {};
}

void AddStatistics(const ComparedRow& row, StoredValue& value) {
  static constexpr std::string_view kDifference[] = {"max_diff", "min_diff", "mean_diff",
                                                     "norm_diff"};
  static constexpr std::string_view kPercent[] = {"max_percent", "min_percent", "mean_percent",
                                                  "norm_percent"};
  const StatisticDifferences differences = row.statistics();
  for (size_t i = 0; i < 4; ++i) AddMetric(kDifference[i], differences.difference[i], value);
  for (size_t i = 0; i < 4; ++i) AddMetric(kPercent[i], differences.relative_percent[i], value);
}

void AddTensorMetrics(const TensorMetrics& metrics, StoredValue& value) {
  AddMetric("cosine", metrics.cosine, value);
  AddMetric("max_abs_error", metrics.max_abs_error, value);
  AddMetric("max_relative_error", metrics.max_relative_error, value);
  AddMetric("below_thousandth_ratio", metrics.below_thousandth_ratio, value);
  AddMetric("below_five_thousandths_ratio", metrics.below_five_thousandths_ratio, value);
  AddMetric("relative_l2", metrics.relative_l2, value);
  AddMetric("max_ulp", metrics.max_ulp, value);
  value.metrics.emplace_back("element_count", static_cast<double>(metrics.element_count));
  value.metrics.emplace_back("mismatch_count", static_cast<double>(metrics.mismatch_count));
}

StoredValue ValueOfRow(const Comparison& comparison, const ComparedCall& call,
                       const ComparedRow& row) {
  StoredValue value;
  const Item& item = row.item();
  value.name = measure::ShortName(item, row.target ? call.target_name : call.golden_name);
  value.role = RoleOf(item.role);
  if (row.target) value.target = SideOfItem(*row.target);
  if (row.golden) value.golden = SideOfItem(*row.golden);
  value.verdict = VerdictName(row.verdict);
  value.reason = row.reason;
  value.reason_text = report::ReasonText(row.reason);
  value.error = row.error;
  value.explained = row.expected;
  if (row.target && row.golden) {
    if (comparison.mode == CompareMode::kTensor) AddTensorMetrics(row.tensor, value);
  }
  for (const Note& note : row.notes) value.notes.push_back(note.text);
  return value;
}

void Raise(double error, double& largest) {
  if (!std::isnan(error) && !(error <= largest)) largest = error;
}

}  // namespace

Item ItemOfSide(const ValueSide& side) {
  Item item;
  const bool is_tensor = std::holds_alternative<std::monostate>(side.value);
  for (size_t i = 0; i < side.statistics.size(); ++i) {
    item.statistics[i] = RecordedOf(is_tensor ? side.statistics[i] : side.value);
  }
  return item;
}

void AddDifferences(StoredValue& value) {
  if (!value.target || !value.golden) return;
  ComparedRow row;
  row.target = ItemOfSide(*value.target);
  row.golden = ItemOfSide(*value.golden);
  AddStatistics(row, value);
}

void AddCall(const Comparison& comparison, const ComparedCall& call, NodeDetail& detail) {
  if (!call.pairing.empty()) detail.pairing = call.pairing;
  if (call.paired() || detail.verdict.empty()) detail.verdict = VerdictName(call.verdict);
  if (!call.paired()) {
    detail.reason = call.unmatched_reason;
    detail.reason_text = call.unmatched_detail.empty() ? report::ReasonText(call.unmatched_reason)
                                                       : std::string_view(call.unmatched_detail);
  }
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    detail.values.push_back(ValueOfRow(comparison, call, row));
  }
}

void AddCall(const match::CallItems& call, NodeDetail& detail) {
  for (const Item& item : call.items) {
    StoredValue value;
    value.name = measure::ShortName(item, call.name);
    value.role = RoleOf(item.role);
    value.target = SideOfItem(item);
    detail.values.push_back(std::move(value));
  }
}

CallErrors ErrorsOf(const Comparison& comparison, const ComparedCall& call) {
  CallErrors errors{kNoError, kNoError};
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    const bool is_input = measure::IsInput(row);
    // What is wrong by no number (NaN on one side) is beyond every limit, but for digests, which
    // never have one.
    const bool is_beyond = std::isnan(row.error) && measure::IsBad(row.verdict) &&
                           comparison.mode != CompareMode::kDigest;
    Raise(is_beyond ? kBeyond : row.error, is_input ? errors.of_inputs : errors.of_outputs);
    (is_input ? errors.are_inputs_bad : errors.are_outputs_bad) |= measure::IsBad(row.verdict);
  }
  return errors;
}

}  // namespace plumbline::view
