#include "load/graph_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/array/npy.h"
#include "load/name_mapping.h"
#include "record/call_name.h"
#include "record/run_files.h"

namespace plumbline::load {

Result<GraphContent> ReadGraphContent(const std::string& directory,
                                      const std::vector<std::string>& names,
                                      const std::function<void(StatisticRow row)>& visit) {
  const auto is_file = [](const std::string& name) { return name.ends_with(".npy"); };
  GraphContent content;
  content.files = static_cast<uint64_t>(std::ranges::count_if(names, is_file));
  content.has_tensors = content.files > 0;
  if (std::ranges::find(names, run_files::kStatisticCsv) == names.end()) return content;
  uint64_t rows = 0;
  const Status read =
      VisitStatisticTable(JoinPath(directory, run_files::kStatisticCsv), [&](StatisticRow row) {
        ++rows;
        visit(std::move(row));
      });
  if (!read && content.files == 0) return read.error();
  if (!read) {
    content.problem = read.error().message();
  } else if (rows > content.files) {
    content.has_tensors = false;
    if (content.files == 0) return content;
    content.problem =
        fmt::format("{}: {} for {} rows of {}", directory, CountText(content.files, "tensor file"),
                    rows, run_files::kStatisticCsv);
  }
  return content;
}

namespace {

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
class KernelTable {
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
  std::erase_if(directory.names,
                [](const std::string& name) { return !name.ends_with(npy::kEnding); });
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
  std::map<int64_t, KernelTable> names;
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

namespace {

constexpr std::string_view kDirectory = "execution_order";
constexpr std::string_view kOrderName = "ms_execution_order_graph_";
constexpr std::string_view kHistoryName = "ms_global_execution_order_graph_";
constexpr std::string_view kCsv = ".csv";
constexpr std::string_view kHeader = "NodeExecutionOrder-FullNameWithScope";

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines = SplitAt(text, '\n');
  for (std::string_view& line : lines) {
    if (line.ends_with('\r')) line.remove_suffix(1);
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

Result<std::vector<std::string>> ReadKernels(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const std::vector<std::string_view> lines = LinesOf(text);
  if (lines.empty() || lines.front() != kHeader) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: line 1: no header (expected {})", path, kHeader));
  }
  return std::vector<std::string>(lines.begin() + 1, lines.end());
}

Result<std::vector<int64_t>> ReadHistory(const std::string& path) {
  std::vector<int64_t> history;
  if (KindOf(path) != PathKind::kFile) return history;
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const std::vector<std::string_view> lines = LinesOf(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::optional<int64_t> number = ParseNatural(SplitAt(lines[i], ',').front());
    if (!number) {
      return Error(
          ErrorCode::kCorrupt,
          fmt::format("{}: line {}: is \"{}\" (expected an iteration)", path, i + 1, lines[i]));
    }
    history.push_back(*number);
  }
  return history;
}

Status ReadRank(const std::string& directory, int64_t rank, std::vector<ExecutionOrder>& out) {
  const std::string place = JoinPath(directory, kDirectory);
  if (KindOf(place) != PathKind::kDirectory) return {};
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(place));
  for (const std::string& name : names) {
    if (!name.ends_with(kCsv)) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.size() - kCsv.size());
    const std::optional<int64_t> graph = NaturalAfter(kOrderName, stem);
    if (!graph) continue;
    ExecutionOrder order{JoinPath(place, name), rank, *graph, {}, {}};
    PL_TRY_ASSIGN(order.kernels, ReadKernels(order.path));
    const std::string history = fmt::format("{}{}{}", kHistoryName, *graph, kCsv);
    PL_TRY_ASSIGN(order.history, ReadHistory(JoinPath(place, history)));
    out.push_back(std::move(order));
  }
  return {};
}

// Reads the ranks directly below a directory; false when there is none.
Result<bool> ReadRanksBelow(const std::string& directory, std::vector<ExecutionOrder>& out) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  bool found = false;
  for (const std::string& name : names) {
    const std::optional<int64_t> rank = NaturalAfter(kRankDirectory, name);
    if (!rank) continue;
    found = true;
    PL_TRY(ReadRank(JoinPath(directory, name), *rank, out));
  }
  return found;
}

}  // namespace

Result<std::vector<ExecutionOrder>> ReadExecutionOrders(const std::string& root) {
  std::vector<ExecutionOrder> out;
  PL_TRY_ASSIGN(const std::string absolute, AbsolutePath(root));
  if (const auto rank = NaturalAfter(kRankDirectory, BaseName(absolute))) {
    PL_TRY(ReadRank(absolute, *rank, out));
  } else {
    PL_TRY_ASSIGN(const bool has_ranks, ReadRanksBelow(absolute, out));
    if (!has_ranks) {
      PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(absolute));
      for (const std::string& name : names) {
        const std::string child = JoinPath(absolute, name);
        if (KindOf(child) == PathKind::kDirectory) PL_TRY(ReadRanksBelow(child, out));
      }
    }
  }
  std::ranges::sort(out, [](const ExecutionOrder& a, const ExecutionOrder& b) {
    return std::tie(a.rank, a.graph, a.path) < std::tie(b.rank, b.graph, b.path);
  });
  return out;
}

}  // namespace plumbline::load
