// A checkpoint: named tensors, from one file or from a directory of shards, read in place.
//
// Formats: .safetensors; .pt, .pth, .bin, .ckpt of torch.save (any nesting); .ckpt of MindSpore;
// .npy; directories of these, with an index.json of Hugging Face or without; Megatron directories
// (mp_rank_*); directories of torch.distributed.checkpoint (.metadata and .distcp, as FSDP writes
// them).

#ifndef PLUMBLINE_LOAD_CHECKPOINT_H_
#define PLUMBLINE_LOAD_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/pytorch/torch_archive.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::load {

// Part of a tensor as it lies in a file, borrowed from the checkpoint.
struct TensorPiece {
  const std::byte* data = nullptr;
  Shape sizes;
  std::vector<int64_t> strides;
  Shape offsets;  // of its first element in the tensor; empty: all 0. With one dimension, of a
                  // tensor of any shape: a run of its elements in row-major order, at any alignment
  std::span<const std::byte> storage;  // what `storage_crc` is the checksum of
  std::optional<uint32_t> storage_crc;
};

// One parameter. Its pieces are disjoint and cover it.
struct CheckpointTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape sizes{};
  std::vector<TensorPiece> pieces{};
  std::string problem{};  // why its values cannot be used; empty: they can
};

// A plain value beside the parameters: a step number, a learning rate.
using CheckpointValue = torch_pt::ArchiveValue;

// A whole tensor: a view into the files where it is one piece, else an own copy.
class WholeTensor {
 public:
  // kCorrupt when bytes do not have their recorded checksum, kInternal when memory runs out.
  static Result<WholeTensor> Of(const CheckpointTensor& tensor);
  [[nodiscard]] TensorView view() const { return {dtype_, data_, sizes_, strides_}; }

 private:
  DType dtype_ = DType::kFloat32;
  const std::byte* data_ = nullptr;
  Shape sizes_;
  std::vector<int64_t> strides_;
  std::unique_ptr<std::byte[]> own_;
};

// Movable. Tensors and their pieces stay valid while the object lives. Thread-safe for reading.
class Checkpoint {
 public:
  // kNotFound (no such path, a shard is missing), kInvalidArgument (nothing in it that is one),
  // kCorrupt, kUnsupported, kIo. Elements are not read yet.
  static Result<Checkpoint> Open(const std::string& path);

  // In order of name; every name once.
  [[nodiscard]] const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  // In order of name; every name once. Of .npy, .safetensors and merged directories: none.
  [[nodiscard]] const std::vector<CheckpointValue>& values() const { return values_; }
  // Values that are neither among the tensors nor among the plain values.
  [[nodiscard]] uint64_t left_out() const { return left_out_; }
  // What the reader had to decide, one sentence each.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  // The file holds one array and no names (.npy, a .pt of one tensor).
  [[nodiscard]] bool is_array() const {
    return tensors_.size() == 1 && tensors_.front().name.empty();
  }

  // Gives the tensors other names, one each in their order, and brings them into order of these.
  void Rename(const std::vector<std::string>& names);

  // For readers of the formats.
  void Add(CheckpointTensor tensor) { tensors_.push_back(std::move(tensor)); }
  void Add(CheckpointValue value) { values_.push_back(std::move(value)); }
  void LeaveOut(uint64_t count) { left_out_ += count; }
  void Keep(std::shared_ptr<const void> file) { files_.push_back(std::move(file)); }
  // Names the nameless tensors from position `first` on.
  void NameFrom(size_t first, const std::string& name) {
    for (size_t i = first; i < tensors_.size(); ++i) {
      if (tensors_[i].name.empty()) tensors_[i].name = name;
    }
  }
  void Warn(std::string text) { warnings_.push_back(std::move(text)); }

 private:
  void SortByName();

  std::vector<CheckpointTensor> tensors_;
  std::vector<CheckpointValue> values_;
  uint64_t left_out_ = 0;
  std::vector<std::string> warnings_;
  std::vector<std::shared_ptr<const void>> files_;  // own the memory of the pieces
};

// Whether `plumb compare` treats `path` as arrays or checkpoints, not as a recording: by the name
// of a file, by what a directory holds at its top.
bool LooksLikeCheckpoint(const std::string& path);

// The tensors of one file, by its name and contents. Appends to `out`.
Status ReadCheckpointFile(const std::string& path, const std::string& name_prefix, Checkpoint& out);

// One tensor without a name, if the file `path`, which ends in .bin, is of another kind than those
// of torch.save(): elements whose type and sizes are in its name, or a tensor of ATB. False: it is
// neither. kCorrupt: fewer elements than the name says.
Result<bool> ReadPlainBin(const std::string& path, const std::string& prefix, Checkpoint& out);

// mp_rank_* below `path` (an iteration's directory), merged (docs/reference/checkpoints.md).
Status ReadMegatron(const std::string& path, Checkpoint& out);
// A directory with .metadata of torch.distributed.checkpoint.
Status ReadDistributed(const std::string& path, Checkpoint& out);

// Sizes of `pieces` fill `sizes` exactly; a text that says what is wrong, or an empty one.
std::string CoverageProblem(const Shape& sizes, const std::vector<TensorPiece>& pieces);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_CHECKPOINT_H_
