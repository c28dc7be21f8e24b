// Host memory of a framework tensor as a TensorView, without copying and without importing the
// framework: through the C-level DLPack exchange table that the tensor's type publishes
// (`__dlpack_c_exchange_api__`, DLPack 1.3; about 0.1 us), else through `__dlpack__()` (about 4
// us). A framework whose tensors do neither as fast is read through its tensors' attributes (1 us).

#ifndef PLUMBLINE_PYTHON_BINDINGS_TENSOR_FROM_PYTHON_H_
#define PLUMBLINE_PYTHON_BINDINGS_TENSOR_FROM_PYTHON_H_

#include "python_api.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "capture/tensor_identity.h"
#include "framework.h"
#include "tensor/dlpack.h"

namespace plumbline::python {

using dlpack::kMaxRank;

// A tensor's metadata and, for dense CPU tensors, its memory. Sizes and strides are borrowed from
// the tensor (or held in `inline_strides`): valid while the Python object lives and is not resized.
struct HostTensor {
  DType dtype = DType::kFloat32;
  const std::byte* data = nullptr;
  bool on_host = false;  // false: device memory, `data` must not be read
  std::span<const int64_t> sizes;
  std::span<const int64_t> strides;
  dlpack::Strides inline_strides;  // used when the producer gives none
  std::array<int64_t, kMaxRank> inline_sizes;    // likewise
  // Owner to release when the tensor came through __dlpack__(); null on the fast path.
  PyObject* capsule = nullptr;

  HostTensor() = default;
  HostTensor(const HostTensor&) = delete;
  HostTensor& operator=(const HostTensor&) = delete;
  ~HostTensor() { Py_XDECREF(capsule); }

  [[nodiscard]] TensorView view() const { return {dtype, data, sizes, strides}; }
};

// tensor._version; nothing for tensors without one (inference mode).
std::optional<int64_t> VersionOf(PyObject* tensor);
// Whether the values differ from the memory: a conjugation or negation not carried out yet.
bool IsLazy(PyObject* tensor, DType dtype);
// Of a tensor that was read.
capture::TensorIdentity IdentityOf(PyObject* tensor, const HostTensor& host);

// Reads tensors of one framework. Holds the exchange table once found.
// Requires: the interpreter lock for every method.
class TensorReader {
 public:
  // Borrows `types`, which must outlive the reader.
  explicit TensorReader(const FrameworkTypes& types);
  TensorReader(const TensorReader&) = delete;
  TensorReader& operator=(const TensorReader&) = delete;

  // False (no Python error set) if the tensor has no plain memory: sparse, quantised, a wrapper
  // subclass, a dtype outside DLPack. `out` is then unusable.
  bool Read(PyObject* tensor, HostTensor* out) const;

  // True: the 0.1 us path is in use.
  [[nodiscard]] bool has_exchange_table() const { return read_ != nullptr; }

 private:
  using ReadFunction = int (*)(void* py_object, void* out_dl_tensor);
  bool ReadThroughCapsule(PyObject* tensor, HostTensor* out) const;
  bool ReadAttributes(PyObject* tensor, HostTensor* out) const;
  [[nodiscard]] std::optional<DType> DTypeOf(PyObject* object) const;

  const FrameworkTypes& types_;
  ReadFunction read_ = nullptr;
  // What the objects of FrameworkTypes::dtypes stand for, in their order.
  std::vector<std::optional<DType>> dtypes_;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_TENSOR_FROM_PYTHON_H_
