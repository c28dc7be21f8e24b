// Binary dumps of a compiled graph's operator (GE): a protobuf message, then the raw tensors.

#ifndef PLUMBLINE_FORMATS_GE_DUMP_H_
#define PLUMBLINE_FORMATS_GE_DUMP_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "plumbline/tensor.h"

namespace plumbline::ge {

// One input or output. Valid while the file's object lives.
class DumpedTensor {
 public:
  // Why there are no elements to read, such as "data type 13: not supported"; empty: there are.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // Requires: problem() is empty.
  [[nodiscard]] TensorView view() const { return {dtype_, data_, sizes_, strides_}; }

 private:
  friend class DumpFile;
  DType dtype_ = DType::kFloat32;
  Shape sizes_;
  std::vector<int64_t> strides_;
  const std::byte* data_ = nullptr;
  std::vector<std::byte> aligned_;  // elements, where the file has them at an odd place
  std::string problem_;
};

// A mapped file of container version 2: length of the message, the message, the elements of the
// inputs and then of the outputs. Move-only.
class DumpFile {
 public:
  // kNotFound, kIo; kCorrupt (empty, a message that ends early or is none, a length beyond the
  // file). A tensor that is cut, or of a type that has no dtype here, has a problem() instead.
  static Result<DumpFile> Open(const std::string& path);
  // The same for bytes in memory, which must outlive the object.
  static Result<DumpFile> Parse(std::span<const std::byte> bytes);
  DumpFile(DumpFile&&) = default;
  DumpFile& operator=(DumpFile&&) = default;

  [[nodiscard]] const std::vector<DumpedTensor>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<DumpedTensor>& outputs() const { return outputs_; }

 private:
  DumpFile() = default;
  std::shared_ptr<const MappedFile> file_;
  std::vector<DumpedTensor> inputs_, outputs_;
};

}  // namespace plumbline::ge

#endif  // PLUMBLINE_FORMATS_GE_DUMP_H_
