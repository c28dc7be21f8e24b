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
  kAttentionFeature,  // of single layers (watch/live/layer_features.h), with columns of their own
  kLinearFeature,
  kRouterWeightFeature,
  kRouterLogitFeature,
};

// When in a step its values are there, in this order.
enum class TrainStage : uint8_t { kForward, kBackward, kOptimizer };

// The parts of upstream's second monitor, TrainerMonitorV2, each with files of its own.
enum class MonitorPart : uint8_t { kModule, kWeightGradient, kOptimizer, kParameter, kOther };
inline constexpr std::array<std::string_view, 5> kMonitorPartNames = {"module", "weight_grad",
                                                                      "optimizer", "param", "cc"};

struct MonitorKindInfo {
  MonitorKind kind;
  std::string_view file;  // "{file}_{first}-{last}.csv"
  std::string_view tag;   // last part of a tag; empty: none
  TrainStage stage;
  bool has_micro_step;  // a column of its rows
  MonitorPart part;
  std::string_view scope;  // what its rows are called in the files of the part; empty: not in them
};

inline constexpr std::array<MonitorKindInfo, 15> kMonitorKinds = {{
    {MonitorKind::kActivation, "actv", "actv", TrainStage::kForward, true, MonitorPart::kModule,
     "forward"},
    {MonitorKind::kActivationGradient, "actv_grad", "actv_grad", TrainStage::kBackward, true,
     MonitorPart::kModule, "backward"},
    {MonitorKind::kUnreducedGradient, "grad_unreduced", "acc_grad", TrainStage::kBackward, false,
     MonitorPart::kWeightGradient, "unreduced"},
    {MonitorKind::kReducedGradient, "grad_reduced", "post_grad", TrainStage::kBackward, false,
     MonitorPart::kWeightGradient, "reduced"},
    {MonitorKind::kMomentum, "exp_avg", "exp_avg", TrainStage::kOptimizer, false,
     MonitorPart::kOptimizer, "exp_avg"},
    {MonitorKind::kSecondMomentum, "exp_avg_sq", "exp_avg_sq", TrainStage::kOptimizer, false,
     MonitorPart::kOptimizer, "exp_avg_sq"},
    {MonitorKind::kParameter, "param", "param", TrainStage::kOptimizer, false,
     MonitorPart::kParameter, ""},
    {MonitorKind::kParameterOrigin, "param_origin", "param_origin", TrainStage::kOptimizer, false,
     MonitorPart::kParameter, "param_origin"},
    {MonitorKind::kParameterUpdated, "param_updated", "param_updated", TrainStage::kOptimizer,
     false, MonitorPart::kParameter, "param_updated"},
    {MonitorKind::kOther, "other", "", TrainStage::kOptimizer, false, MonitorPart::kOther, "comm"},
    {MonitorKind::kDirection, "other", "mg_direction", TrainStage::kOptimizer, false,
     MonitorPart::kOther, ""},
    {MonitorKind::kAttentionFeature, "attention_hook", "attention_hook", TrainStage::kForward, true,
     MonitorPart::kModule, ""},
    {MonitorKind::kLinearFeature, "linear_hook", "linear_hook", TrainStage::kOptimizer, false,
     MonitorPart::kModule, ""},
    {MonitorKind::kRouterWeightFeature, "moe_router_weight_hook", "moe_router_weight_hook",
     TrainStage::kOptimizer, false, MonitorPart::kModule, ""},
    {MonitorKind::kRouterLogitFeature, "moe_router_logit_hook", "moe_router_logit_hook",
     TrainStage::kForward, true, MonitorPart::kModule, ""},
}};
inline constexpr size_t kMonitorKindCount = kMonitorKinds.size();

// The kind whose files have this name; null: no kind that a monitor of ours writes.
constexpr const MonitorKindInfo* MonitorKindOfFile(std::string_view file) {
  for (const MonitorKindInfo& info : kMonitorKinds) {
    if (info.file == file) return &info;
  }
  return nullptr;
}
constexpr bool HasMicroSteps(std::string_view file) {
  const MonitorKindInfo* const kind = MonitorKindOfFile(file);
  return kind != nullptr && kind->has_micro_step;
}
// The kind that a tag ends with, "acc_grad"; also by upstream's other names of it.
constexpr const MonitorKindInfo* MonitorKindOfTag(std::string_view tag) {
  if (tag == "pre_grad") tag = "acc_grad";  // of Megatron's buckets
  for (const MonitorKindInfo& info : kMonitorKinds) {
    if (!info.tag.empty() && info.tag == tag) return &info;
  }
  return nullptr;
}

constexpr const MonitorKindInfo& InfoOf(MonitorKind kind) {
  return kMonitorKinds[static_cast<size_t>(kind)];
}

}  // namespace plumbline

#endif  // PLUMBLINE_FORMATS_TABLE_MONITOR_KINDS_H_
