#include "load/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "formats/npy.h"
#include "formats/safetensors.h"
#include "formats/torch_archive.h"
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

}  // namespace plumbline::load
