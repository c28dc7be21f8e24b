// .safetensors files: a JSON header and the elements of many tensors (docs/formats/safetensors.md).

#ifndef PLUMBLINE_FORMATS_ARRAY_SAFETENSORS_H_
#define PLUMBLINE_FORMATS_ARRAY_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "plumbline/tensor.h"

namespace plumbline::safetensors {

struct StoredTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape sizes;
  uint64_t begin = 0, end = 0;  // bytes behind the header
  std::string problem;          // an element type without a dtype here; empty: readable
};

// A mapped file. Movable; spans stay valid while the object lives. Thread-safe for reading.
class SafetensorsFile {
 public:
  // kNotFound, kIo, kCorrupt: cut, a header that is too long or no JSON, a name twice, ranges that
  // overlap, leave gaps, do not fit the shape or leave the file.
  static Result<SafetensorsFile> Open(const std::string& path);
  // The same for bytes in memory, which must outlive the object.
  static Result<SafetensorsFile> Parse(std::span<const std::byte> bytes);

  // In the order of their data.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // The elements, contiguous and little-endian.
  [[nodiscard]] std::span<const std::byte> data(const StoredTensor& tensor) const {
    return data_.subspan(tensor.begin, tensor.end - tensor.begin);
  }

 private:
  Status CheckRanges() const;

  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> data_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace plumbline::safetensors

#endif  // PLUMBLINE_FORMATS_ARRAY_SAFETENSORS_H_
