// Error to Python exception, at one place.

#ifndef PLUMBLINE_PYTHON_BINDINGS_ERRORS_H_
#define PLUMBLINE_PYTHON_BINDINGS_ERRORS_H_

#include <nanobind/nanobind.h>

#include <utility>

#include "plumbline/result.h"

namespace plumbline::python {

// Defines UnsupportedError, CorruptDataError and InternalError in `m`, which is plumbline._core.
void BindErrors(nanobind::module_& m);

// For every other extension module: takes the classes of plumbline._core, which importing the
// package has loaded already, so that an `except` clause means the same in both.
void ImportErrors();

// Raises the Python exception of an error (style: ValueError, FileNotFoundError, UnsupportedError,
// CorruptDataError, OSError, InternalError).
[[noreturn]] void Raise(const Error& error);

template <class T>
T ValueOrRaise(Result<T> result) {
  if (!result) Raise(result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// `object`, or the pending Python error as an exception if it is null.
inline PyObject* CheckedPython(PyObject* object) {
  if (object == nullptr) throw nanobind::python_error();
  return object;
}

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_ERRORS_H_
