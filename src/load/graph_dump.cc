#include "load/graph_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/array/npy.h"
#include "load/detect.h"
#include "load/graph_index.h"
#include "load/name_mapping.h"
#include "record/call_name.h"
#include "record/run_files.h"

namespace plumbline::load {

// The files of a static-graph dump.

namespace {

constexpr size_t kMaxProblems = 20;

// One tensor of one kernel: a file, or a row of statistic.csv. There may be millions: texts that
// many share are pointers into Reader::texts_, and the tensor's record is made with its call.
struct Entry {
  const std::string *op_type = nullptr, *op_name = nullptr, *dtype = nullptr;
  const std::string *task = nullptr, *stream = nullptr;  // of rows
  int64_t timestamp = 0, slot = 0;
  uint32_t directory = 0, occurrence = 0;
  bool is_output = false;
  Shape shape;
  Statistic max, min, mean, norm;
  std::string text;  // name of the file; digest of a row
};

// Grows without a second copy of what is there, and in blocks large enough for their memory to go
// back to the system.
class Entries {
 public:
  Entry& Add() {
    if (size_ % kBlock == 0) blocks_.emplace_back().reserve(kBlock);
    ++size_;
    return blocks_.back().emplace_back();
  }
  void KeepFirst(size_t count) {
    while (blocks_.size() * kBlock >= count + kBlock) blocks_.pop_back();
    if (!blocks_.empty()) blocks_.back().resize(count - (blocks_.size() - 1) * kBlock);
    size_ = count;
  }
  Entry& operator[](size_t i) { return blocks_[i / kBlock][i % kBlock]; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  static constexpr size_t kBlock = 4096;
  std::vector<std::vector<Entry>> blocks_;
  size_t size_ = 0;
};

// Element types that are no row of the dtype table, with which a file name may end.
bool IsDTypeName(std::string_view text) {
  const std::string lower = LowerCase(text);  // as the last file's, which ParseDType() remembers
  return ParseDType(lower) || ParseDType(text) || lower == "int4" || lower == "uint1";
}

// Takes the last part off `rest`.
std::string_view TakeLast(std::string_view& rest) {
  const size_t dot = rest.rfind('.');
  const size_t from = dot == std::string_view::npos ? 0 : dot + 1;
  const std::string_view part = rest.substr(from);
  rest.remove_suffix(rest.size() - (dot == std::string_view::npos ? 0 : dot));
  return part;
}

class Reader {
 public:
  Reader(const std::vector<std::string>& directories, GraphRecords& records)
      : directories_(directories), records_(records) {}

  Status ReadDirectory(size_t index) {
    const std::string& directory = directories_[index];
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
    const size_t before = entries_.size();
    PL_TRY_ASSIGN(GraphContent content, ReadGraphContent(directory, names, [&](StatisticRow row) {
                    AddRow(index, std::move(row));
                  }));
    if (!content.problem.empty()) Problem(std::move(content.problem));
    const bool has_tensors = content.has_tensors;
    if (has_tensors) entries_.KeepFirst(before);
    if (index > 0 && has_tensors != records_.has_tensors) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: holds {}, but other directories of this rank and step hold {}",
                               directory, has_tensors ? "tensors" : "statistics",
                               has_tensors ? "statistics" : "tensors"));
    }
    records_.has_tensors = has_tensors;
    if (std::ranges::binary_search(names, kSampleJson)) {
      Problem(fmt::format("{}: of larger tensors only the first elements are there",
                          JoinPath(directory, kSampleJson)));
    }
    return has_tensors ? AddFiles(index, names) : Status();
  }

  // Reads the headers and makes calls of what was added; returns their number.
  size_t Finish(const VisitGraphCall& visit) {
    if (records_.has_tensors) {
      std::vector<std::string> unnamed(entries_.size());
      ParallelFor(entries_.size(), [&](size_t i) { unnamed[i] = Describe(entries_[i]); });
      for (size_t i = 0; i < unnamed.size(); ++i) {
        if (!unnamed[i].empty()) entries_[i].dtype = Kept(unnamed[i]);
      }
    }
    std::vector<uint32_t> in_time(entries_.size());
    std::iota(in_time.begin(), in_time.end(), 0);
    std::ranges::stable_sort(in_time, {}, [&](uint32_t i) { return entries_[i].timestamp; });
    NumberOccurrences(in_time);
    return MakeCalls(in_time, visit);
  }

 private:
  // The tensor files among the sorted names of a directory.
  Status AddFiles(size_t index, const std::vector<std::string>& names) {
    const std::string& directory = directories_[index];
    PL_TRY_ASSIGN(const NameMapping mapping, NameMapping::Read(directory));
    for (const std::string& note : mapping.notes()) Problem(note);
    size_t missing = 0;
    for (size_t row = 0; row < mapping.size(); ++row) {
      missing += std::ranges::binary_search(names, mapping.file(row)) ? 0 : 1;  // they come sorted
    }
    if (missing > 0) {
      Problem(fmt::format("{}: {} of its {} files not there",
                          JoinPath(directory, run_files::kMappingCsv), missing, mapping.size()));
    }
    for (const std::string& name : names) {
      if (name.ends_with(".npy")) AddFile(index, name, mapping.NameOf(name));
    }
    return {};
  }

  void Problem(std::string text) {
    if (records_.problems.size() < kMaxProblems) records_.problems.push_back(std::move(text));
  }

  const std::string* Kept(std::string_view text) { return &*texts_.emplace(text).first; }

  void AddFile(size_t directory, const std::string& file, const std::string& name) {
    const std::optional<KernelFile> parts = ParseKernelFile(name);
    if (!parts) {
      Problem(fmt::format("{}: not the name of a kernel's tensor; left out",
                          JoinPath(directories_[directory], file)));
      return;
    }
    Entry& entry = entries_.Add();
    entry.op_type = Kept(parts->op_type);
    entry.op_name = Kept(parts->op_name);
    entry.timestamp = parts->timestamp;
    entry.is_output = parts->is_output;
    entry.slot = parts->slot;
    entry.directory = static_cast<uint32_t>(directory);
    entry.dtype = Kept(LowerCase(parts->dtype));
    entry.text = file;
  }

  // Takes the shape from the file. The dtype, where it is another one than the name's.
  std::string Describe(Entry& entry) const {
    const Result<npy::NpyFile> file =
        npy::NpyFile::Open(JoinPath(directories_[entry.directory], entry.text));
    if (!file) return std::string(kUnreadableDType);
    const TensorView view = file->view();
    entry.shape.assign(view.sizes.begin(), view.sizes.end());
    // The name knows of types that .npy files do not have.
    return entry.dtype->empty() ? std::string(InfoOf(view.dtype).name) : std::string();
  }

  void AddRow(size_t directory, StatisticRow row) {
    Entry& entry = entries_.Add();
    std::ranges::replace(row.op_name, '/', '_');  // as file names have it
    entry.op_type = Kept(row.op_type);
    entry.op_name = Kept(row.op_name);
    entry.task = Kept(row.task);
    entry.stream = Kept(row.stream);
    entry.timestamp = row.timestamp;
    entry.is_output = row.is_output;
    entry.slot = row.slot;
    entry.directory = static_cast<uint32_t>(directory);
    TensorRecord& tensor = row.tensor;
    entry.dtype = Kept(tensor.dtype_text);
    entry.shape = std::move(tensor.shape);
    entry.max = tensor.max;
    entry.min = tensor.min;
    entry.mean = tensor.mean;
    entry.norm = tensor.norm;
    if (tensor.digest) entry.text = *std::move(tensor.digest);
  }

  // The k-th value of one slot of a kernel, in order of time, belongs to its k-th run.
  void NumberOccurrences(std::vector<uint32_t> order) {
    const auto place = [&](uint32_t i) {
      const Entry& entry = entries_[i];
      return std::tuple(entry.op_name, entry.is_output, entry.slot);
    };
    std::ranges::stable_sort(order, {}, place);
    for (size_t i = 1; i < order.size(); ++i) {
      if (place(order[i]) != place(order[i - 1])) continue;
      entries_[order[i]].occurrence = entries_[order[i - 1]].occurrence + 1;
    }
  }

  // One call per run of a kernel, in the order of the first value of each.
  size_t MakeCalls(const std::vector<uint32_t>& in_time, const VisitGraphCall& visit) {
    const auto call_of = [&](uint32_t rank) {
      const Entry& entry = entries_[in_time[rank]];
      return std::pair(entry.op_name, entry.occurrence);
    };
    std::vector<uint32_t> by_call(in_time.size());  // numbers in `in_time`
    std::iota(by_call.begin(), by_call.end(), 0);
    std::ranges::stable_sort(by_call, {}, call_of);
    std::vector<uint32_t> starts;
    for (uint32_t i = 0; i < by_call.size(); ++i) {
      if (i == 0 || call_of(by_call[i]) != call_of(by_call[i - 1])) starts.push_back(i);
    }
    std::ranges::sort(starts, {}, [&](uint32_t start) { return by_call[start]; });
    std::vector<Entry*> members;
    for (const uint32_t start : starts) {
      members.clear();
      for (size_t i = start; i < by_call.size(); ++i) {
        if (call_of(by_call[i]) != call_of(by_call[start])) break;
        members.push_back(&entries_[in_time[by_call[i]]]);
      }
      visit(CallOf(members), records_.has_tensors);
    }
    return starts.size();
  }

  Call CallOf(std::vector<Entry*>& members) const {
    std::ranges::stable_sort(members, {}, &Entry::slot);
    ValueMap inputs, outputs;
    for (Entry* entry : members) {
      ValueMap& values = entry->is_output ? outputs : inputs;
      values.emplace_back(std::to_string(entry->slot), Value(TakeRecord(*entry)));
    }
    Call call;
    const Entry& first = *members.front();
    std::string scope = *first.op_name;  // the parts of a call's name are told by their dots
    std::ranges::replace(scope, '.', '_');
    call.name = fmt::format("{}.{}.{}.forward", scope, *first.op_type, first.occurrence);
    call.kind = CallKind::kForward;
    if (!inputs.empty()) call.members.emplace_back("input_args", Value(std::move(inputs)));
    if (!outputs.empty()) call.members.emplace_back("output", Value(std::move(outputs)));
    return call;
  }

  TensorRecord TakeRecord(Entry& entry) const {
    TensorRecord tensor;
    tensor.type = "mindspore.Tensor";
    tensor.dtype_text = *entry.dtype;
    tensor.shape = std::move(entry.shape);
    tensor.max = entry.max;
    tensor.min = entry.min;
    tensor.mean = entry.mean;
    tensor.norm = entry.norm;
    const std::string prefix = GraphNamePrefix(entry.directory);
    if (records_.has_tensors) {
      tensor.data_name = prefix + entry.text;
      return tensor;
    }
    if (!entry.text.empty()) tensor.digest = std::move(entry.text);
    tensor.data_name = fmt::format("{}{}.{}.{}.{}.{}", prefix, *entry.op_name, *entry.task,
                                   *entry.stream, entry.is_output ? "output" : "input", entry.slot);
    return tensor;
  }

  const std::vector<std::string>& directories_;
  GraphRecords& records_;
  std::unordered_set<std::string> texts_;
  Entries entries_;
};

}  // namespace

std::optional<KernelFile> ParseKernelFile(std::string_view name) {
  if (!name.ends_with(npy::kEnding)) return std::nullopt;
  std::string_view rest = name.substr(0, name.size() - npy::kEnding.size());
  KernelFile file;
  std::string_view last = TakeLast(rest);
  std::string_view format = last;
  std::string_view slot = TakeLast(rest);
  if (!ParseNatural(slot) && IsDTypeName(last)) {
    file.dtype = last;
    format = slot;
    slot = TakeLast(rest);
  }
  const std::string_view io = TakeLast(rest);
  const std::optional<int64_t> number = ParseNatural(slot);
  if (format.empty() || !number || (io != "input" && io != "output")) return std::nullopt;
  const std::optional<int64_t> time = ParseNatural(TakeLast(rest));
  file.stream = TakeLast(rest);
  file.task = TakeLast(rest);
  const size_t dot = rest.find('.');
  if (!time || !ParseNatural(file.stream) || !ParseNatural(file.task) ||
      dot == std::string_view::npos || dot == 0 || dot + 1 == rest.size()) {
    return std::nullopt;
  }
  file.op_type = rest.substr(0, dot);
  file.op_name = rest.substr(dot + 1);
  file.timestamp = *time;
  file.is_output = io == "output";
  file.slot = *number;
  return file;
}

Result<GraphRecords> VisitGraphDump(const std::vector<std::string>& directories,
                                    const VisitGraphCall& visit) {
  GraphRecords records;
  Reader reader(directories, records);
  for (size_t i = 0; i < directories.size(); ++i) PL_TRY(reader.ReadDirectory(i));
  if (reader.Finish(visit) > 0) return records;
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no kernel in it (expected .npy files of kernels or rows in "
                           "statistic.csv)",
                           directories.empty() ? std::string() : directories.front()));
}

Result<GraphRecords> ReadGraphDump(const std::vector<std::string>& directories) {
  std::vector<Call> calls;
  PL_TRY_ASSIGN(GraphRecords records, VisitGraphDump(directories, [&](Call call, bool) {
                  calls.push_back(std::move(call));
                }));
  records.calls = std::move(calls);
  return records;
}

std::string GraphFile(const std::vector<std::string>& directories, std::string_view data_name,
                      bool has_tensors) {
  if (directories.empty()) return std::string(data_name);
  const GraphName place = ParseGraphName(data_name, directories.size());
  return JoinPath(directories[place.directory],
                  has_tensors ? place.name : run_files::kStatisticCsv);
}

// Where the iterations of a static-graph dump lie.

namespace {

constexpr int kGraphDumpDepth = 10;
constexpr std::string_view kAny = "*";

std::vector<std::string_view> PartsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

// {time} of a device's tree: 14 digits.
bool IsTime(std::string_view part) {
  constexpr size_t kTimeDigits = 14;
  return part.size() == kTimeDigits && IsDigits(part);
}

// The parts of an absolute path, counted from its end.
class Place {
 public:
  // `below`: how many of the parts are below the root that was named.
  Place(std::string_view path, size_t below) : parts_(PartsOf(path)), below_(below) {}

  [[nodiscard]] std::string_view part(size_t k) const {
    return k <= parts_.size() ? parts_[parts_.size() - k] : std::string_view();
  }
  [[nodiscard]] std::optional<int64_t> number(size_t k) const { return ParseNatural(part(k)); }
  // {step} in front of {time}: only what is below the root is no name that the user chose.
  [[nodiscard]] std::optional<int64_t> step(size_t k) const {
    return k <= below_ && !IsTime(part(k)) ? number(k) : std::nullopt;
  }

 private:
  std::vector<std::string_view> parts_;
  size_t below_;
};

// The place of a directory by its last parts; nothing if they do not say it.
std::optional<GraphDirectory> PlaceOf(const std::string& path, const std::string& root) {
  const Result<std::string> absolute = AbsolutePath(path), top = AbsolutePath(root);
  const std::string& text = absolute ? *absolute : path;
  const size_t above = PartsOf(top ? *top : root).size();
  const Place place(text, PartsOf(text).size() - above);
  const std::optional<int64_t> last = place.number(1);
  if (!last) return std::nullopt;
  if (const auto rank = NaturalAfter(kRankDirectory, place.part(4))) {
    return GraphDirectory{path, *rank, *last, place.number(2)};
  }
  if (text.find("/rank_") != std::string::npos) return std::nullopt;
  // Kernels that were launched one by one: {step}/{time}/{device}.
  if (IsTime(place.part(2))) {
    return GraphDirectory{path, *last, place.step(3).value_or(0), std::nullopt};
  }
  std::optional<int64_t> rank = place.number(4);
  if (!rank) rank = place.number(3);
  if (!rank) return std::nullopt;
  const auto step = IsTime(place.part(5)) ? place.step(6) : std::nullopt;
  return GraphDirectory{path, *rank, step.value_or(*last), place.number(2)};
}

// Which names of a directory are those of kernels' files, by themselves or by what mapping.csv
// says.
class KernelNames {
 public:
  explicit KernelNames(const std::string& directory) : directory_(directory) {}

  bool Has(std::string_view name) {
    if (name == run_files::kStatisticCsv || ParseKernelFile(name)) return true;
    if (!name.ends_with(npy::kEnding)) return false;
    if (!mapping_) mapping_ = NameMapping::Read(directory_);
    if (*mapping_ && (*mapping_)->size() == 0) return false;
    // A number without a row, or with one that cannot be read, is still a kernel's: it is told.
    return IsDigits(name.substr(0, name.size() - npy::kEnding.size())) ||
           (*mapping_ && ParseKernelFile((*mapping_)->NameOf(name)));
  }

 private:
  const std::string& directory_;
  std::optional<Result<NameMapping>> mapping_;  // once it was needed
};

// The directory of a rank of another recorder, which is not searched: it may hold very many files.
bool IsRecording(const std::string& directory) {
  return std::ranges::any_of(
      std::array{run_files::kDumpJson, run_files::kDebugJson, run_files::kTensorDirectory},
      [&](std::string_view name) { return Inspect(JoinPath(directory, name)).has_value(); });
}

// Lists one directory up to the first kernel, and further as it is asked.
class Listing {
 public:
  Listing(const std::string& directory, DirectoryNames names)
      : kernels_(directory), names_(std::move(names)) {}

  // Whether there is a kernel in it.
  [[nodiscard]] bool FindKernel() {
    while (!has_kernels_) {
      Result<NameBlock> block = Read();
      if (!block || block->empty()) break;
      first_.push_back(*std::move(block));
    }
    std::ranges::reverse(first_);
    return has_kernels_;
  }
  // From the first name on.
  Result<NameBlock> Next() {
    if (first_.empty()) return Read();
    NameBlock block = std::move(first_.back());
    first_.pop_back();
    return block;
  }
  // Entries that may be directories; lists what is left. Beside kernels, whose files are very many,
  // these are only names without a dot.
  std::vector<std::string> Children() {
    for (Result<NameBlock> block = Read(); block && !block->empty();) block = Read();
    if (has_kernels_) {
      std::erase_if(children_, [](const std::string& name) { return HasDot(name); });
    }
    std::ranges::sort(children_);
    return std::move(children_);
  }

 private:
  static bool HasDot(std::string_view name) { return name.find('.') != std::string_view::npos; }

  Result<NameBlock> Read() {
    if (is_done_) return NameBlock();
    Result<NameBlock> block = names_.Next();
    is_done_ = !block || block->empty();
    if (is_done_) return block;
    for (const auto& [name, is_regular] : block->names()) {
      has_kernels_ = has_kernels_ || kernels_.Has(name);
      if (!has_kernels_ || !HasDot(name)) children_.emplace_back(name);
    }
    return block;
  }

  KernelNames kernels_;
  DirectoryNames names_;
  bool has_kernels_ = false, is_done_ = false;
  std::vector<NameBlock> first_;  // read and not given yet, the next one last
  std::vector<std::string> children_;
};

class Search {
 public:
  using Visit = std::function<void(GraphDirectory place, const NextNames& next)>;

  // With `one` it ends at the first.
  Search(const std::string& root, bool one, const Visit& visit)
      : root_(root), one_(one), visit_(visit) {}

  void Collect(const std::string& directory, int depth) {
    auto names = DirectoryNames::Open(directory);
    if (!names || IsRecording(directory)) return;
    Listing listing(directory, *std::move(names));
    if (listing.FindKernel()) {
      if (auto place = PlaceOf(directory, root_)) {
        found_ = true;
        visit_(std::move(*place), [&listing] { return listing.Next(); });
      }
    }
    if (depth == kGraphDumpDepth || (one_ && found_)) return;
    for (const std::string& name : listing.Children()) {
      const std::string child = JoinPath(directory, name);
      const auto facts = Inspect(child);  // links are not followed: they may lead in circles
      if (facts && facts->kind == PathKind::kDirectory) Collect(child, depth + 1);
      if (one_ && found_) return;
    }
  }

  [[nodiscard]] bool found() const { return found_; }

 private:
  const std::string& root_;
  const bool one_;
  const Visit& visit_;
  bool found_ = false;
};

void Expand(const std::string& path, std::vector<std::string>& found) {
  const size_t star = path.find("/*");
  if (star == std::string::npos) {
    if (KindOf(path) == PathKind::kDirectory) found.push_back(path);
    return;
  }
  const std::string head = path.substr(0, star), tail = path.substr(star + 2);
  const auto names = ListDirectory(head);
  if (!names) return;
  for (const std::string& name : *names) Expand(JoinPath(head, name) + tail, found);
}

}  // namespace

void VisitGraphNames(
    const std::string& root,
    const std::function<void(GraphDirectory place, const NextNames& next)>& visit) {
  if (KindOf(root) == PathKind::kDirectory) Search(root, /*one=*/false, visit).Collect(root, 0);
}

void VisitGraphDirectories(
    const std::string& root,
    const std::function<void(GraphDirectory place, std::vector<std::string> names)>& visit) {
  VisitGraphNames(root, [&](GraphDirectory place, const NextNames& next) {
    std::vector<std::string> names;
    for (Result<NameBlock> block = next(); block && !block->empty(); block = next()) {
      for (const ListedName& one : block->names()) names.emplace_back(one.name);
    }
    std::ranges::sort(names);
    visit(std::move(place), std::move(names));
  });
}

std::vector<GraphDirectory> ListGraphDirectories(const std::string& root) {
  std::vector<GraphDirectory> found;
  VisitGraphNames(root, [&](GraphDirectory place, const NextNames& /*next*/) {
    found.push_back(std::move(place));
  });
  std::ranges::sort(found, [](const GraphDirectory& a, const GraphDirectory& b) {
    return std::tie(a.rank, a.step, a.path) < std::tie(b.rank, b.step, b.path);
  });
  return found;
}

bool IsGraphDump(const std::string& path) {
  if (KindOf(path) != PathKind::kDirectory) return path.find("/*") != std::string::npos;
  const Search::Visit nothing = [](const GraphDirectory&, const NextNames&) {};
  Search search(path, /*one=*/true, nothing);
  search.Collect(path, 0);
  return search.found();
}

std::string GraphPath(const std::vector<std::string>& directories) {
  if (directories.size() == 1) return directories.front();
  std::vector<std::string_view> shared = PartsOf(directories.front());
  for (const std::string& directory : directories) {
    const std::vector<std::string_view> parts = PartsOf(directory);
    for (size_t i = 0; i < std::min(parts.size(), shared.size()); ++i) {
      if (parts[i] != shared[i]) shared[i] = kAny;
    }
  }
  std::string text = directories.front().starts_with('/') ? "/" : "";
  for (size_t i = 0; i < shared.size(); ++i) {
    if (i > 0) text += '/';
    text += shared[i];
  }
  return text;
}

Result<std::vector<std::string>> ResolveGraphPath(const std::string& path) {
  std::vector<std::string> named;
  Expand(path, named);
  std::vector<GraphDirectory> found;
  for (const std::string& directory : named) {
    for (GraphDirectory& each : ListGraphDirectories(directory)) found.push_back(std::move(each));
  }
  if (found.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no static-graph dump (expected .npy files of kernels or "
                             "statistic.csv in rank_0/net/graph/step)",
                             path));
  }
  std::set<std::pair<int64_t, int64_t>> places;
  for (const GraphDirectory& each : found) places.emplace(each.rank, each.step);
  if (places.size() > 1) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: holds {} ranks and steps (expected one). Name one of them, such "
                             "as {}",
                             path, places.size(), found.front().path));
  }
  std::vector<std::string> directories;
  for (GraphDirectory& each : found) directories.push_back(std::move(each.path));
  return directories;
}

namespace {

constexpr std::string_view kGraphs = "graphs";
constexpr std::string_view kGraphName = "ms_output_trace_code_graph_";
constexpr std::string_view kFileEnding = ".pb";

}  // namespace

Result<std::vector<CompiledGraph>> ListCompiledGraphs(const std::string& root) {
  std::vector<CompiledGraph> files;
  PL_TRY_ASSIGN(const std::vector<std::string> ranks, ListDirectory(root));
  for (const std::string& rank_name : ranks) {
    const std::optional<int64_t> rank = NaturalAfter(kRankDirectory, rank_name);
    const std::string directory = JoinPath(JoinPath(root, rank_name), kGraphs);
    if (!rank || KindOf(directory) != PathKind::kDirectory) continue;
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
    for (const std::string& name : names) {
      if (!name.ends_with(kFileEnding)) continue;
      const std::string_view stem =
          std::string_view(name).substr(0, name.size() - kFileEnding.size());
      const std::optional<int64_t> graph = NaturalAfter(kGraphName, stem);
      if (graph) files.push_back({*rank, *graph, JoinPath(directory, name)});
    }
  }
  std::ranges::sort(files, [](const CompiledGraph& a, const CompiledGraph& b) {
    return std::tie(a.rank, a.graph) < std::tie(b.rank, b.graph);
  });
  return files;
}

}  // namespace plumbline::load
