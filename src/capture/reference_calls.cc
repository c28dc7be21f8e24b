#include "capture/reference_calls.h"

#include <algorithm>

namespace plumbline::capture {

std::vector<ReferenceCalls::Tensor> ReferenceCalls::TensorsOf(const Value* list) {
  std::vector<Tensor> tensors;
  const auto* items = list == nullptr ? nullptr : list->As<ValueList>();
  if (items == nullptr) return tensors;
  for (size_t i = 0; i < items->size(); ++i) {
    if (const auto* record = (*items)[i].As<TensorRecord>()) {
      tensors.push_back({i, record->shape, record->digest.value_or("")});
    }
  }
  return tensors;
}

ReferenceCalls::Sides ReferenceCalls::SidesOf(const Call& call) {
  const bool backward = call.kind == CallKind::kBackward;
  return {TensorsOf(call.Find(backward ? "input" : "input_args")), TensorsOf(call.Find("output"))};
}

void ReferenceCalls::Add(const Call& call) { calls_.insert_or_assign(call.name, SidesOf(call)); }

Agreement ReferenceCalls::Judge(const Call& seen) const {
  const auto found = calls_.find(seen.name);
  if (found == calls_.end()) return Agreement::kUnknown;
  const Sides& reference = found->second;
  const Sides sides = SidesOf(seen);
  if (sides.inputs != reference.inputs) return Agreement::kOtherInputs;
  const auto unknown = [](const Tensor& tensor) { return tensor.digest.empty(); };
  if (std::ranges::any_of(sides.inputs, unknown)) return Agreement::kUnknown;
  Agreement result = Agreement::kSame;
  for (const Tensor& wanted : reference.outputs) {
    const auto at = std::ranges::find(sides.outputs, wanted.position, &Tensor::position);
    if (at == sides.outputs.end()) return Agreement::kDiffers;
    const bool comparable = !unknown(wanted) && !unknown(*at);
    if (at->shape != wanted.shape) return Agreement::kDiffers;
    if (comparable && at->digest != wanted.digest) return Agreement::kDiffers;
    if (!comparable) result = Agreement::kUnknown;
  }
  return result;
}

}  // namespace plumbline::capture
