#include "load/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "base/file/file.h"
#include "base/memory/digest.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "formats/acl/acl_types.h"
#include "formats/acl/atb_bin.h"
#include "formats/array/mindspore_ckpt.h"
#include "formats/array/npy.h"
#include "formats/array/safetensors.h"
#include "formats/pytorch/torch_archive.h"
#include "load/detect.h"
#include "record/run_files.h"

namespace plumbline::load {

namespace {

constexpr std::string_view kDistributedMark = ".metadata";
constexpr std::string_view kMegatronMark = "mp_rank_";
constexpr std::string_view kMegatronLatest = "latest_checkpointed_iteration.txt";
constexpr int kMaxDepth = 10;  // of directories of .npy files

bool HasSuffix(std::string_view name, std::initializer_list<std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](std::string_view suffix) { return name.ends_with(suffix); });
}

bool IsTorchFile(std::string_view name) {
  return HasSuffix(name, {".pt", ".pth", ".bin", ".ckpt"});
}

bool IsTensorFile(std::string_view name) {
  return IsTorchFile(name) || HasSuffix(name, {".safetensors", ".npy"});
}

// The names of an index file and the shard of each; kCorrupt when it is no such file.
Result<std::map<std::string, std::string>> ReadIndex(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  std::map<std::string, std::string> shards;
  bool has_map = false;
  json::Reader in(text);
  std::string_view key;
  if (in.EnterObject()) {
    while (in.NextMember(key)) {
      if (key != "weight_map") {
        in.SkipValue();
        continue;
      }
      has_map = true;
      if (!in.EnterObject()) break;
      std::string_view name, shard;
      while (in.NextMember(name)) {
        const std::string owned(name);
        if (!in.ReadString(shard)) break;
        shards[owned] = shard;
      }
    }
  }
  if (in.failed()) return in.error().In(path);
  if (!has_map) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: no weight_map (expected the index of a sharded model)", path));
  }
  return shards;
}

Status ReadIndexed(const std::string& directory, const std::string& index, Checkpoint& out) {
  const std::string path = JoinPath(directory, index);
  PL_TRY_ASSIGN(const auto shards, ReadIndex(path));
  std::set<std::string> files;
  for (const auto& [name, file] : shards) files.insert(file);
  for (const std::string& file : files) {
    if (file.empty() || file.find('/') != std::string::npos) {
      return Error(ErrorCode::kCorrupt, fmt::format("{}: \"{}\" is no file name", path, file));
    }
    PL_TRY(ReadCheckpointFile(JoinPath(directory, file), "", out));
  }
  std::set<std::string_view> present;
  for (const CheckpointTensor& tensor : out.tensors()) present.insert(tensor.name);
  for (const auto& [name, file] : shards) {
    if (present.contains(name)) continue;
    return Error(ErrorCode::kCorrupt, fmt::format("{}: no tensor \"{}\" (expected by {})",
                                                  JoinPath(directory, file), name, index));
  }
  return {};
}

// .npy files at any depth; their paths without the ending are the names.
Status ReadArrays(const std::string& directory, const std::string& prefix, int depth,
                  Checkpoint& out) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string path = JoinPath(directory, name);
    const PathKind kind = KindOf(path);
    if (kind == PathKind::kDirectory && depth < kMaxDepth) {
      PL_TRY(ReadArrays(path, prefix + name + "/", depth + 1, out));
    } else if (kind == PathKind::kFile && name.ends_with(".npy")) {
      const Status read = ReadCheckpointFile(path, prefix + name.substr(0, name.size() - 4), out);
      if (read) continue;
      // One damaged file of many is a row, not the end.
      out.Add(
          {.name = prefix + name.substr(0, name.size() - 4), .problem = read.error().message()});
    }
  }
  return {};
}

Status ReadDirectory(const std::string& path, Checkpoint& out) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(path));
  const auto has = [&](std::string_view name) { return std::ranges::count(names, name) > 0; };
  const auto first_with = [&](std::string_view start, std::string_view end) {
    const auto found = std::ranges::find_if(names, [&](const std::string& name) {
      return name.starts_with(start) && name.ends_with(end);
    });
    return found == names.end() ? std::string() : *found;
  };
  if (has(kDistributedMark)) return ReadDistributed(path, out);
  if (has(kMegatronLatest) || !first_with(kMegatronMark, "").empty()) {
    return ReadMegatron(path, out);
  }
  const std::string index = first_with("", ".index.json");
  if (!index.empty()) return ReadIndexed(path, index, out);
  for (const std::string_view suffix : {".safetensors", ".bin", ".pth", ".pt"}) {
    bool any = false;
    for (const std::string& name : names) {
      if (!name.ends_with(suffix)) continue;
      any = true;
      const size_t before = out.tensors().size();
      PL_TRY(ReadCheckpointFile(JoinPath(path, name), "", out));
      // A file of one tensor gives it no name.
      out.NameFrom(before, name.substr(0, name.size() - suffix.size()));
    }
    if (any) return {};
  }
  PL_TRY(ReadArrays(path, "", 0, out));
  if (!out.tensors().empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: no checkpoint (expected .safetensors, .pt, .bin or .npy files, "
                           "mp_rank_* or .metadata)",
                           path));
}

TensorPiece PieceOf(const std::byte* data, const Shape& sizes, std::vector<int64_t> strides) {
  TensorPiece piece;
  piece.data = data;
  piece.sizes = sizes;
  piece.strides = std::move(strides);
  return piece;
}

Status ReadNpy(const std::string& path, const std::string& prefix, Checkpoint& out) {
  PL_TRY_ASSIGN(npy::NpyFile opened, npy::NpyFile::Open(path));
  const auto file = std::make_shared<const npy::NpyFile>(std::move(opened));
  const TensorView view = file->view();
  CheckpointTensor tensor{.name = prefix, .dtype = view.dtype};
  tensor.sizes.assign(view.sizes.begin(), view.sizes.end());
  tensor.pieces.push_back(
      PieceOf(view.data, tensor.sizes, {view.strides.begin(), view.strides.end()}));
  out.Add(std::move(tensor));
  out.Keep(file);
  return {};
}

Status ReadSafetensors(const std::string& path, const std::string& prefix, Checkpoint& out) {
  PL_TRY_ASSIGN(auto opened, safetensors::SafetensorsFile::Open(path));
  const auto file = std::make_shared<const safetensors::SafetensorsFile>(std::move(opened));
  for (const safetensors::StoredTensor& stored : file->tensors()) {
    CheckpointTensor tensor{.name = prefix + stored.name,
                            .dtype = stored.dtype,
                            .sizes = stored.sizes,
                            .problem = stored.problem};
    tensor.pieces.push_back(
        PieceOf(file->data(stored).data(), stored.sizes, ContiguousStrides(stored.sizes)));
    out.Add(std::move(tensor));
  }
  out.Keep(file);
  return {};
}

Status ReadTorch(const std::string& path, const std::string& prefix, Checkpoint& out) {
  PL_TRY_ASSIGN(auto opened, torch_pt::TorchArchive::Open(path));
  const auto file = std::make_shared<const torch_pt::TorchArchive>(std::move(opened));
  for (const torch_pt::ArchiveTensor& stored : file->tensors()) {
    CheckpointTensor tensor{.name = prefix + stored.name,
                            .dtype = stored.dtype,
                            .sizes = stored.sizes,
                            .problem = stored.problem};
    TensorPiece piece = PieceOf(stored.data, stored.sizes, stored.strides);
    piece.storage = stored.storage;
    piece.storage_crc = stored.storage_crc;
    tensor.pieces.push_back(std::move(piece));
    out.Add(std::move(tensor));
  }
  for (const torch_pt::ArchiveValue& value : file->values()) {
    out.Add(CheckpointValue{prefix + value.name, value.value});
  }
  out.LeaveOut(file->other_count());
  out.Keep(file);
  return {};
}

// Runs of elements are pieces of the tensor as if it had one dimension.
Status ReadMindSpore(const std::string& path, const std::string& prefix, Checkpoint& out) {
  PL_TRY_ASSIGN(auto opened, mindspore_ckpt::CkptFile::Open(path));
  const auto file = std::make_shared<const mindspore_ckpt::CkptFile>(std::move(opened));
  for (const mindspore_ckpt::StoredTensor& stored : file->tensors()) {
    CheckpointTensor tensor{.name = prefix + stored.name,
                            .dtype = stored.dtype,
                            .sizes = stored.sizes,
                            .problem = stored.problem};
    const size_t element = InfoOf(stored.dtype).size_bytes;
    int64_t begin = 0;
    for (const auto run : stored.runs) {
      const auto count = static_cast<int64_t>(run.size() / element);
      tensor.pieces.push_back(PieceOf(run.data(), {count}, {1}));
      tensor.pieces.back().offsets = {begin};
      begin += count;
    }
    out.Add(std::move(tensor));
  }
  for (const mindspore_ckpt::StoredText& stored : file->texts()) {
    out.Add(CheckpointValue{prefix + stored.name, stored.text});
  }
  out.LeaveOut(file->left_out());
  out.Keep(file);
  return {};
}

// MindSpore's files and those of Lightning end in .ckpt.
Result<bool> IsMindSporeFile(const std::string& path) {
  PL_TRY_ASSIGN(const std::string start, ReadStart(path, 1));
  return mindspore_ckpt::CkptFile::LooksLikeOne(std::as_bytes(std::span(start)));
}

// Whether a directory holds .npy files at some depth and no recording on the way there.
enum class Contents : uint8_t { kNothing, kArrays, kRecording };
Contents ContentsOf(const std::string& directory, int depth) {
  const Result<std::vector<std::string>> names = ListDirectory(directory);
  Contents contents = Contents::kNothing;
  if (!names || depth > kMaxDepth) return contents;
  for (const std::string& name : *names) {
    if (name == run_files::kDumpJson || name == run_files::kDebugJson) return Contents::kRecording;
    if (name.ends_with(".npy")) contents = Contents::kArrays;
  }
  for (size_t i = 0; i < names->size() && contents == Contents::kNothing; ++i) {
    const std::string path = JoinPath(directory, (*names)[i]);
    if (KindOf(path) == PathKind::kDirectory) contents = ContentsOf(path, depth + 1);
  }
  return contents;
}

}  // namespace

Status ReadCheckpointFile(const std::string& path, const std::string& name_prefix,
                          Checkpoint& out) {
  if (path.ends_with(".npy")) return ReadNpy(path, name_prefix, out);
  if (path.ends_with(".safetensors")) return ReadSafetensors(path, name_prefix, out);
  if (path.ends_with(".ckpt")) {
    PL_TRY_ASSIGN(const bool is_mindspore, IsMindSporeFile(path));
    if (is_mindspore) return ReadMindSpore(path, name_prefix, out);
  }
  if (path.ends_with(".bin")) {
    PL_TRY_ASSIGN(const bool is_read, ReadPlainBin(path, name_prefix, out));
    if (is_read) return {};
  }
  return ReadTorch(path, name_prefix, out);
}

void Checkpoint::SortByName() {
  std::ranges::stable_sort(tensors_, {}, &CheckpointTensor::name);
  // A name may come from two shards, or from two ways to nest it.
  for (size_t i = 1, same = 1; i < tensors_.size(); ++i) {
    const bool again = tensors_[i].name == tensors_[i - same].name;
    same = again ? same + 1 : 1;
    if (!again) continue;
    warnings_.push_back(fmt::format("\"{}\" occurs more than once", tensors_[i].name));
    tensors_[i].name = fmt::format("{} ({})", tensors_[i].name, same);
  }
  std::ranges::stable_sort(tensors_, {}, &CheckpointTensor::name);
  std::ranges::stable_sort(values_, {}, &CheckpointValue::name);
  for (size_t i = 1, same = 1; i < values_.size(); ++i) {
    same = values_[i].name == values_[i - same].name ? same + 1 : 1;
    if (same > 1) values_[i].name += fmt::format(" ({})", same);
  }
  std::ranges::stable_sort(values_, {}, &CheckpointValue::name);
}

void Checkpoint::Rename(const std::vector<std::string>& names) {
  for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].name = names[i];
  std::ranges::stable_sort(tensors_, {}, &CheckpointTensor::name);
}

Result<Checkpoint> Checkpoint::Open(const std::string& path) {
  Checkpoint checkpoint;
  switch (KindOf(path)) {
    case PathKind::kFile:
      PL_TRY(ReadCheckpointFile(path, "", checkpoint));
      break;
    case PathKind::kDirectory:
      PL_TRY(ReadDirectory(path, checkpoint));
      break;
    case PathKind::kMissing:
      return Error(ErrorCode::kNotFound, fmt::format("{}: no such file or directory", path));
    case PathKind::kOther:
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: neither a file nor a directory", path));
  }
  if (checkpoint.tensors_.empty()) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: holds no tensors", path));
  }
  checkpoint.SortByName();
  return checkpoint;
}

bool LooksLikeCheckpoint(const std::string& path) {
  const PathKind kind = KindOf(path);
  if (kind != PathKind::kDirectory) return IsTensorFile(BaseName(path));
  const Result<std::vector<std::string>> names = ListDirectory(path);
  if (!names) return false;
  const auto any = [&](auto&& test) { return std::ranges::any_of(*names, test); };
  if (any([](const std::string& n) {
        return n == run_files::kDumpJson || n == run_files::kDebugJson;
      })) {
    return false;
  }
  const bool is_marked = any([](const std::string& name) {
    return name == kDistributedMark || name == kMegatronLatest || name.starts_with(kMegatronMark) ||
           name.ends_with(".index.json") || IsTensorFile(name);
  });
  return is_marked || ContentsOf(path, 0) == Contents::kArrays;
}

std::string CoverageProblem(const Shape& sizes, const std::vector<TensorPiece>& pieces) {
  const Result<int64_t> whole = ElementCount(sizes);
  if (!whole) return "its shape makes no sense";
  int64_t sum = 0;
  for (const TensorPiece& piece : pieces) {
    const Result<int64_t> count = ElementCount(piece.sizes);
    if (!count || piece.sizes.size() != sizes.size()) return "a piece of another rank";
    for (size_t d = 0; d < sizes.size(); ++d) {
      const int64_t begin = piece.offsets.empty() ? 0 : piece.offsets[d];
      if (begin < 0 || begin > sizes[d] || piece.sizes[d] > sizes[d] - begin) {
        return "a piece reaches beyond its shape";
      }
    }
    if (*count > *whole - sum) return "its pieces overlap";
    sum += *count;
  }
  if (sum == *whole) return {};
  return fmt::format("only {} of {} elements are stored", sum, *whole);
}

// Files that end in .bin and hold one tensor: elements whose type and sizes are in the name, as
// plumb convert and msaccucmp write them, and those of ATB.

namespace {

// What {name}.{2_3_4}.{float16}.{ND}.bin says.
struct NamedElements {
  int32_t type = 0;
  Shape sizes;
};

std::optional<Shape> SizesIn(std::string_view text) {
  Shape sizes;
  while (!text.empty()) {
    const size_t end = std::min(text.find('_'), text.size());
    const std::optional<int64_t> size = ParseNatural(text.substr(0, end));
    if (!size) return std::nullopt;
    sizes.push_back(*size);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return sizes;
}

// Takes the last part off.
std::string_view TakeEnd(std::string_view& name) {
  const size_t point = name.rfind('.');
  if (point == std::string_view::npos) return {};
  const std::string_view end = name.substr(point + 1);
  name = name.substr(0, point);
  return end;
}

std::optional<NamedElements> ParseName(std::string_view name) {
  TakeEnd(name);  // bin
  const std::string_view format = TakeEnd(name), type = TakeEnd(name), sizes = TakeEnd(name);
  if (format.empty() || type.empty()) return std::nullopt;
  const std::optional<Shape> shape = SizesIn(sizes);
  constexpr int32_t kMostTypes = std::numeric_limits<uint8_t>::max();
  for (int32_t code = 0; shape && code <= kMostTypes; ++code) {
    const acl::TypeInfo* info = acl::FindType(code);
    if (info != nullptr && info->file_name == type) return NamedElements{code, *shape};
  }
  return std::nullopt;
}

void AddTensor(const std::string& prefix, const TensorView& view, Checkpoint& out) {
  CheckpointTensor tensor{.name = prefix, .dtype = view.dtype};
  tensor.sizes.assign(view.sizes.begin(), view.sizes.end());
  TensorPiece piece;
  piece.data = view.data;
  piece.sizes = tensor.sizes;
  piece.strides.assign(view.strides.begin(), view.strides.end());
  tensor.pieces.push_back(std::move(piece));
  out.Add(std::move(tensor));
}

// torch.save() writes a zip archive or a pickle.
bool LooksLikeTorch(std::span<const std::byte> bytes) {
  return (bytes.size() >= 2 && std::memcmp(bytes.data(), "PK", 2) == 0) ||
         (!bytes.empty() && bytes[0] == std::byte{0x80});
}

}  // namespace

Result<bool> ReadPlainBin(const std::string& path, const std::string& prefix, Checkpoint& out) {
  PL_TRY_ASSIGN(const auto file, MappedFile::Open(path));
  const std::span<const std::byte> bytes = file->bytes();
  if (const std::optional<NamedElements> named = ParseName(BaseName(path))) {
    Result<acl::Elements> elements = acl::Decode(named->type, named->sizes, bytes);
    if (!elements) return elements.error().In(path);
    elements->Align();
    const auto kept = std::make_shared<const acl::Elements>(std::move(*elements));
    AddTensor(prefix, kept->view(), out);
    out.Keep(file);
    out.Keep(kept);
    return true;
  }
  if (LooksLikeTorch(bytes)) return false;
  Result<atb::BinFile> opened = atb::BinFile::Open(path);
  if (!opened) return false;
  const auto kept = std::make_shared<const atb::BinFile>(std::move(*opened));
  AddTensor(prefix, kept->view(), out);
  out.Keep(kept);
  return true;
}

// Whole tensors from their pieces.

namespace {

bool IsAligned(const TensorPiece& piece, DType dtype) {
  return reinterpret_cast<uintptr_t>(piece.data) % InfoOf(dtype).size_bytes == 0;
}

Status CheckStored(const TensorPiece& piece) {
  if (!piece.storage_crc || Crc32(piece.storage) == *piece.storage_crc) return {};
  return Error(ErrorCode::kCorrupt,
               "its bytes do not have their recorded checksum. Copy the file again");
}

// Copies a contiguous run of elements into its place in a larger contiguous tensor.
class Placement {
 public:
  Placement(const Shape& whole, size_t element_bytes)
      : strides_(ContiguousStrides(whole)), element_bytes_(element_bytes) {}

  void Copy(const TensorPiece& piece, const std::byte* from, std::byte* to) const {
    if (std::find(piece.sizes.begin(), piece.sizes.end(), 0) != piece.sizes.end()) return;
    CopyDimension(piece, 0, from, to);
  }

 private:
  const std::byte* CopyDimension(const TensorPiece& piece, size_t dimension, const std::byte* from,
                                 std::byte* to) const {
    if (dimension == piece.sizes.size()) {
      std::memcpy(to, from, element_bytes_);
      return from + element_bytes_;
    }
    const int64_t begin = piece.offsets.empty() ? 0 : piece.offsets[dimension];
    const size_t step = static_cast<size_t>(strides_[dimension]) * element_bytes_;
    to += static_cast<size_t>(begin) * step;
    const auto size = static_cast<size_t>(piece.sizes[dimension]);
    if (dimension + 1 == piece.sizes.size()) {
      std::memcpy(to, from, size * element_bytes_);
      return from + size * element_bytes_;
    }
    for (size_t i = 0; i < size; ++i)
      from = CopyDimension(piece, dimension + 1, from, to + i * step);
    return from;
  }

  std::vector<int64_t> strides_;
  size_t element_bytes_;
};

}  // namespace

Result<WholeTensor> WholeTensor::Of(const CheckpointTensor& tensor) {
  if (!tensor.problem.empty()) return Error(ErrorCode::kUnsupported, tensor.problem);
  for (const TensorPiece& piece : tensor.pieces) PL_TRY(CheckStored(piece));
  WholeTensor whole;
  whole.dtype_ = tensor.dtype;
  whole.sizes_ = tensor.sizes;
  if (tensor.pieces.size() == 1 && tensor.pieces[0].sizes == tensor.sizes &&
      IsAligned(tensor.pieces[0], tensor.dtype)) {
    whole.data_ = tensor.pieces[0].data;
    whole.strides_ = tensor.pieces[0].strides;
    return whole;
  }
  const bool is_flat = tensor.pieces.size() > 0 && tensor.pieces[0].sizes.size() == 1;
  PL_TRY_ASSIGN(const int64_t count, ElementCount(tensor.sizes));
  const size_t element_bytes = InfoOf(tensor.dtype).size_bytes;
  const auto elements = static_cast<size_t>(count);
  whole.own_.reset(new (std::nothrow) std::byte[elements * element_bytes]);
  if (whole.own_ == nullptr) {
    return Error(ErrorCode::kInternal, fmt::format("no memory for {} elements", count));
  }
  const Placement placement(is_flat ? Shape{count} : tensor.sizes, element_bytes);
  for (const TensorPiece& piece : tensor.pieces) {
    if (is_flat && piece.strides == std::vector<int64_t>{1}) {
      placement.Copy(piece, piece.data, whole.own_.get());  // at any alignment
      continue;
    }
    PL_TRY_ASSIGN(const Tensor copy,
                  Tensor::Copy({tensor.dtype, piece.data, piece.sizes, piece.strides}));
    placement.Copy(piece, copy.view().data, whole.own_.get());
  }
  whole.data_ = whole.own_.get();
  whole.strides_ = ContiguousStrides(tensor.sizes);
  return whole;
}

}  // namespace plumbline::load
