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

// Whether a statistic is a number of its tensor's elements that is NaN where one of them is. Not
// counts of NaN and infinities, the value of a tensor without dimensions (NaN for all others),
// digest, shape and dtype.
bool TellsOfNaN(std::string_view statistic);

// Whether a row is one of a tensor. Without one (the gradient of a first layer) the monitor writes
// NaN into every cell, counts, shape and dtype among them. `statistics` are the names of `values`;
// nothing: no number.
enum class RowTensor : uint8_t {
  kThere,
  kNone,
  kUnclear,  // NaN in every cell, and none of those was recorded: no tensor, or NaN in it. A tensor
             // of which an earlier row is kThere was NaN.
};
RowTensor TensorOf(std::span<const std::string> statistics,
                   std::span<const std::optional<double>> values);
// Of a row that is kThere or kUnclear the first statistic whose NaN says that an element was NaN.
// Nothing: none, or NaN was counted. Without elements all but a norm of 0 is NaN, of complex
// numbers the extremes, of truth values the zeros.
std::optional<size_t> TellingNaN(std::span<const std::string> statistics,
                                 std::span<const std::optional<double>> values);

// The tensor of a row. The place in the step is left to the caller, and what is unclear.
WatchedTensor MonitorTensor(const MonitorRowPlace& place, std::span<const std::string> statistics,
                            std::span<const std::optional<double>> values);

// What rows of this kind of file are.
TensorKinds KindsOfMonitorFile(std::string_view file);
// Whether a parameter with such rows is one that is trained: they are its gradients or moments.
bool TellsOfTraining(std::string_view file);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_RULES_MONITOR_TENSOR_H_
