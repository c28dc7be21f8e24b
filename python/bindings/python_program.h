// The Python program as src/capture sees it: its lock, its threads, references to its objects.

#ifndef PLUMBLINE_PYTHON_BINDINGS_PYTHON_PROGRAM_H_
#define PLUMBLINE_PYTHON_BINDINGS_PYTHON_PROGRAM_H_

#include "python_api.h"

#include "capture/recorded_program.h"

namespace plumbline::python {

// The lock is the interpreter lock. The threads that share in reading large tensors are those of
// the OpenMP runtime that the process has loaded (libgomp's entry points, which LLVM's and Intel's
// runtimes offer too), as many as the caller may use now; none when there is no such runtime.
capture::ProgramThreads PythonThreads();

// Takes over a reference; null is an empty one.
capture::ObjectRef TakeRef(PyObject* object);
// The object, borrowed.
inline PyObject* ObjectOf(const capture::ObjectRef& reference) {
  return static_cast<PyObject*>(reference.get());
}

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_PYTHON_PROGRAM_H_
