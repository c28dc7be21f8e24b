// The framework's callables that the recorder uses, and what keeps the user's own code out of them.

#ifndef PLUMBLINE_PYTHON_BINDINGS_FRAMEWORK_GUARDS_H_
#define PLUMBLINE_PYTHON_BINDINGS_FRAMEWORK_GUARDS_H_

#include <Python.h>

#include "thread_state.h"
#include "values.h"

namespace plumbline::python {

// Callables of the framework, owned references.
struct FrameworkHooks {
  PyObject* to_host = nullptr;          // to_host(tensor): a plain CPU tensor of the same values
  PyObject* describe_tensor = nullptr;  // a tensor whose memory is not its values: PackDescribed
  PyObject* mode_depth = nullptr;       // number of function modes on the thread's stack
  PyObject* mode_at = nullptr;          // mode_at(i), counted from the outermost
  PyObject* pop_mode = nullptr;         // take the innermost function mode off the stack
  PyObject* push_mode = nullptr;        // put one on
  PyObject* parameter_type = nullptr;   // tensor subclass without overrides of its own
  PyObject* no_override = nullptr;      // context manager class: attributes of tensors are read
                                        // without running any __torch_function__
};

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
