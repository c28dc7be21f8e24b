// Tensor files of ATB (Ascend Transformer Boost): lines name=value, then the elements.

#ifndef PLUMBLINE_FORMATS_ACL_ATB_BIN_H_
#define PLUMBLINE_FORMATS_ACL_ATB_BIN_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "plumbline/tensor.h"

namespace plumbline::atb {

// Whether a file is one of these by its name: it ends in ".bin", in any case.
bool IsBinFileName(std::string_view name);

// A mapped file and the tensor in it. Movable; view() stays valid while the object lives.
class BinFile {
 public:
  // kNotFound, kIo; kCorrupt (a line without exactly one "=", a number that is none, no $End, fewer
  // bytes than the shape needs); kUnsupported (elements in another file, unknown dtype code).
  static Result<BinFile> Open(const std::string& path);
  // The same for bytes in memory, which must outlive the object.
  static Result<BinFile> Parse(std::span<const std::byte> bytes);
  [[nodiscard]] TensorView view() const { return {dtype_, data_, sizes_, strides_}; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<std::byte> aligned_;  // elements, where the file has them at an odd place
  DType dtype_ = DType::kFloat32;
  const std::byte* data_ = nullptr;
  Shape sizes_;
  std::vector<int64_t> strides_;
};

}  // namespace plumbline::atb

#endif  // PLUMBLINE_FORMATS_ACL_ATB_BIN_H_
