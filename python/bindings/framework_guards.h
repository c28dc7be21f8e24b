// What keeps the user's own code out of the framework's callables that the recorder uses.

#ifndef PLUMBLINE_PYTHON_BINDINGS_FRAMEWORK_GUARDS_H_
#define PLUMBLINE_PYTHON_BINDINGS_FRAMEWORK_GUARDS_H_

#include "python_api.h"

#include "framework.h"
#include "thread_state.h"

namespace plumbline::python {

// Keeps a raised exception while plumbline's own code runs.
class KeepException {
 public:
  KeepException() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~KeepException() { PyErr_Restore(type_, value_, traceback_); }
  KeepException(const KeepException&) = delete;
  KeepException& operator=(const KeepException&) = delete;

 private:
  PyObject* type_;
  PyObject* value_;
  PyObject* traceback_;
};

// Takes plumbline's own function mode off the thread's stack while an original or plumbline itself
// uses the framework, and puts it back. May be nested. Autograd runs hooks with the stack of the
// call of backward(), so the mode may not be there; modes of the user stay.
class ModeOff {
 public:
  ModeOff(const FrameworkHooks& hooks, ThreadState& thread);
  ~ModeOff();
  ModeOff(const ModeOff&) = delete;
  ModeOff& operator=(const ModeOff&) = delete;

 private:
  PyObject* push_;
  ThreadState& thread_;
  PyObject* mode_ = nullptr;
};

// While it lives, a tensor is read without running a user's __torch_function__, of its class or of
// a mode. Costs nothing for plain tensors and parameters without such modes. `tensor` null: several
// are read, of any class.
class NoOverride {
 public:
  NoOverride(const FrameworkTypes& types, const FrameworkHooks& hooks, PyObject* tensor);
  ~NoOverride();
  NoOverride(const NoOverride&) = delete;
  NoOverride& operator=(const NoOverride&) = delete;

 private:
  PyObject* guard_ = nullptr;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_FRAMEWORK_GUARDS_H_
