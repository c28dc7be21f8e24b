#include "load/checkpoint_megatron.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/file/file.h"
#include "base/memory/bytes.h"
#include "base/text/text_parts.h"
#include "formats/pytorch/torch_archive.h"
#include "formats/pytorch/torch_pickle.h"
#include "load/checkpoint.h"

namespace plumbline::load {

namespace {

// Applied in this order, each to the result of the one before.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kReplacements = {{
    {"self_attention.linear_qkv.layer_norm_", "input_layernorm."},
    {"language_model.", ""},
    {"encoder", "decoder"},
    {".input_norm.", ".input_layernorm."},
    {"query_key_value", "linear_qkv"},
    {".dense.", ".linear_proj."},
    {"post_attention_norm", "pre_mlp_layernorm"},
    {"dense_h_to_4h", "linear_fc1"},
    {"dense_4h_to_h", "linear_fc2"},
    {"mlp.local_experts", "mlp.experts.local_experts"},
    {"final_norm", "final_layernorm"},
    {"word_embeddings_for_head", "output_layer"},
}};

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

bool Has(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

// The digits that begin at `begin`, when there are some.
std::optional<NumberInName> NumberAt(std::string_view name, size_t begin) {
  NumberInName number{.begin = begin};
  const char* const first = name.data() + begin;
  const auto parsed = std::from_chars(first, name.data() + name.size(), number.value);
  if (parsed.ec != std::errc() || number.value < 0) return std::nullopt;
  number.length = static_cast<size_t>(parsed.ptr - first);
  return number;
}

}  // namespace

std::string CommonMegatronName(std::string name) {
  for (const auto& [from, to] : kReplacements) ReplaceAll(name, from, to);
  return name;
}

TensorSplit SplitOf(std::string_view name) {
  // The norm in front of a fused layer carries the layer's name, and every rank has all of it.
  if (Has(name, "layer_norm") || Has(name, "layernorm")) return TensorSplit::kReplicated;
  for (const std::string_view part :
       {"linear_qkv", "linear_fc1", "word_embeddings.weight", "output_layer.weight"}) {
    if (Has(name, part)) return TensorSplit::kRows;
  }
  for (const std::string_view part : {"linear_fc2.weight", "linear_proj.weight"}) {
    if (Has(name, part)) return TensorSplit::kColumns;
  }
  return TensorSplit::kReplicated;
}

bool IsFirstLinear(std::string_view name) { return Has(name, "linear_fc1"); }

std::optional<NumberInName> LayerIn(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = name.find(kLayers);
  return at == name.npos ? std::nullopt : NumberAt(name, at + kLayers.size());
}

std::optional<NumberInName> ExpertIn(std::string_view name) {
  constexpr std::string_view kExperts = "experts.";
  for (size_t at = name.find(kExperts); at != name.npos; at = name.find(kExperts, at + 1)) {
    if (auto number = NumberAt(name, at + kExperts.size())) return number;
  }
  if (!Has(name, kExperts)) return std::nullopt;
  for (const std::string_view part : {".weight", ".bias"}) {
    const size_t at = name.rfind(part);
    if (at == name.npos) continue;
    const auto number = NumberAt(name, at + part.size());
    if (number && number->begin + number->length == name.size()) return number;
  }
  return std::nullopt;
}

std::string WithNumber(std::string name, const NumberInName& place, int64_t value) {
  return name.replace(place.begin, place.length, std::to_string(value));
}

// Megatron directories: mp_rank_TT[_PPP][_EEE]/model_optim_rng.pt, one file per rank of tensor,
// pipeline and expert parallelism, merged into the parameters of the whole model.

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

// Directories of torch.distributed.checkpoint: .metadata says which tensors there are and where
// their chunks lie in the .distcp files; each chunk is a small file of torch.save.

namespace {

using torch_pt::PickleMachine;
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
