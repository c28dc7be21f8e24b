// The tensors that a page looks into: where they lie, opened, and read as numbers run by run.

#ifndef PLUMBLINE_VIEW_VALUES_VALUE_FILE_H_
#define PLUMBLINE_VIEW_VALUES_VALUE_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::view {

// Where the two sides of a value lie. A path is that of a .pt or .npy file; the tensor directory
// and a data name behind it, also of tensors made of several files; a .safetensors file, or a file
// of torch.save with many tensors, and "::" and the tensor's name behind it. Empty: there is none.
struct ValueFiles {
  std::string target, golden;
};

// One opened tensor, borrowed from its mapped file. Movable; view() stays valid while it lives.
// Thread-safe for reading.
class ValueFile {
 public:
  // kNotFound, kIo, kCorrupt, kUnsupported, kInvalidArgument as the readers of the formats; the
  // elements of .pt files are not compared with their checksum, as the comparison did that.
  static Result<ValueFile> Open(const std::string& path);

  [[nodiscard]] TensorView view() const { return {dtype_, data_, sizes_, strides_}; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const Shape& sizes() const { return sizes_; }
  [[nodiscard]] size_t elements() const { return elements_; }

 private:
  Status Bind(const TensorView& view);
  Status OpenMember(const std::string& path, std::string_view member);

  std::shared_ptr<const void> owner_;  // of `data_`
  DType dtype_ = DType::kFloat32;
  const std::byte* data_ = nullptr;
  Shape sizes_;
  std::vector<int64_t> strides_;
  size_t elements_ = 0;
};

// What a tensor's contents are known by without reading them: of every file behind `path` its name,
// size and time of change. kNotFound, kIo.
Result<std::string> ContentKey(const std::string& path);

// Set by another thread to stop the work; null: it cannot be stopped.
using CancelFlag = const std::atomic<bool>*;
inline bool IsSet(CancelFlag flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

// Elements that are read at once: what is made of them stays in cache.
inline constexpr size_t kRunElements = 2048;

// Elements of a tensor as doubles, in row-major order: a bool as 0 and 1, a complex number by its
// modulus, 64-bit integers rounded above 2^53. Borrows the view's memory. Thread-safe.
class ElementReader {
 public:
  explicit ElementReader(const TensorView& view);

  // Elements `first` to `first + count` in their own type: in place, or copied to `scratch`, which
  // holds kRunElements * 16 bytes. Requires: count <= kRunElements.
  const std::byte* Raw(size_t first, size_t count, std::byte* scratch) const;
  // The same as doubles. Requires: count <= kRunElements.
  void Read(size_t first, size_t count, double* out) const;

  [[nodiscard]] DType dtype() const { return view_.dtype; }
  [[nodiscard]] bool is_complex() const { return is_complex_; }
  [[nodiscard]] size_t elements() const { return elements_; }

 private:
  TensorView view_;
  bool is_contiguous_, is_complex_;
  size_t elements_, element_bytes_;
};

// What `count` elements in memory are as doubles, see ElementReader.
void WidenElements(DType dtype, const std::byte* data, size_t count, double* out);

// One element beside its partner.
struct ElementPair {
  double target = 0, golden = 0;
  double difference = 0;  // target - golden; of complex elements the modulus of that
};

// Pairs of elements of two tensors of one shape. Borrows the views' memory. Thread-safe.
class PairReader {
 public:
  PairReader(const TensorView& target, const TensorView& golden);

  // Elements `first` to `first + count`: both sides, and target - golden in double (of complex
  // numbers the modulus of that; exact for two 64-bit integers of one type but for one rounding).
  // Requires: count <= kRunElements.
  void Read(size_t first, size_t count, double* target, double* golden, double* difference) const;

  [[nodiscard]] const ElementReader& target() const { return target_; }
  [[nodiscard]] const ElementReader& golden() const { return golden_; }
  [[nodiscard]] size_t elements() const { return golden_.elements(); }

 private:
  void ReadComplex(size_t first, size_t count, double* difference) const;
  void ReadIntegers(size_t first, size_t count, double* difference) const;

  ElementReader target_, golden_;
};

// How a walk over `elements` is shared out: parts of whole runs, whose number depends on nothing
// but the number of elements, so that sums do not depend on threads.
struct WalkPart {
  size_t index, first, end;
};
size_t WalkParts(size_t elements);
WalkPart PartOf(size_t elements, size_t index);

// Calls visit(first, count) for the runs of a part until the flag is set.
template <class Visit>
void ForRuns(const WalkPart& part, CancelFlag cancel, const Visit& visit) {
  for (size_t first = part.first; first < part.end && !IsSet(cancel); first += kRunElements) {
    visit(first, part.end - first < kRunElements ? part.end - first : kRunElements);
  }
}

// The error of work that was stopped.
Error CancelledError();

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_VALUES_VALUE_FILE_H_
