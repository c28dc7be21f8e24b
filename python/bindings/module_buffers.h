// Which buffers of a module a call of it changed: the running statistics of a normalisation, say.

#ifndef PLUMBLINE_PYTHON_BINDINGS_MODULE_BUFFERS_H_
#define PLUMBLINE_PYTHON_BINDINGS_MODULE_BUFFERS_H_

#include <Python.h>
#include <nanobind/nanobind.h>

#include <vector>

#include "framework.h"
#include "tensor_identity.h"

namespace plumbline::python {

// Looks at the buffers of modules. Borrows what it is made from. Requires the interpreter lock.
class BufferReader {
 public:
  struct Buffer {
    const PyObject* tensor;  // compared, never read
    TensorIdentity identity;
    bool is_sampled = false;  // reads of its memory tell whether it changed
    bool operator==(const Buffer&) const = default;
  };
  // A module's own buffers, in its order, absent ones too. Holds no tensor.
  using Buffers = std::vector<Buffer>;

  BufferReader(const FrameworkTypes& types, const FrameworkHooks& hooks, const TensorReader& reader)
      : types_(types), hooks_(hooks), reader_(reader) {}

  [[nodiscard]] Buffers Look(PyObject* module) const;
  // The buffers that are others than `before`, by name. One on a device is taken for changed if
  // another of the module is: kernels need not count their writes.
  [[nodiscard]] nanobind::dict ChangedSince(const Buffers& before, PyObject* module) const;

 private:
  [[nodiscard]] Buffer LookAt(PyObject* tensor) const;

  const FrameworkTypes& types_;
  const FrameworkHooks& hooks_;
  const TensorReader& reader_;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_MODULE_BUFFERS_H_
