// Recording communication: calls whose results are their arguments, some of them later.

#ifndef PLUMBLINE_PYTHON_BINDINGS_COLLECTIVE_H_
#define PLUMBLINE_PYTHON_BINDINGS_COLLECTIVE_H_

#include "python_api.h"

#include <cstdint>
#include <string>
#include <vector>

#include "capture/pending_calls.h"
#include "thread_state.h"

namespace plumbline {
class EntryPacker;
}

namespace plumbline::python {

class Recorder;

// What is known about one communication function.
struct CollectiveRule {
  std::vector<Py_ssize_t> masked_inputs;   // positional arguments that mean nothing before the call
  std::vector<std::string> masked_names;   // the same arguments given by keyword
  std::vector<Py_ssize_t> masked_outputs;  // items of the output that are not written
  bool gives_result = false;  // the output is what the call returns, null for handles in it
};

// One function of the framework, with the counter of its calls.
struct CollectiveApi {
  uint32_t api = 0;
  CollectiveRule rule;
};

// The framework's side, owned references.
struct CollectiveHooks {
  PyObject* handle_type = nullptr;    // class of the handles of calls that go on in the background
  PyObject* has_succeeded = nullptr;  // has_succeeded(handle): True if done without error; no wait
  PyObject* postponed = nullptr;      // dict, not empty while calls are gathered to start together
  PyObject* before = nullptr;         // before(argument): what a masked one is recorded as; or None
};

// The communication calls of one window. `output` of such an entry is the positional arguments and
// then the keyword values, or the result, after completion. A call that returns handles is complete
// when the user has waited for all of them; nothing here ever waits. All methods need the
// interpreter lock and none raises an error of its own.
class Collectives {
 public:
  // Takes over the references in `hooks`.
  Collectives(Recorder& recorder, CollectiveHooks hooks);
  ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  // Calls `original` and records the call. The result is the original's, a new reference or null
  // with its exception set.
  PyObject* Call(const CollectiveApi& api, PyObject* original, PyObject* const* args, size_t nargsf,
                 PyObject* kwnames);

  // The user has learned that what `handle` stands for is complete.
  void Completed(PyObject* handle);

  // End of the window: records calls nobody waited for, with "waited": false if they are complete
  // and with "incomplete": true, without output, if they are not.
  void Finish();

  // A region in which the framework gathers calls, to start them together at its end.
  void BeginGathering();
  // Its end. `handles`: a list of what the user will wait for, empty if the calls are complete; null
  // if that is not known. Calls of regions that overlap stay without a completion.
  void EndGathering(PyObject* handles);

  // Whether the call that returned `handle` is still to be recorded.
  [[nodiscard]] bool IsPending(PyObject* handle) const { return pending_.Awaits(handle); }
  Recorder& recorder() { return recorder_; }

 private:
  // A call that returned before it was complete.
  struct Begun {
    std::string name;
    const CollectiveApi* api = nullptr;
    std::vector<capture::ObjectRef> values;  // what becomes the output
    PackedPart inputs;  // members packed before the call, where they are searched with the output
    std::vector<Begun> together;  // calls that are complete with this one
  };
  enum class Mark { kNone, kNotWaited, kIncomplete };

  void Await(Begun call, std::vector<capture::ObjectRef> handles);
  // Of a call that is searched as a whole when it is complete: takes its inputs out of the entry,
  // which only lists it then. Nothing otherwise.
  PackedPart TakeInputs(ThreadState& thread) const;
  void PackInputs(const CollectiveApi& api, PyObject* const* args, Py_ssize_t count,
                  PyObject* kwnames);
  void PackOutputs(const CollectiveApi& api, const std::vector<capture::ObjectRef>& values,
                   EntryPacker& out);
  // The values of a result, null for its handles.
  [[nodiscard]] std::vector<capture::ObjectRef> ItemsOf(PyObject* result) const;
  [[nodiscard]] bool IsHandle(PyObject* value) const;
  // The handles in a result.
  [[nodiscard]] std::vector<capture::ObjectRef> HandlesOf(PyObject* result) const;
  [[nodiscard]] bool HasSucceeded(const std::vector<capture::ObjectRef>& handles) const;
  // Records what the user has dropped and what is complete.
  void Sweep();
  void Record(Begun& call, Mark mark);

  Recorder& recorder_;
  CollectiveHooks hooks_;
  capture::PendingCalls<Begun> pending_;
  size_t regions_ = 0;  // that are open
  bool regions_overlap_ = false;
  std::vector<uint64_t> gathered_;  // pending calls of the open region
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_COLLECTIVE_H_
