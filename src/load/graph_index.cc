#include "load/graph_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "base/parallel.h"
#include "base/text_parts.h"
#include "formats/npy.h"
#include "load/execution_order.h"
#include "load/graph_content.h"
#include "load/name_mapping.h"
#include "record/graph_name.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

constexpr std::string_view kNpy = ".npy";
constexpr std::string_view kConstants = "constants";

// The spelling of the dtype table, where it has one. The result is static, or `text` itself.
std::string_view DTypeNameOf(std::string_view text) {
  if (const auto dtype = ParseDType(text)) return InfoOf(*dtype).name;
  if (text == "Int4") return "int4";
  if (text == "Uint1") return "uint1";
  return text;
}

void ReadHeader(const std::string& path, IndexedTensor& tensor) {
  const Result<npy::NpyFile> file = npy::NpyFile::Open(path);
  if (!file) {
    tensor.dtype = kUnreadableDType;
    return;
  }
  const TensorView view = file->view();
  tensor.shape.emplace(view.sizes.begin(), view.sizes.end());
  if (tensor.dtype.empty()) tensor.dtype = InfoOf(view.dtype).name;
}

// Full names of the kernels of one rank by what dumps may call them; empty where several kernels
// are called so.
class KernelNames {
 public:
  void Add(const std::string& full) {
    Put(MangledKernel(full), full);
    const size_t slash = full.rfind('/');
    if (slash != std::string::npos) Put(full.substr(slash + 1), full);
  }
  [[nodiscard]] std::string_view Find(std::string_view name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? std::string_view() : std::string_view(*found->second);
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  void Put(std::string name, const std::string& full) {
    static const std::string kAmbiguous;
    const auto [at, is_new] = names_.try_emplace(std::move(name), &full);
    if (!is_new && *at->second != full) at->second = &kAmbiguous;
  }

  std::unordered_map<std::string, const std::string*, Hash, std::equal_to<>> names_;
};

// A kernel has a row for each of its tensors, and kernels share types: one copy of each text.
class KeptTexts {
 public:
  explicit KeptTexts(std::deque<std::string>& texts) : texts_(texts) {}

  std::string_view Of(std::string_view text) {
    const auto at = known_.find(text);
    return at != known_.end() ? *at : *known_.insert(texts_.emplace_back(text)).first;
  }

 private:
  std::deque<std::string>& texts_;
  std::unordered_set<std::string_view> known_;
};

}  // namespace

Result<GraphIndex> GraphIndex::Read(const std::string& root, bool reads_headers) {
  GraphIndex index;
  VisitGraphDirectories(root, [&](GraphDirectory place, std::vector<std::string> names) {
    index.directories_.push_back({std::move(place), std::move(names), {}});
  });
  std::ranges::sort(index.directories_, [](const Directory& a, const Directory& b) {
    return std::tie(a.place.rank, a.place.step, a.place.path) <
           std::tie(b.place.rank, b.place.step, b.place.path);
  });
  if (index.directories_.empty()) {
    return Error(
        KindOf(root) == PathKind::kMissing ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
        fmt::format("{}: no static-graph dump (expected .npy files of kernels or "
                    "statistic.csv in rank_0/net/graph/step)",
                    root));
  }
  index.AddConstants();
  for (size_t i = 0; i < index.directories_.size(); ++i) {
    PL_TRY(index.AddDirectory(i, reads_headers));
  }
  index.ResolveKernels(root);
  return index;
}

void GraphIndex::AddConstants() {
  std::set<std::string> known;
  for (size_t i = 0, count = directories_.size(); i < count; ++i) {
    GraphDirectory place = directories_[i].place;
    place.path = JoinPath(plumbline::DirectoryOf(place.path), kConstants);
    place.step = kEveryStep;
    if (!known.insert(place.path).second || KindOf(place.path) != PathKind::kDirectory) continue;
    auto names = ListDirectory(place.path);
    if (names) directories_.push_back({std::move(place), *std::move(names), {}});
  }
}

Status GraphIndex::AddDirectory(size_t number, bool reads_headers) {
  Directory& directory = directories_[number];
  const std::string& path = directory.place.path;
  const size_t first = tensors_.size();
  KeptTexts kept(texts_);
  PL_TRY_ASSIGN(const GraphContent content,
                ReadGraphContent(path, directory.names, [&](StatisticRow row) {
                  std::string_view dtype = DTypeNameOf(row.tensor.dtype_text);
                  if (dtype.data() == row.tensor.dtype_text.data()) dtype = kept.Of(dtype);
                  tensors_.push_back({number, kept.Of(row.op_name), kept.Of(row.op_type),
                                      row.is_output, row.slot, row.timestamp, dtype,
                                      std::move(row.tensor.shape), run_files::kStatisticCsv});
                }));
  if (!content.has_tensors) {
    left_out_ += content.files;
    SortFrom(first);
    return {};
  }
  tensors_.resize(first);
  std::erase_if(directory.names, [](const std::string& name) { return !name.ends_with(kNpy); });
  return AddFiles(number, reads_headers);
}

Status GraphIndex::AddFiles(size_t number, bool reads_headers) {
  Directory& directory = directories_[number];
  const std::string& path = directory.place.path;
  PL_TRY_ASSIGN(const NameMapping mapping, NameMapping::Read(path));
  if (mapping.size() > 0) directory.full_names.resize(directory.names.size());
  const size_t first = tensors_.size();
  tensors_.resize(first + directory.names.size());
  constexpr size_t kBlock = 256;
  ParallelBlocks(directory.names.size(), kBlock, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const bool is_mapped = !directory.full_names.empty();
      if (is_mapped) directory.full_names[i] = mapping.NameOf(directory.names[i]);
      const auto parts = ParseKernelFile(is_mapped ? directory.full_names[i] : directory.names[i]);
      if (!parts) continue;
      tensors_[first + i] = {number,
                             parts->op_name,
                             parts->op_type,
                             parts->is_output,
                             parts->slot,
                             parts->timestamp,
                             DTypeNameOf(parts->dtype),
                             std::nullopt,
                             directory.names[i]};
      if (reads_headers) ReadHeader(JoinPath(path, directory.names[i]), tensors_[first + i]);
    }
  });
  const auto others =
      std::remove_if(tensors_.begin() + static_cast<ptrdiff_t>(first), tensors_.end(),
                     [](const IndexedTensor& one) { return one.file.empty(); });
  left_out_ += static_cast<uint64_t>(tensors_.end() - others);
  tensors_.erase(others, tensors_.end());
  SortFrom(first);
  return {};
}

void GraphIndex::SortFrom(size_t first) {
  std::stable_sort(tensors_.begin() + static_cast<ptrdiff_t>(first), tensors_.end(),
                   [](const IndexedTensor& a, const IndexedTensor& b) {
                     return std::tie(a.timestamp, a.is_output, a.slot) <
                            std::tie(b.timestamp, b.is_output, b.slot);
                   });
}

void GraphIndex::ResolveKernels(const std::string& root) {
  // Without tables, or with damaged ones, names stay as the dump has them.
  const auto orders = ReadExecutionOrders(root);
  if (!orders) return;
  std::map<int64_t, KernelNames> names;
  for (const ExecutionOrder& order : *orders) {
    for (const std::string& kernel : order.kernels) {
      names[order.rank].Add(texts_.emplace_back(kernel));
    }
  }
  for (IndexedTensor& tensor : tensors_) {
    const auto found = names.find(DirectoryOf(tensor).rank);
    if (found == names.end()) continue;
    const std::string_view full = found->second.Find(tensor.kernel);
    if (!full.empty()) tensor.kernel = full;
  }
}

std::string GraphIndex::PathOf(const IndexedTensor& tensor) const {
  return JoinPath(DirectoryOf(tensor).path, tensor.file);
}

}  // namespace plumbline::load
