// What has been computed about tensors already seen in this step, so that the output of one call
// is reduced once although it is the input of the next.

#ifndef PLUMBLINE_PYTHON_BINDINGS_TENSOR_CACHE_H_
#define PLUMBLINE_PYTHON_BINDINGS_TENSOR_CACHE_H_

#include <Python.h>

#include <cstdint>
#include <memory_resource>
#include <string>
#include <unordered_map>

#include "base/page_memory.h"
#include "record/tensor_stats.h"
#include "store/tensor_writer.h"
#include "tensor_from_python.h"
#include "tensor_identity.h"

namespace plumbline::python {

// Everything one pass over a tensor's memory yields.
struct TensorFacts {
  TensorStats stats;
  // NaN or Inf is among the elements. Where this is searched for, the rest is not filled in.
  bool non_finite = false;
  // CRC-32 under upstream's rules (bfloat16 as float32), or the XOR of the words (xor mode).
  uint64_t digest = 0;
  bool has_digest = false;
  ContentKey content{};  // of the stored bytes
  bool has_content = false;
};

// Facts by tensor. A tensor counts as unchanged only if all of these hold:
//   - the same Python object, still alive (weak reference), so its storage was never freed;
//   - the same data pointer, dtype, sizes and strides;
//   - the same version counter (`_version`), which every in-place operation of the framework
//     advances, also through views and detach();
//   - the same bits at sixteen spread elements: catches writers that bypass the counter (`.data`,
//     NumPy views, foreign kernels), short of a write that misses all sixteen.
// Tensors without a version counter (inference mode) are never cached.
// Requires the interpreter lock.
class TensorCache {
 public:
  ~TensorCache() { Clear(); }

  // The facts of `tensor` if it is unchanged since Store, else null.
  TensorFacts* Find(PyObject* tensor, const HostTensor& host);
  // Remembers facts; returns the stored copy, or null if the tensor cannot be tracked.
  TensorFacts* Store(PyObject* tensor, const HostTensor& host, const TensorFacts& facts);
  void Clear();
  [[nodiscard]] uint64_t hits() const { return hits_; }

 private:
  struct Item {
    PyObject* weak_reference;
    TensorIdentity identity;
    TensorFacts facts;
  };

  std::pmr::unsynchronized_pool_resource memory_{&PageMemory()};
  std::pmr::unordered_map<PyObject*, Item> items_{&memory_};
  uint64_t hits_ = 0;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_TENSOR_CACHE_H_
