// NumPy's .npy files, format versions 1.0 to 3.0 (docs/formats/npy.md), and the order of bytes in
// elements.

#ifndef PLUMBLINE_FORMATS_ARRAY_NPY_H_
#define PLUMBLINE_FORMATS_ARRAY_NPY_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "plumbline/tensor.h"

namespace plumbline {

// Reverses the bytes of every element of `dtype` in place; of each part, if complex.
inline void SwapElementBytes(DType dtype, std::span<std::byte> bytes) {
  const DTypeInfo& info = InfoOf(dtype);
  const size_t width = info.size_bytes / (info.kind == DTypeKind::kComplex ? 2U : 1U);
  for (; bytes.size() >= width; bytes = bytes.subspan(width)) {
    std::reverse(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(width));
  }
}

}  // namespace plumbline

namespace plumbline::npy {

// Of file names.
inline constexpr std::string_view kEnding = ".npy";

// Everything before the element data of a C-order, little-endian array; its length is a multiple of
// 64. kUnsupported for dtypes that NumPy does not have (bfloat16, float8).
Result<std::string> MakeHeader(DType dtype, std::span<const int64_t> sizes);

// The same as MindSpore's own dump writes it: a comma behind every size, no blanks between them,
// one to 64 blanks at the end.
Result<std::string> MakeGraphHeader(DType dtype, std::span<const int64_t> sizes);

// A file's header and elements.
struct Contents {
  std::string header;
  DType dtype = DType::kFloat32;  // of `data`
  std::span<const std::byte> data;
  std::vector<std::byte> widened;  // owns `data` of elements that became float32; else empty
};
// Of a contiguous array. bfloat16 and float8, which NumPy does not have, become float32, which
// holds all of their values; otherwise `data` is that of the argument. Errors as MakeHeader().
Result<Contents> MakeContents(DType dtype, std::span<const int64_t> sizes,
                              std::span<const std::byte> data);

// A mapped .npy file and the array in it. Movable; view() stays valid while the object lives.
// Thread-safe for reading.
class NpyFile {
 public:
  // kNotFound, kIo, kCorrupt (damaged header, data too short), kUnsupported (object arrays, texts,
  // records and other element types without a dtype; newer format versions). Bytes behind the data
  // are ignored, as NumPy does.
  static Result<NpyFile> Open(const std::string& path);
  // The same for bytes in memory, which must outlive the object.
  static Result<NpyFile> Parse(std::span<const std::byte> bytes);
  // A Fortran-order array has the strides of its order.
  [[nodiscard]] TensorView view() const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<std::byte> converted_;  // elements of a big-endian array
  DType dtype_ = DType::kFloat32;
  const std::byte* data_ = nullptr;
  Shape sizes_;
  std::vector<int64_t> strides_;
};

}  // namespace plumbline::npy

#endif  // PLUMBLINE_FORMATS_ARRAY_NPY_H_
