// Files of torch.save that hold many tensors: state dicts, whole checkpoints
// (docs/formats/torch_pt.md). Reading executes nothing.

#ifndef PLUMBLINE_FORMATS_PYTORCH_TORCH_ARCHIVE_H_
#define PLUMBLINE_FORMATS_PYTORCH_TORCH_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/file/file.h"
#include "formats/pytorch/torch_pickle.h"
#include "plumbline/tensor.h"

namespace plumbline::torch_pt {

// One tensor of such a file. The data lies in the mapped file.
struct ArchiveTensor {
  std::string name;  // keys and positions on the way to it, with dots; empty: the file's only value
  DType dtype = DType::kFloat32;
  Shape sizes;
  std::vector<int64_t> strides;
  const std::byte* data = nullptr;
  std::span<const std::byte> storage;   // the bytes that CheckBytes() reads
  std::optional<uint32_t> storage_crc;  // none in files from before PyTorch 1.6
  std::string problem;                  // why the elements cannot be used; empty: they can

  [[nodiscard]] TensorView view() const { return {dtype, data, sizes, strides}; }
};

// None, a truth value, an integer, a number, a text. Names of types (torch.float32) are texts, and
// so are integers beyond 64 bits, in hexadecimal digits.
using PlainValue = std::variant<std::monostate, bool, int64_t, double, std::string>;

// A value beside the tensors, named as they are. Those of a set are in order of their texts.
struct ArchiveValue {
  std::string name;
  PlainValue value;
};

// Movable; views stay valid while the object lives. Thread-safe for reading.
class TorchArchive {
 public:
  // kNotFound, kIo, kCorrupt (damaged container or pickle), kUnsupported (a pickle that names
  // functions of the interpreter or unknown packages). A storage that is absent, too short or of
  // the other byte order is the `problem` of its tensors.
  static Result<TorchArchive> Open(const std::string& path);
  // The same for bytes in memory, which must outlive the object.
  static Result<TorchArchive> Parse(std::span<const std::byte> bytes);

  // In the order of the file. Names may repeat.
  [[nodiscard]] const std::vector<ArchiveTensor>& tensors() const { return tensors_; }
  // Plain values in the order of the file. Names may repeat.
  [[nodiscard]] const std::vector<ArchiveValue>& values() const { return values_; }
  // Values that are neither tensors nor plain, such as bytes and objects of NumPy; and plain ones
  // beyond a million.
  [[nodiscard]] uint64_t other_count() const { return other_count_; }
  // The values beside the tensors, as they were pickled.
  [[nodiscard]] const PickleMachine& machine() const { return machine_; }
  [[nodiscard]] const PickleNode& root() const { return machine_.node(root_); }

 private:
  struct Storages;
  TorchArchive() : machine_(PickleScope::kCheckpoint) {}
  Status ReadZip(std::span<const std::byte> file);
  Status ReadLegacy(std::span<const std::byte> file);
  Status Collect(const Storages& storages);
  void Add(const std::string& name, const PickledTensor& tensor, const Storages& storages);

  std::shared_ptr<const MappedFile> file_;
  PickleMachine machine_;
  uint32_t root_ = 0;
  std::vector<ArchiveTensor> tensors_;
  std::vector<ArchiveValue> values_;
  uint64_t other_count_ = 0;
};

// kCorrupt when the recorded checksum of the tensor's storage is not that of its bytes.
Status CheckBytes(const ArchiveTensor& tensor);

}  // namespace plumbline::torch_pt

#endif  // PLUMBLINE_FORMATS_PYTORCH_TORCH_ARCHIVE_H_
