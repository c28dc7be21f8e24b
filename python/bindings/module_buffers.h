// Which buffers of a module a call of it changed: the running statistics of a normalisation, say.

#ifndef PLUMBLINE_PYTHON_BINDINGS_MODULE_BUFFERS_H_
#define PLUMBLINE_PYTHON_BINDINGS_MODULE_BUFFERS_H_

#include "python_api.h"
#include <nanobind/nanobind.h>

#include "capture/tensor_identity.h"
#include "framework.h"
#include "tensor_from_python.h"

namespace plumbline::python {

// Looks at the buffers of modules. Borrows what it is made from. Requires the interpreter lock.
class BufferReader {
 public:
  BufferReader(const FrameworkTypes& types, const FrameworkHooks& hooks, const TensorReader& reader)
      : types_(types), hooks_(hooks), reader_(reader) {}

  // Absent ones too.
  [[nodiscard]] capture::BufferStates Look(PyObject* module) const;
  // The buffers that are others than `before`, a dict by name; invalid: none.
  [[nodiscard]] nanobind::object ChangedSince(const capture::BufferStates& before,
                                              PyObject* module) const;

 private:
  [[nodiscard]] capture::BufferState LookAt(PyObject* tensor) const;

  const FrameworkTypes& types_;
  const FrameworkHooks& hooks_;
  const TensorReader& reader_;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_MODULE_BUFFERS_H_
