// The files of a static-graph dump: the reading half of graph_dump.h.

#include "load/graph_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "base/number_text.h"
#include "base/parallel.h"
#include "base/text_parts.h"
#include "formats/npy.h"
#include "load/graph_content.h"
#include "load/name_mapping.h"
#include "record/graph_name.h"
#include "record/run_files.h"

namespace plumbline::load {
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
  constexpr std::string_view kEnding = ".npy";
  if (!name.ends_with(kEnding)) return std::nullopt;
  std::string_view rest = name.substr(0, name.size() - kEnding.size());
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

}  // namespace plumbline::load
