#include "framework_guards.h"

#include "callback.h"

namespace plumbline::python {

ModeOff::ModeOff(const FrameworkHooks& hooks, ThreadState& thread)
    : push_(hooks.push_mode), thread_(thread) {
  if (thread.mode_off++ > 0 || hooks.mode_depth == nullptr) return;
  PyObject* answer = PyObject_CallNoArgs(hooks.mode_depth);
  long depth = answer == nullptr ? 0 : PyLong_AsLong(answer);
  Py_XDECREF(answer);
  if (depth > 0 && thread.function_mode != nullptr) {
    PyObject* index = PyLong_FromLong(depth - 1);
    PyObject* top = PyObject_CallOneArg(hooks.mode_at, index);
    if (top == thread.function_mode) {
      mode_ = PyObject_CallNoArgs(hooks.pop_mode);
      --depth;
    }
    Py_XDECREF(top);
    Py_DECREF(index);
  }
  thread.has_other_modes = depth > 0;
  DropError();
}

ModeOff::~ModeOff() {
  if (--thread_.mode_off == 0) thread_.has_other_modes = false;
  // Unless the window was closed meanwhile.
  if (mode_ == nullptr) return;
  if (thread_.function_mode != mode_) {
    Py_DECREF(mode_);
    return;
  }
  const KeepException keep;
  PyObject* done = PyObject_CallOneArg(push_, mode_);
  if (done == nullptr) DropError();
  Py_XDECREF(done);
  Py_DECREF(mode_);
}

NoOverride::NoOverride(const FrameworkTypes& types, const FrameworkHooks& hooks, PyObject* tensor) {
  if (hooks.no_override == nullptr) return;
  PyObject* type = tensor == nullptr ? nullptr : reinterpret_cast<PyObject*>(Py_TYPE(tensor));
  const bool is_plain = type == types.tensor || type == hooks.parameter_type;
  if (is_plain && !ThisThread().has_other_modes) return;
  guard_ = PyObject_CallNoArgs(hooks.no_override);
  PyObject* done = guard_ == nullptr ? nullptr : PyObject_CallMethod(guard_, "__enter__", nullptr);
  if (done == nullptr) DropError();
  Py_XDECREF(done);
}

NoOverride::~NoOverride() {
  if (guard_ == nullptr) return;
  const KeepException keep;
  PyObject* done = PyObject_CallMethod(guard_, "__exit__", "OOO", Py_None, Py_None, Py_None);
  if (done == nullptr) DropError();
  Py_XDECREF(done);
  Py_DECREF(guard_);
}

}  // namespace plumbline::python
