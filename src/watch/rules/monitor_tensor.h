// A row of a training monitor as rules see it, whether it comes from a file or from a training.

#ifndef PLUMBLINE_WATCH_RULES_MONITOR_TENSOR_H_
#define PLUMBLINE_WATCH_RULES_MONITOR_TENSOR_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "watch/rules/step_watch.h"

namespace plumbline::watch {

// Which tensor a row is about. `file`: the kind of its file, "grad_reduced".
struct MonitorRowPlace {
  std::string_view file, name;
  int64_t vpp_stage = 0, micro_step = 0;
};

// `statistics` are the names of `values`; nothing: no number. NaN in all of them says that there
// was no tensor. The place in the step is left to the caller.
WatchedTensor MonitorTensor(const MonitorRowPlace& place, std::span<const std::string> statistics,
                            std::span<const std::optional<double>> values);

// What rows of this kind of file are.
TensorKinds KindsOfMonitorFile(std::string_view file);
// Whether a parameter with such rows is one that is trained: they are its gradients or moments.
bool TellsOfTraining(std::string_view file);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_RULES_MONITOR_TENSOR_H_
