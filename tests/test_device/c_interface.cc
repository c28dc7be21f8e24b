// What the Python module calls through ctypes: no interpreter's headers, one library for all
// versions, and no call that a dispatch mode of PyTorch could see.
#include <ATen/core/LegacyTypeDispatch.h>

#include <cstring>

#include "test_device.h"

namespace ptd = plumbline_test_device;

namespace {

thread_local std::string last_error;
thread_local std::string last_text;

// The result of `work`, or -1 with last_error set.
template <typename Work>
int64_t Guarded(Work work) {
  try {
    return work();
  } catch (const c10::Error& error) {
    last_error = error.what_without_backtrace();
  } catch (const std::exception& error) {
    last_error = error.what();
  }
  return -1;
}

}  // namespace

extern "C" {

const char* ptd_last_error() { return last_error.c_str(); }

int64_t ptd_counters(uint64_t* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = ptd::CounterValue(static_cast<ptd::Counter>(i));
  return static_cast<int64_t>(ptd::Counter::kEnd);
}
const char* ptd_counter_name(int64_t number) {
  return ptd::kCounterNames[static_cast<size_t>(number)];
}
void ptd_reset_counters() {
  ptd::ResetCounters();
  ptd::ResetOperatorCounts();
}
// Lines "aten::mm.out 3"; valid until the next call on the same thread.
const char* ptd_operator_counts() {
  last_text.clear();
  for (const auto& [name, count] : ptd::OperatorCounts()) {
    last_text += name + " " + std::to_string(count) + "\n";
  }
  return last_text.c_str();
}

int64_t ptd_inject(const ptd::DefectOptions* options) {
  return Guarded([&] { return ptd::InjectDefect(*options); });
}
void ptd_clear(int64_t number) { ptd::ClearDefect(number); }
int64_t ptd_hits(int64_t number) {
  return Guarded([&] { return ptd::DefectHits(number); });
}

int ptd_device_count() { return ptd::kDevices; }
void ptd_seed(int device, uint64_t seed) { ptd::DeviceGenerator(device).set_current_seed(seed); }
uint64_t ptd_initial_seed(int device) { return ptd::DeviceGenerator(device).current_seed(); }
// The size of a random state; copies it to `state` unless that is null.
int64_t ptd_random_state(int device, char* state) {
  return Guarded([&] {
    const at::Tensor tensor = ptd::DeviceGenerator(device).get_state();
    if (state != nullptr) std::memcpy(state, tensor.const_data_ptr(), tensor.nbytes());
    return static_cast<int64_t>(tensor.nbytes());
  });
}
int64_t ptd_set_random_state(int device, const char* state) {
  return Guarded([&] {
    const at::Generator generator = ptd::DeviceGenerator(device);
    const at::Tensor tensor = generator.get_state();  // a copy, of the right size
    std::memcpy(tensor.mutable_data_ptr(), state, tensor.nbytes());
    generator.unsafeGetGeneratorImpl()->set_state(*tensor.unsafeGetTensorImpl());
    return int64_t{0};
  });
}

int64_t ptd_set_protected(int on) { return ptd::SetProtected(on != 0) ? 0 : -1; }
void ptd_set_deferred(int on) { ptd::SetDeferred(on != 0); }
int64_t ptd_is_deferred() { return ptd::IsDeferred() ? 1 : 0; }

}  // extern "C"
