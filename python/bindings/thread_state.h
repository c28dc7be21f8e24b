// What the recorder knows about one Python thread.

#ifndef PLUMBLINE_PYTHON_BINDINGS_THREAD_STATE_H_
#define PLUMBLINE_PYTHON_BINDINGS_THREAD_STATE_H_

#include "python_api.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "capture/thread_state.h"

namespace plumbline::python {

class BackwardCall;
class ModuleHook;

using capture::InTool;
using capture::KeptTensors;
using capture::PackedPart;

// A module call that has begun and not ended: what its hook knows.
struct ModuleCall {
  const ModuleHook* hook = nullptr;
  uint64_t token = 0;  // of its frame; 0: not recorded
  std::shared_ptr<BackwardCall> backward;
};

// Per-thread recording state.
struct ThreadState : capture::ThreadState {
  ThreadState() = default;
  ~ThreadState();
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;

  std::vector<ModuleCall> module_calls;
  PyObject* function_mode = nullptr;  // plumbline's function mode, if this thread has it (borrowed)
  int mode_off = 0;                   // depth of ModeOff
  bool has_other_modes = false;       // inside ModeOff: function modes of the user are on the stack
};
ThreadState& ThisThread();

// While it lives, what runs on this thread is plumbline's own: no recorder records it. Unlike
// InTool for those who have no step of a recorder to be inside of.
class OwnWork {
 public:
  OwnWork() { ++ThisThread().in_tool; }
  ~OwnWork() { --ThisThread().in_tool; }
  OwnWork(const OwnWork&) = delete;
  OwnWork& operator=(const OwnWork&) = delete;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_THREAD_STATE_H_
