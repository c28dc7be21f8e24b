// The files of a static-graph dump: the reading half of graph_dump.h.

#include "load/graph_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/parallel.h"
#include "base/text_parts.h"
#include "formats/npy.h"
#include "load/name_mapping.h"
#include "load/statistic_table.h"
#include "record/graph_name.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

constexpr size_t kMaxProblems = 20;

// One tensor of one kernel: a file, or a row of statistic.csv.
struct Entry {
  std::string op_type, op_name;
  int64_t timestamp = 0;
  bool is_output = false;
  int64_t slot = 0;
  TensorRecord tensor;
  std::string path;  // of the .npy file
  size_t occurrence = 0;
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
  explicit Reader(GraphRecords& records) : records_(records) {}

  Status ReadDirectory(const std::string& directory, size_t index) {
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
    const bool has_tensors =
        std::ranges::any_of(names, [](const std::string& name) { return name.ends_with(".npy"); });
    if (index > 0 && has_tensors != records_.has_tensors) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: holds {}, but other directories of this rank and step hold {}",
                               directory, has_tensors ? "tensors" : "statistics",
                               has_tensors ? "statistics" : "tensors"));
    }
    records_.has_tensors = has_tensors;
    prefix_ = GraphNamePrefix(index);
    if (!has_tensors) return ReadStatistics(JoinPath(directory, run_files::kStatisticCsv));
    PL_TRY_ASSIGN(const NameMapping mapping, NameMapping::Read(directory));
    for (const std::string& note : mapping.notes()) Problem(note);
    const auto missing = std::ranges::count_if(mapping.rows(), [&](const auto& row) {
      return !std::ranges::binary_search(names, row.first);  // names come sorted
    });
    if (missing > 0) {
      Problem(fmt::format("{}: {} of its {} files not there",
                          JoinPath(directory, run_files::kMappingCsv), missing,
                          mapping.rows().size()));
    }
    for (const std::string& name : names) {
      if (!name.ends_with(".npy")) continue;
      AddFile(directory, name, mapping.NameOf(name));
    }
    return {};
  }

  // Reads the headers and makes calls of what was added.
  void Finish() {
    ParallelFor(entries_.size(), [&](size_t i) { Describe(entries_[i]); });
    NumberOccurrences();
    MakeCalls();
  }

 private:
  void Problem(std::string text) {
    if (records_.problems.size() < kMaxProblems) records_.problems.push_back(std::move(text));
  }

  void AddFile(const std::string& directory, const std::string& file, const std::string& name) {
    const std::optional<KernelFile> parts = ParseKernelFile(name);
    if (!parts) {
      Problem(fmt::format("{}: not the name of a kernel's tensor; left out",
                          JoinPath(directory, file)));
      return;
    }
    Entry& entry = entries_.emplace_back();
    entry.op_type = parts->op_type;
    entry.op_name = parts->op_name;
    entry.timestamp = parts->timestamp;
    entry.is_output = parts->is_output;
    entry.slot = parts->slot;
    entry.path = JoinPath(directory, file);
    entry.tensor.dtype_text = LowerCase(parts->dtype);
    entry.tensor.data_name = prefix_ + file;
  }

  void Describe(Entry& entry) const {
    entry.tensor.type = "mindspore.Tensor";
    if (!records_.has_tensors) return;
    const Result<npy::NpyFile> file = npy::NpyFile::Open(entry.path);
    if (!file) {
      entry.tensor.dtype_text = kUnreadableDType;
      return;
    }
    const TensorView view = file->view();
    entry.tensor.shape.assign(view.sizes.begin(), view.sizes.end());
    // The name knows of types that .npy files do not have.
    if (entry.tensor.dtype_text.empty()) entry.tensor.dtype_text = InfoOf(view.dtype).name;
  }

  Status ReadStatistics(const std::string& path) {
    return VisitStatisticTable(path, [&](StatisticRow row) {
      Entry& entry = entries_.emplace_back();
      entry.op_type = std::move(row.op_type);
      entry.op_name = std::move(row.op_name);
      std::ranges::replace(entry.op_name, '/', '_');  // as file names have it
      entry.timestamp = row.timestamp;
      entry.is_output = row.is_output;
      entry.slot = row.slot;
      entry.tensor = std::move(row.tensor);
      entry.tensor.data_name =
          fmt::format("{}{}.{}.{}.{}.{}", prefix_, entry.op_name, row.task, row.stream,
                      row.is_output ? "output" : "input", entry.slot);
    });
  }

  // The k-th value of one slot of a kernel, in order of time, belongs to its k-th run.
  void NumberOccurrences() {
    std::ranges::stable_sort(entries_, {}, &Entry::timestamp);
    std::map<std::tuple<std::string_view, bool, int64_t>, size_t> seen;
    for (Entry& entry : entries_) {
      entry.occurrence = seen[{entry.op_name, entry.is_output, entry.slot}]++;
    }
  }

  void MakeCalls() {
    std::map<std::pair<std::string_view, size_t>, size_t> known;
    std::vector<std::vector<Entry*>> calls;
    for (Entry& entry : entries_) {
      const auto [at, is_new] = known.try_emplace({entry.op_name, entry.occurrence}, calls.size());
      if (is_new) calls.emplace_back();
      calls[at->second].push_back(&entry);
    }
    for (std::vector<Entry*>& members : calls) records_.calls.push_back(CallOf(members));
  }

  static Call CallOf(std::vector<Entry*>& members) {
    std::ranges::stable_sort(members, {}, &Entry::slot);
    ValueMap inputs, outputs;
    for (Entry* entry : members) {
      ValueMap& values = entry->is_output ? outputs : inputs;
      values.emplace_back(std::to_string(entry->slot), Value(std::move(entry->tensor)));
    }
    Call call;
    const Entry& first = *members.front();
    std::string scope = first.op_name;  // the parts of a call's name are told by their dots
    std::ranges::replace(scope, '.', '_');
    call.name = fmt::format("{}.{}.{}.forward", scope, first.op_type, first.occurrence);
    call.kind = CallKind::kForward;
    if (!inputs.empty()) call.members.emplace_back("input_args", Value(std::move(inputs)));
    if (!outputs.empty()) call.members.emplace_back("output", Value(std::move(outputs)));
    return call;
  }

  GraphRecords& records_;
  std::vector<Entry> entries_;
  std::string prefix_;  // of data_name
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

Result<GraphRecords> ReadGraphDump(const std::vector<std::string>& directories) {
  GraphRecords records;
  Reader reader(records);
  for (size_t i = 0; i < directories.size(); ++i) PL_TRY(reader.ReadDirectory(directories[i], i));
  reader.Finish();
  if (!records.calls.empty()) return records;
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no kernel in it (expected .npy files of kernels or rows in "
                           "statistic.csv)",
                           directories.empty() ? std::string() : directories.front()));
}

std::string GraphFile(const std::vector<std::string>& directories, std::string_view data_name,
                      bool has_tensors) {
  if (directories.empty()) return std::string(data_name);
  const GraphName place = ParseGraphName(data_name, directories.size());
  return JoinPath(directories[place.directory],
                  has_tensors ? place.name : run_files::kStatisticCsv);
}

}  // namespace plumbline::load
