#include "pipeline/culprit/parameter_gradients.h"

#include <algorithm>

#include "measure/compared_row.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

constexpr std::string_view kParameters = "parameters.";  // before the name, among a call's tensors

// What an entry belongs to: its name up to what was recorded of it; empty for other entries.
std::string_view ModuleOf(std::string_view entry, std::string_view recorded) {
  const size_t end = entry.rfind(recorded);
  return end == std::string_view::npos ? std::string_view() : entry.substr(0, end);
}

}  // namespace

ParameterGradients::ParameterGradients(const Comparison& comparison) : comparison_(comparison) {
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (!call.paired() || KindOfCall(call.target_name) != CallKind::kParametersGrad) continue;
    by_module_[ModuleOf(call.target_name, ".parameters_grad")].push_back(i);
  }
}

size_t ParameterGradients::StepOf(uint32_t call) const {
  const auto step = std::ranges::upper_bound(comparison_.earlier, call, {}, &EarlierStep::calls_end);
  return static_cast<size_t>(step - comparison_.earlier.begin());
}

const ComparedRow* ParameterGradients::Of(const ComparedRow& read) const {
  if (by_module_.empty()) return nullptr;
  const std::string& forward = comparison_.calls[read.call].target_name;
  std::string_view name = measure::ShortName(*read.target, forward);
  const auto found = by_module_.find(ModuleOf(forward, ".forward."));
  if (found == by_module_.end() || !name.starts_with(kParameters)) return nullptr;
  name.remove_prefix(kParameters.size());
  for (const uint32_t index : found->second) {
    if (StepOf(index) != StepOf(read.call)) continue;
    const ComparedCall& call = comparison_.calls[index];
    for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
      if (!row.target || !row.golden || !row.golden->is_tensor) continue;
      if (measure::ShortName(*row.target, call.target_name) == name) return &row;
    }
  }
  return nullptr;
}

}  // namespace plumbline::pipeline
