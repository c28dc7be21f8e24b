#include "watch/rules/monitor_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "formats/table/monitor_kinds.h"

namespace plumbline::watch {
namespace {

// "fc.input", "fc.input_1", "fc.grad_input.1".
bool IsOfInput(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  name = name.substr(0, end + 1);
  if (name.ends_with('_') || name.ends_with('.')) name.remove_suffix(1);
  return name.ends_with(".input") || name.ends_with(".grad_input");
}

constexpr std::array<std::string_view, 5> kKnown = {"norm", "max", "min", "mean", "zeros"};
bool IsKnown(std::string_view name) { return std::ranges::find(kKnown, name) != kKnown.end(); }

// Whether it is one of the numbers that rules know.
bool TakeStatistic(std::string_view name, double value, RecordedStatistics& out) {
  constexpr double kMost = 0x1p63;
  const bool is_count = value >= 0 && value < kMost;
  if (name == "nans" && is_count) out.nan_count = static_cast<uint64_t>(value);
  if (name == "infs" && is_count) out.inf_count = static_cast<uint64_t>(value);
  const std::array<std::optional<double>*, kKnown.size()> numbers = {
      &out.norm, &out.max, &out.min, &out.mean, &out.small_fraction};
  for (size_t i = 0; i < kKnown.size(); ++i) {
    if (name == kKnown[i] && !std::isnan(value)) *numbers[i] = value;
  }
  return IsKnown(name);
}

// The statistics of a row, and whether there was a tensor.
void TakeValues(std::span<const std::string> names, std::span<const std::optional<double>> values,
                WatchedTensor& tensor) {
  const RowTensor there = TensorOf(names, values);
  tensor.has_statistics = there == RowTensor::kThere;
  tensor.is_unclear = there == RowTensor::kUnclear && std::ranges::any_of(names, IsKnown);
  if (!tensor.has_statistics) return;
  RecordedStatistics& out = tensor.statistics;
  const auto nan = TellingNaN(names, values);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!values[i] || !TakeStatistic(names[i], *values[i], out)) continue;
    out.shows_nan = out.shows_nan || nan == i;
    out.shows_inf = out.shows_inf || std::isinf(*values[i]);
  }
  // A sum of squares may be infinite where no element is.
  if (out.inf_count) out.shows_inf = false;
}

}  // namespace

bool TellsOfNaN(std::string_view statistic) {
  constexpr std::array<std::string_view, 6> kOthers = {"nans",   "infs",  "id",
                                                       "digest", "shape", "dtype"};
  return std::ranges::find(kOthers, statistic) == kOthers.end();
}

RowTensor TensorOf(std::span<const std::string> statistics,
                   std::span<const std::optional<double>> values) {
  bool has_nan = false, says_none = false;
  for (size_t i = 0; i < statistics.size(); ++i) {
    const std::string& name = statistics[i];
    const bool is_nan = values[i] && std::isnan(*values[i]);
    const bool says = name == "nans" || name == "infs" || name == "shape" || name == "dtype";
    if (is_nan) {
      says_none = says_none || says;
      has_nan = true;
    } else if (says || values[i]) {  // a shape is no number
      return RowTensor::kThere;
    }
  }
  return has_nan && !says_none ? RowTensor::kUnclear : RowTensor::kNone;
}

std::optional<size_t> TellingNaN(std::span<const std::string> statistics,
                                 std::span<const std::optional<double>> values) {
  const auto value = [&](std::string_view name) {
    const auto found = std::ranges::find(statistics, name);
    const auto at = static_cast<size_t>(found - statistics.begin());
    return found == statistics.end() ? std::nullopt : values[at];
  };
  const auto is_finite = [&](std::string_view name) {
    const auto number = value(name);
    return number && std::isfinite(*number);
  };
  if (is_finite("nans")) return std::nullopt;
  const bool is_empty = value("norm") == 0.0;
  const bool has_sum = is_finite("norm") || is_finite("mean");
  const bool has_extreme = is_finite("min") || is_finite("max");
  for (size_t i = 0; i < statistics.size(); ++i) {
    const std::string& name = statistics[i];
    const bool is_nan = values[i] && std::isnan(*values[i]);
    if (!is_nan || !TellsOfNaN(name)) continue;
    const bool is_extreme = name == "min" || name == "max";
    const bool is_usual = (name == "mean" && is_empty) ||
                          (is_extreme && has_sum && !has_extreme) ||
                          (name == "zeros" && (has_sum || has_extreme));
    if (!is_usual) return i;
  }
  return std::nullopt;
}

TensorKinds KindsOfMonitorFile(std::string_view file) {
  if (file.starts_with("param")) return kAnyTensor | kWeight;
  if (file.starts_with("grad_") || file == "actv_grad") return kAnyTensor | kGradient;
  return kAnyTensor;
}

bool TellsOfTraining(std::string_view file) {
  return file.starts_with("grad_") || file.starts_with("exp_avg");
}

WatchedTensor MonitorTensor(const MonitorRowPlace& place, std::span<const std::string> statistics,
                            std::span<const std::optional<double>> values) {
  WatchedTensor tensor;
  tensor.name = place.name;
  tensor.io = place.file;
  tensor.slot = std::to_string(place.micro_step);
  tensor.slot_number = place.micro_step;
  if (place.vpp_stage > 0) tensor.graph = std::to_string(place.vpp_stage);
  tensor.kinds = KindsOfMonitorFile(place.file);
  tensor.is_input = HasMicroSteps(place.file) && IsOfInput(place.name);
  TakeValues(statistics, values, tensor);
  return tensor;
}

}  // namespace plumbline::watch
