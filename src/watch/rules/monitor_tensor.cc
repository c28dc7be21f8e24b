#include "watch/rules/monitor_tensor.h"

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

void TakeStatistic(std::string_view name, double value, RecordedStatistics& out) {
  if (name == "norm") out.norm = value;
  if (name == "max") out.max = value;
  if (name == "min") out.min = value;
  if (name == "mean") out.mean = value;
  if (name == "zeros") out.small_fraction = value;
  if (name == "nans" && value >= 0) out.nan_count = static_cast<uint64_t>(value);
}

bool IsStatistic(std::string_view name) { return name != "shape" && name != "dtype"; }

}  // namespace

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
  // Without a tensor the monitor writes NaN in every cell.
  bool has_number = false;
  for (size_t i = 0; i < statistics.size(); ++i) {
    if (!values[i] || !IsStatistic(statistics[i])) continue;
    has_number = has_number || !std::isnan(*values[i]);
    TakeStatistic(statistics[i], *values[i], tensor.statistics);
  }
  tensor.has_statistics = has_number;
  if (!has_number) tensor.statistics = {};
  return tensor;
}

}  // namespace plumbline::watch
