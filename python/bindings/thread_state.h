// What the recorder knows about one thread.

#ifndef PLUMBLINE_PYTHON_BINDINGS_THREAD_STATE_H_
#define PLUMBLINE_PYTHON_BINDINGS_THREAD_STATE_H_

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kept_tensors.h"
#include "module_buffers.h"
#include "record/value.h"
#include "step_gate.h"

namespace plumbline::python {

class BackwardCall;
class ModuleHook;

// A module call that has begun and not ended: what the recorder knows.
struct ModuleFrame {
  std::string name;               // "Module.layers.0.LlamaDecoderLayer.forward.0"
  PackedPart inputs;              // members, taken before the module could change them
  BufferReader::Buffers buffers;  // as they were before
  uint64_t token = 0;             // identifies the frame to Leave()
  uint64_t epoch = 0;             // of the step it belongs to
};

// The same call: what its hook knows.
struct ModuleCall {
  const ModuleHook* hook = nullptr;
  uint64_t token = 0;  // of the frame; 0: not recorded
  std::shared_ptr<BackwardCall> backward;
};

// Per-thread recording state.
struct ThreadState {
  ThreadState() = default;
  ~ThreadState();
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;

  // Whether values being packed need to know their place in the entry.
  [[nodiscard]] bool with_paths() const {
    return saves_tensors || keeps_tensors || (kept != nullptr && kept->writes != Writes::kNothing);
  }

  int in_tool = 0;           // inside plumbline's own work: record nothing
  int in_api = 0;            // inside a recorded API: only the outermost one is an entry
  bool in_operator = false;  // level L2: the call is an operator's
  EntryPacker call;          // the API entry in flight
  EntryPacker event;         // entries that are complete in one go (modules, gradients)
  std::vector<ModuleFrame> modules;
  std::vector<ModuleCall> module_calls;
  std::string entry_name;       // of the entry being packed: first part of tensor file names
  bool saves_tensors = false;   // of that entry: tensors are stored as they are met
  bool keeps_tensors = false;   // of that entry: they are kept until it is known
  KeptTensors* kept = nullptr;  // where, and what was seen in them; null: nothing is searched for
  KeptTensors call_kept;        // those of `call`
  PyObject* function_mode = nullptr;  // plumbline's function mode, if this thread has it (borrowed)
  int mode_off = 0;                   // depth of ModeOff
  bool replaces_files = false;   // a tensor file of the same name is an earlier value of this one
  bool has_other_modes = false;  // inside ModeOff: function modes of the user are on the stack
};
ThreadState& ThisThread();

// Marks plumbline's own work on this thread. The step does not end while it lives.
class InTool {
 public:
  InTool(ThreadState& thread, StepGate& gate) : thread_(thread), gate_(gate) {
    if (thread_.in_tool++ == 0) gate_.Enter();
  }
  ~InTool() {
    if (--thread_.in_tool == 0) gate_.Leave();
  }
  InTool(const InTool&) = delete;
  InTool& operator=(const InTool&) = delete;

 private:
  ThreadState& thread_;
  StepGate& gate_;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_THREAD_STATE_H_
