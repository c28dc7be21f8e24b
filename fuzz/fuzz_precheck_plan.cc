// The plan of a pre-check: any dump.json is refused or planned, and each of its calls is skipped or
// made ready and filled, within a limit of memory.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "input_file.h"
#include "precheck/call_plan.h"
#include "precheck/input_data.h"

namespace {

namespace precheck = plumbline::precheck;

constexpr uint64_t kMemoryLimit = uint64_t{1} << 16;

void RunAll(const precheck::CallPlan& plan) {
  for (size_t i = 0; i < plan.size(); ++i) {
    const auto call = plan.Prepare(i);
    if (!call) continue;
    if (plan.call(i).skip) std::abort();
    // An empty tensor takes an aligned place as well, so the sum may pass the limit by that.
    constexpr size_t kSlack = precheck::kTensorAlignment;
    if (call->input_bytes > kMemoryLimit + kSlack * call->fills.size()) std::abort();
    std::vector<std::byte> memory(call->input_bytes), again(call->input_bytes);
    if (!precheck::FillInputs(*call, memory) || !precheck::FillInputs(*call, again)) continue;
    if (memory != again) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string& path = InputFile(data, size);
  for (const bool dedupe : {false, true}) {
    precheck::PlanOptions options;
    options.memory_limit = kMemoryLimit;
    options.salvage = dedupe;
    options.dedupe = dedupe;
    options.keep_random = !dedupe;
    if (const auto plan = precheck::CallPlan::Open(path, options)) RunAll(*plan);
  }
  return 0;
}
