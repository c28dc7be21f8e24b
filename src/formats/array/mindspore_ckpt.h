// .ckpt files of mindspore.save_checkpoint(): protobuf messages, a tensor or a part of one each
// (docs/formats/mindspore_ckpt.md).

#ifndef PLUMBLINE_FORMATS_ARRAY_MINDSPORE_CKPT_H_
#define PLUMBLINE_FORMATS_ARRAY_MINDSPORE_CKPT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "plumbline/tensor.h"

namespace plumbline::mindspore_ckpt {

struct StoredTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape sizes;
  // Its elements, contiguous and little-endian, in runs of whole elements one after the other; at
  // any alignment. Borrowed from the file.
  std::vector<std::span<const std::byte>> runs;
  std::string problem;  // an element type without a dtype here; empty: readable
};

struct StoredText {
  std::string name, text;
};

// A mapped file. Movable; spans stay valid while the object lives. Thread-safe for reading.
class CkptFile {
 public:
  // kNotFound, kIo, kCorrupt: cut, other bytes (an encrypted file, too), runs that do not make up
  // the shape, or a file that does not have its recorded checksum.
  static Result<CkptFile> Open(const std::string& path);
  // The same for bytes in memory, which must outlive the object.
  static Result<CkptFile> Parse(std::span<const std::byte> bytes);
  // Whether bytes may be such a file and not one of torch.save().
  static bool LooksLikeOne(std::span<const std::byte> bytes);

  // In the order of the file.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  [[nodiscard]] const std::vector<StoredText>& texts() const { return texts_; }
  // Parts of hash tables (MapParameter), which are not read.
  [[nodiscard]] uint64_t left_out() const { return left_out_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<StoredTensor> tensors_;
  std::vector<StoredText> texts_;
  uint64_t left_out_ = 0;
};

}  // namespace plumbline::mindspore_ckpt

#endif  // PLUMBLINE_FORMATS_ARRAY_MINDSPORE_CKPT_H_
