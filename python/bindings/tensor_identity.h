// Whether a tensor is still what it was, told without reading all of it.

#ifndef PLUMBLINE_PYTHON_BINDINGS_TENSOR_IDENTITY_H_
#define PLUMBLINE_PYTHON_BINDINGS_TENSOR_IDENTITY_H_

#include <Python.h>

#include <cstddef>
#include <cstdint>

#include "tensor_from_python.h"

namespace plumbline::python {

struct TensorIdentity {
  static constexpr int64_t kNoVersion = -1;  // tensors made in inference mode, other frameworks

  const std::byte* data = nullptr;
  int64_t version = kNoVersion;  // `_version`
  uint64_t geometry = 0;         // hash of dtype, sizes and strides
  uint64_t sample = 0;           // hash of sixteen elements; 0 on a device
  bool operator==(const TensorIdentity&) const = default;
};

// Of a tensor that was read. Requires the interpreter lock.
TensorIdentity IdentityOf(PyObject* tensor, const HostTensor& host);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_TENSOR_IDENTITY_H_
