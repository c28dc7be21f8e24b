// A user's library of reference functions: y = x * factor, with its gradient, and one that fails.

#include <cstdint>
#include <cstring>

#include "plumbline/reference_api.h"

namespace {

const plumbline_argument* Named(const plumbline_call* call, const char* name) {
  for (uint64_t i = 0; i < call->count; ++i) {
    const plumbline_argument& argument = call->arguments[i];
    if (argument.name && std::strcmp(argument.name, name) == 0) return &argument;
  }
  return nullptr;
}

int32_t Scale(const plumbline_call* call, const plumbline_tensor& x) {
  const plumbline_argument* const factor = Named(call, "factor");
  if (std::strcmp(x.dtype, "float64") != 0) {
    call->explain(call->state, "x: only float64 is known");
    return 1;
  }
  auto* const out = static_cast<double*>(call->add_result(call->state, x.dtype, x.sizes, x.rank));
  if (!out) return 2;
  uint64_t count = 1;
  for (uint64_t i = 0; i < x.rank; ++i) count *= static_cast<uint64_t>(x.sizes[i]);
  const auto* const in = static_cast<const double*>(x.data);
  for (uint64_t i = 0; i < count; ++i) out[i] = in[i] * (factor ? factor->real : 2);
  return 0;
}

int32_t Forward(const plumbline_call* call) { return Scale(call, call->arguments[0].tensor); }
int32_t Backward(const plumbline_call* call) { return Scale(call, call->arguments[0].tensor); }
int32_t Fail(const plumbline_call* call) {
  return call->add_result(call->state, "float7", nullptr, 0) == nullptr ? 7 : 0;
}

const plumbline_reference kReferences[] = {{"npu_scale", Forward, Backward, "x factor"},
                                           {"npu_fail", Fail, nullptr, nullptr}};

}  // namespace

extern "C" __attribute__((visibility("default"))) const plumbline_reference* plumbline_references(
    uint64_t* count) {
  *count = 2;
  return kReferences;
}
