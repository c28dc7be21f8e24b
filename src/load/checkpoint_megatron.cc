// Megatron directories: mp_rank_TT[_PPP][_EEE]/model_optim_rng.pt, one file per rank of tensor,
// pipeline and expert parallelism, merged into the parameters of the whole model.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/text_parts.h"
#include "formats/torch_archive.h"
#include "load/checkpoint.h"
#include "load/megatron_names.h"

namespace plumbline::load {
namespace {

using torch_pt::ArchiveTensor;
using torch_pt::PickleNode;
using torch_pt::TorchArchive;

constexpr std::string_view kRankPrefix = "mp_rank_";
constexpr std::string_view kFileName = "model_optim_rng.pt";
constexpr std::string_view kLatest = "latest_checkpointed_iteration.txt";
constexpr int64_t kMaxRanks = 1 << 20;

// How the model is spread out, from the settings that every file holds.
struct Sizes {
  int64_t tensor = 1, pipeline = 1, expert = 1, experts = 0;
  bool is_gated = false;  // the first linear layer of an MLP holds two matrices
};

struct RankFile {
  int64_t tensor = 0, pipeline = 0, expert = 0;
  std::string path;
  std::shared_ptr<const TorchArchive> archive;
};

// One parameter of one file, under its final name.
struct Part {
  int64_t tensor_rank = 0;
  const ArchiveTensor* stored = nullptr;
};

// One stage's parameters before layers are numbered: by (chunk of virtual pipeline, pipeline rank).
using StageKey = std::pair<int64_t, int64_t>;

struct Stage {
  std::map<std::string, std::vector<Part>> parts;  // by common name, layers counted in the stage
  int64_t first_layer = INT64_MAX, last_layer = -1;
};

Result<std::string> IterationDirectory(const std::string& path) {
  const std::string latest = JoinPath(path, kLatest);
  if (KindOf(latest) != PathKind::kFile) return path;
  PL_TRY_ASSIGN(std::string text, ReadFile(latest));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  if (text == "release") return JoinPath(path, text);
  if (const auto number = ParseInteger(text))
    return JoinPath(path, fmt::format("iter_{:07d}", *number));
  return Error(ErrorCode::kCorrupt,
               fmt::format("{}: \"{}\" is no iteration (expected a number or release)", latest,
                           text.substr(0, 40)));
}

int64_t Setting(const TorchArchive& archive, std::string_view name, int64_t otherwise) {
  const PickleNode* args = archive.machine().Find(archive.root(), "args");
  const PickleNode* value = args == nullptr ? nullptr : archive.machine().Find(*args, name);
  const bool is_number = value != nullptr && (value->kind == PickleNode::Kind::kInt ||
                                              value->kind == PickleNode::Kind::kBool);
  return is_number ? value->number : otherwise;
}

Result<Sizes> ReadSizes(const TorchArchive& archive, const std::string& path) {
  Sizes sizes;
  sizes.tensor = Setting(archive, "tensor_model_parallel_size", 1);
  sizes.pipeline = Setting(archive, "pipeline_model_parallel_size", 1);
  sizes.expert = Setting(archive, "expert_model_parallel_size", 1);
  sizes.experts = Setting(archive, "num_experts", 0);
  sizes.is_gated =
      Setting(archive, "swiglu", 0) != 0 || Setting(archive, "gated_linear_unit", 0) != 0;
  const auto good = [](int64_t size) { return size >= 1 && size <= kMaxRanks; };
  if (good(sizes.tensor) && good(sizes.pipeline) && good(sizes.expert)) return sizes;
  return Error(ErrorCode::kCorrupt, fmt::format("{}: its parallel sizes make no sense", path));
}

// Numbers of the directory's name; which ones there are depends on the sizes.
std::optional<RankFile> ParseRank(std::string_view name, const Sizes& sizes) {
  std::vector<int64_t> numbers;
  std::string_view rest = name.substr(kRankPrefix.size());
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('_'), rest.size());
    const auto number = ParseInteger(rest.substr(0, end));
    if (!number || *number < 0) return std::nullopt;
    numbers.push_back(*number);
    rest = rest.substr(std::min(end + 1, rest.size()));
  }
  const bool has_pipeline = sizes.pipeline > 1, has_expert = sizes.expert > 1;
  if (numbers.size() != 1U + (has_pipeline ? 1U : 0U) + (has_expert ? 1U : 0U)) return std::nullopt;
  RankFile file;
  file.tensor = numbers[0];
  if (has_pipeline) file.pipeline = numbers[1];
  if (has_expert) file.expert = numbers.back();
  return file;
}

class MegatronReader {
 public:
  MegatronReader(std::string path, Checkpoint& out) : path_(std::move(path)), out_(out) {}

  Status Run() {
    PL_TRY(OpenFiles());
    for (const RankFile& file : files_) AddFile(file);
    PL_TRY(Merge());
    for (const RankFile& file : files_) {
      out_.LeaveOut(file.archive->values().size() + file.archive->other_count());
      out_.Keep(file.archive);
    }
    return {};
  }

 private:
  Status OpenFiles() {
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(path_));
    for (const std::string& name : names) {
      if (!name.starts_with(kRankPrefix)) continue;
      const std::string path = JoinPath(JoinPath(path_, name), kFileName);
      PL_TRY_ASSIGN(TorchArchive opened, TorchArchive::Open(path));
      auto archive = std::make_shared<const TorchArchive>(std::move(opened));
      if (files_.empty()) {
        PL_TRY_ASSIGN(sizes_, ReadSizes(*archive, path));
      }
      std::optional<RankFile> file = ParseRank(name, sizes_);
      if (!file) {
        return Error(
            ErrorCode::kCorrupt,
            fmt::format("{}: its name does not fit {} tensor, {} pipeline and {} expert "
                        "ranks",
                        JoinPath(path_, name), sizes_.tensor, sizes_.pipeline, sizes_.expert));
      }
      file->path = path;
      file->archive = std::move(archive);
      files_.push_back(std::move(*file));
    }
    const auto expected = static_cast<size_t>(sizes_.tensor * sizes_.pipeline * sizes_.expert);
    if (files_.empty()) {
      return Error(ErrorCode::kNotFound, fmt::format("{}: no mp_rank_* directory", path_));
    }
    if (files_.size() == expected) return {};
    return Error(
        ErrorCode::kNotFound,
        fmt::format("{}: {} rank directories (expected {} = {} tensor x {} pipeline x {} "
                    "expert ranks). Copy the missing ones.",
                    path_, files_.size(), expected, sizes_.tensor, sizes_.pipeline, sizes_.expert));
  }

  void AddFile(const RankFile& file) {
    for (const ArchiveTensor& stored : file.archive->tensors()) {
      // model.x or, for virtual stage 1, model1.x; everything else is no parameter.
      const size_t dot = stored.name.find('.');
      if (!stored.name.starts_with("model") || dot == std::string::npos) continue;
      const std::string_view digits = std::string_view(stored.name).substr(5, dot - 5);
      const std::optional<int64_t> chunk = digits.empty() ? 0 : ParseInteger(digits);
      if (!chunk || stored.name.ends_with("_extra_state")) continue;
      std::string name = CommonMegatronName(stored.name.substr(dot + 1));
      const auto expert = ExpertIn(name);
      if (expert && sizes_.expert > 1 && sizes_.experts > 0) {
        const int64_t per_rank = sizes_.experts / sizes_.expert;
        name = WithNumber(name, *expert, expert->value + file.expert * per_rank);
      }
      Stage& stage = stages_[{*chunk, file.pipeline}];
      if (const auto layer = LayerIn(name)) {
        stage.first_layer = std::min(stage.first_layer, layer->value);
        stage.last_layer = std::max(stage.last_layer, layer->value);
      }
      // What is no expert's own is the same on all expert ranks.
      std::vector<Part>& parts = stage.parts[name];
      const bool known = std::ranges::any_of(
          parts, [&](const Part& part) { return part.tensor_rank == file.tensor; });
      if (!known) parts.push_back({file.tensor, &stored});
    }
  }

  Status Merge() {
    int64_t layers_before = 0;
    std::map<std::string, bool> names;
    for (auto& [key, stage] : stages_) {
      // Stages may differ in size. Numbers that do not begin at 0 count the whole model already.
      const bool is_global = stage.first_layer > 0 && layers_before > 0;
      const int64_t shift = is_global ? 0 : layers_before;
      for (auto& [local, parts] : stage.parts) {
        std::string name = local;
        if (const auto layer = LayerIn(name)) name = WithNumber(name, *layer, layer->value + shift);
        // The last stage has its own copy of tied embeddings.
        if (!names.try_emplace(name, true).second) continue;
        out_.Add(MergeParts(name, parts));
      }
      layers_before = std::max(layers_before, stage.last_layer + 1 + shift);
    }
    if (!names.empty()) return {};
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: no parameters (expected them under model)", path_));
  }

  CheckpointTensor MergeParts(const std::string& name, std::vector<Part>& parts) {
    std::ranges::sort(parts, {}, &Part::tensor_rank);
    const ArchiveTensor& first = *parts.front().stored;
    CheckpointTensor tensor{.name = name, .dtype = first.dtype, .sizes = first.sizes};
    for (const Part& part : parts) {
      if (tensor.problem.empty()) tensor.problem = part.stored->problem;
    }
    if (!tensor.problem.empty()) return tensor;
    const TensorSplit split = SplitOf(name);
    const size_t axis = split == TensorSplit::kColumns ? 1 : 0;
    if (split == TensorSplit::kReplicated || parts.size() == 1 || first.sizes.size() <= axis) {
      WarnUnlessEqual(name, parts);
      tensor.pieces.push_back(PieceOf(first));
      return tensor;
    }
    Concatenate(parts, axis, sizes_.is_gated && IsFirstLinear(name), tensor);
    tensor.problem = CoverageProblem(tensor.sizes, tensor.pieces);
    return tensor;
  }

  static TensorPiece PieceOf(const ArchiveTensor& stored) {
    TensorPiece piece;
    piece.data = stored.data;
    piece.sizes = stored.sizes;
    piece.strides = stored.strides;
    piece.offsets.assign(stored.sizes.size(), 0);
    piece.storage = stored.storage;
    piece.storage_crc = stored.storage_crc;
    return piece;
  }

  // Rows or columns of rank 0, 1, ... one after the other; of a gated layer the halves of each.
  static void Concatenate(const std::vector<Part>& parts, size_t axis, bool is_gated,
                          CheckpointTensor& tensor) {
    int64_t whole = 0;
    for (const Part& part : parts) {
      whole += part.stored->sizes.size() > axis ? part.stored->sizes[axis] : 0;
    }
    tensor.sizes[axis] = whole;
    int64_t at = 0;
    for (const Part& part : parts) {
      TensorPiece piece = PieceOf(*part.stored);
      if (part.stored->dtype != tensor.dtype || piece.sizes.size() <= axis) {
        tensor.problem = "its parts differ in dtype or rank";
        return;
      }
      const int64_t size = piece.sizes[axis];
      if (!is_gated || size % 2 != 0) {
        piece.offsets[axis] = at;
        at += size;
        tensor.pieces.push_back(std::move(piece));
        continue;
      }
      const int64_t half = size / 2;
      TensorPiece second = piece;
      piece.sizes[axis] = second.sizes[axis] = half;
      piece.offsets[axis] = at;
      second.offsets[axis] = whole / 2 + at;
      const auto step = static_cast<size_t>(half * piece.strides[axis]);
      second.data += step * InfoOf(tensor.dtype).size_bytes;
      at += half;
      tensor.pieces.push_back(std::move(piece));
      tensor.pieces.push_back(std::move(second));
    }
  }

  void WarnUnlessEqual(const std::string& name, const std::vector<Part>& parts) {
    const ArchiveTensor& first = *parts.front().stored;
    for (const Part& part : parts) {
      const ArchiveTensor& other = *part.stored;
      const bool equal = other.dtype == first.dtype && other.sizes == first.sizes &&
                         other.view().is_contiguous() && first.view().is_contiguous() &&
                         std::memcmp(other.data, first.data, first.view().size_bytes()) == 0;
      if (equal) continue;
      out_.Warn(
          fmt::format("\"{}\" differs between tensor parallel ranks 0 and {}; that of rank 0 "
                      "is compared",
                      name, part.tensor_rank));
      return;
    }
  }

  std::string path_;
  Checkpoint& out_;
  Sizes sizes_;
  std::vector<RankFile> files_;
  std::map<StageKey, Stage> stages_;
};

}  // namespace

Status ReadMegatron(const std::string& path, Checkpoint& out) {
  PL_TRY_ASSIGN(const std::string directory, IterationDirectory(path));
  if (KindOf(directory) != PathKind::kDirectory) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no such directory (named by {})", directory, kLatest));
  }
  if (KindOf(JoinPath(directory, ".metadata")) == PathKind::kFile) {
    return ReadDistributed(directory, out);
  }
  return MegatronReader(directory, out).Run();
}

}  // namespace plumbline::load
