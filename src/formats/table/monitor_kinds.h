// The kinds of values that a training monitor writes: names of files, of tags and of metrics.

#ifndef PLUMBLINE_FORMATS_TABLE_MONITOR_KINDS_H_
#define PLUMBLINE_FORMATS_TABLE_MONITOR_KINDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plumbline {

enum class MonitorKind : uint8_t {
  kActivation,          // input and output of modules
  kActivationGradient,  // gradients of these
  kUnreducedGradient,   // of a parameter, before ranks combine it
  kReducedGradient,     // what the optimizer reads
  kMomentum,            // first moment of the optimizer
  kSecondMomentum,
  kParameter,         // before the step
  kParameterOrigin,   // the same under the name of later releases, with the next one
  kParameterUpdated,  // after the step
  kOther,             // communication, values of the user
  kDirection,         // how far signs of a gradient and its momentum agree; in the same file
};

struct MonitorKindInfo {
  MonitorKind kind;
  std::string_view file;  // "{file}_{first}-{last}.csv"
  std::string_view tag;   // last part of a tag; empty: none
  bool has_micro_step;    // a column of its rows
};

inline constexpr std::array<MonitorKindInfo, 11> kMonitorKinds = {{
    {MonitorKind::kActivation, "actv", "actv", true},
    {MonitorKind::kActivationGradient, "actv_grad", "actv_grad", true},
    {MonitorKind::kUnreducedGradient, "grad_unreduced", "acc_grad", false},
    {MonitorKind::kReducedGradient, "grad_reduced", "post_grad", false},
    {MonitorKind::kMomentum, "exp_avg", "exp_avg", false},
    {MonitorKind::kSecondMomentum, "exp_avg_sq", "exp_avg_sq", false},
    {MonitorKind::kParameter, "param", "param", false},
    {MonitorKind::kParameterOrigin, "param_origin", "param_origin", false},
    {MonitorKind::kParameterUpdated, "param_updated", "param_updated", false},
    {MonitorKind::kOther, "other", "", false},
    {MonitorKind::kDirection, "other", "mg_direction", false},
}};
inline constexpr size_t kMonitorKindCount = kMonitorKinds.size();

constexpr const MonitorKindInfo& InfoOf(MonitorKind kind) {
  return kMonitorKinds[static_cast<size_t>(kind)];
}

}  // namespace plumbline

#endif  // PLUMBLINE_FORMATS_TABLE_MONITOR_KINDS_H_
