// What the recorder knows about one thread of the program.

#ifndef PLUMBLINE_CAPTURE_THREAD_STATE_H_
#define PLUMBLINE_CAPTURE_THREAD_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/kept_tensors.h"
#include "capture/step_gate.h"
#include "capture/tensor_identity.h"
#include "record/value.h"

namespace plumbline::capture {

// A module call that has begun and not ended.
struct ModuleFrame {
  std::string name;      // "Module.layers.0.LlamaDecoderLayer.forward.0"
  PackedPart inputs;     // members, taken before the module could change them
  BufferStates buffers;  // as they were before
  uint32_t number = 0;   // of the call
  uint64_t token = 0;    // identifies the frame to CloseModule()
  uint64_t epoch = 0;    // of the step it belongs to
};

// Per-thread recording state. Used by its own thread, under the program's lock.
struct ThreadState {
  ThreadState() = default;
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;

  // Whether values being packed need to know their place in the entry.
  [[nodiscard]] bool with_paths() const {
    return saves_tensors || keeps_tensors || (kept != nullptr && kept->writes != Writes::kNothing);
  }
  // The innermost module call, which calls made now belong to; empty: none.
  [[nodiscard]] std::string_view module_name() const {
    return modules.empty() ? std::string_view() : std::string_view(modules.back().name);
  }

  // Another holder of `tensor` is about to see it changed: `make_copy()` refers to its values so
  // far.
  template <class MakeCopy>
  void ShareCopy(const void* tensor, std::optional<int64_t> version, const MakeCopy& make_copy) {
    for (ModuleFrame& frame : modules) frame.inputs.kept.Share(tensor, version, make_copy);
  }

  int in_tool = 0;           // inside plumbline's own work: record nothing
  int in_api = 0;            // inside a recorded API: only the outermost one is an entry
  bool in_operator = false;  // level L2: the call is an operator's
  EntryPacker call;          // the API entry in flight
  EntryPacker event;         // entries that are complete in one go (modules, gradients)
  std::vector<ModuleFrame> modules;
  std::string entry_name;       // of the entry being packed: first part of tensor file names
  bool saves_tensors = false;   // of that entry: tensors are stored as they are met
  bool keeps_tensors = false;   // of that entry: they are kept until it is known
  KeptTensors* kept = nullptr;  // where, and what was seen in them; null: nothing is searched for
  KeptTensors call_kept;        // those of `call`
  bool replaces_files = false;  // a tensor file of the same name is an earlier value of this one
};

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

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_THREAD_STATE_H_
