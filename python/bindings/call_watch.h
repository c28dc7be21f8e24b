// Calls of APIs that are not recorded but looked at by Python, before and after the original runs.

#ifndef PLUMBLINE_PYTHON_BINDINGS_CALL_WATCH_H_
#define PLUMBLINE_PYTHON_BINDINGS_CALL_WATCH_H_

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>

#include "watch/perturb/check.h"

namespace plumbline::python {

class Recorder;

// Belongs to a recorder (Recorder::set_watch), whose probes then call this instead of recording.
// Like a recorder it never raises into training: whatever `before` and `after` raise is counted,
// and the original is called exactly once. Requires the interpreter lock.
class CallWatch {
 public:
  using CheckedCall = perturb::CheckedCall;
  // `selects`: whether a call is of interest; asked for outermost calls only.
  // `before(call, function, args, kwargs, written)`: None, or a state that `after(state, result)`
  // gets, whose result, unless None, takes the place of the original's. `written`: those of the
  // arguments that the call may write to.
  CallWatch(Recorder& recorder, std::function<bool(const CheckedCall&)> selects,
            nanobind::object before, nanobind::object after);

  // As Recorder::CallApi.
  PyObject* Call(uint32_t api, PyObject* original, PyObject* const* args, size_t nargsf,
                 PyObject* kwnames);
  // Whether calls are looked at now.
  void set_open(bool open) { is_open_ = open; }
  [[nodiscard]] bool is_open() const;

 private:
  nanobind::object Before(const CheckedCall& call, PyObject* original, PyObject* const* args,
                          Py_ssize_t count, PyObject* kwnames);

  Recorder& recorder_;
  std::function<bool(const CheckedCall&)> selects_;
  nanobind::object before_, after_;
  bool is_open_ = false;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_CALL_WATCH_H_
