// Directories of torch.distributed.checkpoint: .metadata says which tensors there are and where
// their chunks lie in the .distcp files; each chunk is a small file of torch.save.

#include <fmt/format.h>

#include <map>
#include <unordered_map>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "formats/torch_archive.h"
#include "formats/torch_globals.h"
#include "formats/torch_pickle.h"
#include "load/checkpoint.h"

namespace plumbline::load {
namespace {

using torch_pt::PickleMachine;
using torch_pt::PickleNode;
using Kind = PickleNode::Kind;

class MetadataReader {
 public:
  MetadataReader(std::string directory, const PickleMachine& machine, Checkpoint& out)
      : directory_(std::move(directory)), machine_(machine), out_(out) {}

  Status Run() {
    const PickleNode& root = machine_.result();
    const PickleNode* tensors = machine_.Find(root, "state_dict_metadata");
    const PickleNode* chunks = machine_.Find(root, "storage_data");
    if (!IsDict(tensors) || !IsDict(chunks)) {
      return Error(ErrorCode::kUnsupported,
                   "no state_dict_metadata and storage_data (expected the metadata of "
                   "torch.distributed.checkpoint)");
    }
    for (size_t i = 0; i + 1 < tensors->items.size(); i += 2) {
      AddTensor(machine_.node(tensors->items[i]), machine_.node(tensors->items[i + 1]));
    }
    for (size_t i = 0; i + 1 < chunks->items.size(); i += 2) {
      PL_TRY(AddChunk(machine_.node(chunks->items[i]), machine_.node(chunks->items[i + 1])));
    }
    for (auto& [name, tensor] : tensors_) {
      if (tensor.problem.empty()) tensor.problem = CoverageProblem(tensor.sizes, tensor.pieces);
      out_.Add(std::move(tensor));
    }
    return {};
  }

 private:
  static bool IsDict(const PickleNode* node) {
    return node != nullptr && node->kind == Kind::kDict;
  }

  // torch.Size, a tuple of non-negative integers; nothing for anything else.
  [[nodiscard]] std::optional<Shape> ShapeOf(const PickleNode* node) const {
    if (node == nullptr || (node->kind != Kind::kTuple && node->kind != Kind::kList)) return {};
    Shape sizes;
    for (const uint32_t item : node->items) {
      const PickleNode& size = machine_.node(item);
      if (size.kind != Kind::kInt || size.number < 0) return std::nullopt;
      sizes.push_back(size.number);
    }
    return sizes;
  }

  // Of TensorProperties: the first part of a state that is a tuple, or the key dtype.
  [[nodiscard]] std::optional<DType> DTypeOf(const PickleNode* properties) const {
    if (properties == nullptr || properties->items.empty()) return std::nullopt;
    const PickleNode* dtype = machine_.Find(*properties, "dtype");
    const PickleNode& state = machine_.node(properties->items.back());
    if (dtype == nullptr && state.kind == Kind::kTuple && !state.items.empty()) {
      dtype = &machine_.node(state.items.front());
    }
    if (dtype == nullptr || dtype->kind != Kind::kGlobal) return std::nullopt;
    return torch_pt::TorchDType(dtype->module, dtype->text);
  }

  void AddTensor(const PickleNode& key, const PickleNode& value) {
    // Other values are pickles of their own.
    if (key.kind != Kind::kText || value.text != "TensorStorageMetadata") return out_.LeaveOut(1);
    CheckpointTensor tensor{.name = std::string(key.text)};
    const std::optional<Shape> sizes = ShapeOf(machine_.Find(value, "size"));
    const std::optional<DType> dtype = DTypeOf(machine_.Find(value, "properties"));
    if (sizes) tensor.sizes = *sizes;
    if (dtype) tensor.dtype = *dtype;
    if (!sizes || !dtype) tensor.problem = "its shape or dtype is not recorded";
    tensors_.emplace(tensor.name, std::move(tensor));
  }

  Status AddChunk(const PickleNode& index, const PickleNode& place) {
    const PickleNode* name = machine_.Find(index, "fqn");
    if (name == nullptr || name->kind != Kind::kText) return {};
    const auto found = tensors_.find(std::string(name->text));
    if (found == tensors_.end()) return {};
    CheckpointTensor& tensor = found->second;
    const PickleNode* file = machine_.Find(place, "relative_path");
    const PickleNode* offset = machine_.Find(place, "offset");
    const PickleNode* length = machine_.Find(place, "length");
    const PickleNode* transforms = machine_.Find(place, "transform_descriptors");
    const bool complete = file != nullptr && file->kind == Kind::kText && offset != nullptr &&
                          offset->kind == Kind::kInt && length != nullptr &&
                          length->kind == Kind::kInt;
    if (!complete || file->text.find('/') != std::string_view::npos) {
      return Error(ErrorCode::kCorrupt, fmt::format("\"{}\": its place is damaged", tensor.name));
    }
    if (transforms != nullptr && !transforms->items.empty()) {
      tensor.problem = "stored with transforms, such as compression, which are not read";
      return {};
    }
    PL_TRY_ASSIGN(const auto bytes, FileBytes(std::string(file->text)));
    const auto begin = static_cast<uint64_t>(offset->number);
    const auto size = static_cast<uint64_t>(length->number);
    if (begin > bytes.size() || size > bytes.size() - begin) {
      tensor.problem = fmt::format("{} is cut (expected {} bytes at {}, has {})", file->text, size,
                                   begin, bytes.size());
      return {};
    }
    AddPiece(bytes.subspan(begin, size), ShapeOf(machine_.Find(index, "offset")), tensor);
    return {};
  }

  static void AddPiece(std::span<const std::byte> bytes, const std::optional<Shape>& offset,
                       CheckpointTensor& tensor) {
    const auto archive = torch_pt::TorchArchive::Parse(bytes);
    if (!archive || archive->tensors().size() != 1) {
      tensor.problem = archive ? "a chunk of it is no tensor" : archive.error().message();
      return;
    }
    const torch_pt::ArchiveTensor& stored = archive->tensors().front();
    if (!stored.problem.empty() || stored.dtype != tensor.dtype) {
      tensor.problem = stored.problem.empty() ? "a chunk of it has another dtype" : stored.problem;
      return;
    }
    TensorPiece& piece = tensor.pieces.emplace_back();
    piece.data = stored.data;
    piece.sizes = stored.sizes;
    piece.strides = stored.strides;
    piece.storage = stored.storage;
    piece.storage_crc = stored.storage_crc;
    piece.offsets = offset ? *offset : Shape(stored.sizes.size(), 0);
    if (piece.offsets.size() != piece.sizes.size()) tensor.problem = "a chunk of another rank";
  }

  Result<std::span<const std::byte>> FileBytes(const std::string& name) {
    auto& file = files_[name];
    if (file == nullptr) {
      PL_TRY_ASSIGN(file, MappedFile::Open(JoinPath(directory_, name)));
      out_.Keep(file);
    }
    return file->bytes();
  }

  std::string directory_;
  const PickleMachine& machine_;
  Checkpoint& out_;
  std::unordered_map<std::string, std::shared_ptr<const MappedFile>> files_;
  std::map<std::string, CheckpointTensor> tensors_;
};

}  // namespace

Status ReadDistributed(const std::string& path, Checkpoint& out) {
  const std::string metadata = JoinPath(path, ".metadata");
  PL_TRY_ASSIGN(const auto file, MappedFile::Open(metadata));
  ByteReader in(file->bytes());
  PickleMachine machine(torch_pt::PickleScope::kCheckpoint);
  if (const Status read = machine.Run(in); !read) return read.error().In(metadata);
  const Status status = MetadataReader(path, machine, out).Run();
  // Errors of the chunks' files name these.
  const bool names_file = !status && status.error().message().starts_with(path);
  return status || names_file ? status : status.error().In(metadata);
}

}  // namespace plumbline::load
