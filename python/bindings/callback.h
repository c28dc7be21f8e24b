// A Python callable around C++ code, for hooks that the framework calls.

#ifndef PLUMBLINE_PYTHON_BINDINGS_CALLBACK_H_
#define PLUMBLINE_PYTHON_BINDINGS_CALLBACK_H_

#include "python_api.h"

#include <functional>
#include <string_view>

namespace plumbline::python {

// What hooks work for. Requires the interpreter lock.
class HookHost {
 public:
  virtual ~HookHost() = default;
  // The Python object that owns this; borrowed. Hooks keep a reference to it.
  [[nodiscard]] virtual PyObject* owner() const = 0;
  // Something could not be looked at.
  virtual void CountLoss(std::string_view counter, std::string_view what) = 0;
};

// Called with the tuple of positional arguments (borrowed).
using CallbackBody = std::function<void(PyObject* args)>;

// A callable that runs `body` and returns None. It keeps `host` alive. Whatever the body throws
// or leaves as the Python error is counted as a loss: a hook never raises into
// training. New reference, or null with an error.
PyObject* NewCallback(HookHost& host, CallbackBody body);

// Runs `body` in the same way, without a callable around it.
void RunGuarded(HookHost& host, const std::function<void()>& body);

// Forgets the Python error, if there is one. What is no Exception (KeyboardInterrupt, SystemExit of
// a signal handler that ran inside a hook) is not ours: it is raised again, in the main thread,
// when the hook is over.
void DropError();

// Creates the type. False with a Python error set on failure.
bool InitCallbackType();

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_CALLBACK_H_
