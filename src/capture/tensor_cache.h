// What has been computed about tensors already seen in this step, so that the output of one call
// is reduced once although it is the input of the next.

#ifndef PLUMBLINE_CAPTURE_TENSOR_CACHE_H_
#define PLUMBLINE_CAPTURE_TENSOR_CACHE_H_

#include <cstdint>
#include <memory_resource>
#include <unordered_map>
#include <utility>

#include "base/memory/pages.h"
#include "capture/recorded_program.h"
#include "capture/tensor_identity.h"
#include "record/tensor_stats.h"
#include "store/tensor_writer.h"

namespace plumbline::capture {

// Everything one pass over a tensor's memory yields.
struct TensorFacts {
  TensorStats stats;
  // NaN or Inf is among the elements. Where this is searched for, only these two are filled in.
  bool non_finite = false;
  bool saturated = false;  // the largest magnitude is the end of the type
  // CRC-32 under upstream's rules (bfloat16 as float32), the XOR of the words (xor mode), or the
  // two halves of a digest (digest mode).
  uint64_t digest = 0, digest_high = 0;
  bool has_digest = false;
  ContentKey content{};  // of the stored bytes
  bool has_content = false;
};

// Facts by tensor. A tensor counts as unchanged only if all of these hold:
//   - the same object of the program, still alive (weak reference), so its storage was never freed;
//   - the same data pointer, dtype, sizes and strides;
//   - the same version counter (`_version`), which every in-place operation of the framework
//     advances, also through views and detach();
//   - the same bits at sixteen spread elements: catches writers that bypass the counter (`.data`,
//     NumPy views, foreign kernels), short of a write that misses all sixteen.
// Tensors without a version counter (inference mode) are never cached.
// Requires the program's lock.
template <class Facts>
class TensorCacheOf {
 public:
  // The facts of `tensor` if it is unchanged since Store, else null. The pointer is valid until
  // the next Store. `is_same(weak_reference, identity)`: whether the weak reference that was stored
  // leads to the tensor and its identity is that one.
  template <class IsSame>
  const Facts* Find(const void* tensor, const IsSame& is_same) {
    const auto found = items_.find(tensor);
    if (found == items_.end()) return nullptr;
    const Item& item = found->second;
    if (is_same(item.weak_reference.get(), item.identity)) return &item.facts;
    items_.erase(found);
    return nullptr;
  }
  // Remembers facts. `make_reference()`: a weak reference to the tensor, empty if it takes none.
  template <class MakeReference>
  void Store(const void* tensor, const TensorIdentity& identity, const Facts& facts,
             const MakeReference& make_reference) {
    if (identity.version == TensorIdentity::kNoVersion) return;
    ObjectRef weak_reference = make_reference();
    if (weak_reference.get() == nullptr) return;
    items_.insert_or_assign(tensor, Item{std::move(weak_reference), identity, facts});
  }
  void Clear() { items_.clear(); }

 private:
  struct Item {
    ObjectRef weak_reference;
    TensorIdentity identity;
    Facts facts;
  };

  std::pmr::unsynchronized_pool_resource memory_{&PageMemory()};
  std::pmr::unordered_map<const void*, Item> items_{&memory_};
};

using TensorCache = TensorCacheOf<TensorFacts>;

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_TENSOR_CACHE_H_
