#include "inspect/inventory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "formats/acl/acl_dump.h"
#include "formats/acl/acl_file_name.h"
#include "formats/acl/acl_types.h"
#include "formats/array/npy.h"
#include "formats/json/dump_json.h"
#include "formats/pytorch/debug_mode_log.h"
#include "formats/pytorch/torch_pt.h"
#include "kernels/tensor_scan.h"
#include "load/atb_dump.h"
#include "load/detect.h"
#include "load/dump_files.h"
#include "load/graph_dump.h"
#include "load/rank_directories.h"
#include "load/rank_scan.h"
#include "load/run_reader.h"
#include "load/statistic_table.h"
#include "record/run_files.h"
#include "record/tensor_stats.h"
#include "tensor/block_gather.h"
#include "tensor/element_value.h"

namespace plumbline {

namespace {

constexpr size_t kFewNames = 10;

void CountTensors(const Value& value, DumpFacts& facts, std::unordered_set<std::string>& named) {
  if (const auto* tensor = value.As<TensorRecord>()) {
    ++facts.tensors;
    if (tensor->digest) ++facts.digests;
    if (tensor->data_name) named.insert(*tensor->data_name);
  } else if (const auto* list = value.As<ValueList>()) {
    for (const Value& element : *list) CountTensors(element, facts, named);
  } else if (const auto* map = value.As<ValueMap>()) {
    for (const auto& [key, member] : *map) CountTensors(member, facts, named);
  }
}

bool HasBadValue(const Call& call) {
  ValueJudgement judgement;
  for (const auto& [key, value] : call.members) Judge(value, key, judgement);
  return judgement.bad.has_value();
}

void AddName(const std::string& name, std::vector<std::string>& few) {
  if (few.size() < kFewNames) few.push_back(name);
}

// Compares the files in `directory` with the names that the dump gives.
Status CountTensorFiles(const std::string& directory, const std::unordered_set<std::string>& named,
                        TensorFilesFacts& facts) {
  facts.named = named.size();
  std::set<std::string> absent(named.begin(), named.end());
  if (KindOf(directory) == PathKind::kDirectory) {
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
    for (const std::string& name : names) {
      const Result<PathFacts> file = Inspect(JoinPath(directory, name));
      if (!file || file->kind != PathKind::kFile) continue;
      ++facts.files;
      facts.bytes += file->size_bytes;
      absent.erase(name);
      if (named.contains(name)) continue;
      ++facts.stale;
      AddName(name, facts.stale_names);
    }
  }
  facts.missing = absent.size();
  for (const std::string& name : absent) AddName(name, facts.missing_names);
  return {};
}

Result<JournalFacts> ReadJournalFacts(const std::string& path) {
  JournalFacts facts;
  facts.path = path;
  {
    PL_TRY_ASSIGN(File lock, File::OpenRead(path));
    PL_TRY_ASSIGN(const bool locked, lock.TryLock());
    facts.in_use = !locked;
  }
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const auto scan =
      ReadJournal(std::as_bytes(std::span(text)), [&](const JournalRecord& record) -> Status {
        if (record.kind == RecordKind::kHeader) {
          PL_TRY_ASSIGN(const JournalHeader header, ParseJournalHeader(record.payload));
          facts.run = header.run;
        } else if (record.kind == RecordKind::kEntry) {
          ++facts.entries;
        } else if (record.kind == RecordKind::kLoss) {
          PL_TRY_ASSIGN(const Loss loss, ParseLoss(record.payload));
          MergeLoss(facts.losses, loss);
        }
        return {};
      });
  if (!scan) return scan.error().In(path);
  facts.records = scan->records;
  facts.bytes_dropped = scan->bytes_dropped;
  facts.sealed = scan->sealed;
  facts.damaged = scan->damaged;
  return facts;
}

size_t RowsOf(const dump_json::StackTable& stacks) { return stacks.size(); }
size_t RowsOf(const dump_json::CallTree& tree) { return tree.rows.size(); }

template <class Table>
uint64_t CountRows(const std::string& path, Result<Table> (*read)(const std::string&),
                   DumpFacts& facts) {
  if (KindOf(path) != PathKind::kFile) {
    facts.missing_files.emplace_back(BaseName(path));
    return 0;
  }
  const Result<Table> table = read(path);
  if (table) return RowsOf(*table);
  facts.loss.side_files.push_back(table.error().message());
  return 0;
}

std::string DialectOf(const std::string& directory, const DumpFacts& facts) {
  if (facts.header.by_plumbline) return "plumbline";
  const Result<bool> grouped =
      dump_json::IsGroupedStack(JoinPath(directory, run_files::kStackJson));
  const bool process = BaseName(directory).starts_with("proc");
  if (process || (grouped && *grouped)) return "26.x";
  return grouped && facts.stacks > 0 ? "1.2.2" : "unknown";
}

// Counts what the entries hold.
void CountEntries(const std::vector<Call>& calls, DumpFacts& facts,
                  std::unordered_set<std::string>& named) {
  facts.entries = calls.size();
  for (const Call& call : calls) {
    ++facts.kinds[static_cast<size_t>(call.kind)];
    for (const auto& [key, value] : call.members) CountTensors(value, facts, named);
    if (HasBadValue(call)) ++facts.bad_entries;
  }
}

Result<DumpFacts> ReadLogFacts(const std::string& path) {
  DumpFacts facts;
  facts.path = path;
  PL_TRY_ASSIGN(const debug_mode::LogFile log, debug_mode::ReadLog(path, /*salvage=*/true));
  facts.header = log.header;
  facts.loss = log.loss;
  facts.dialect = log.header.log_form;
  std::unordered_set<std::string> named;
  CountEntries(log.calls, facts, named);
  facts.stacks = log.stacks.size();
  facts.parents = log.tree.rows.size();
  return facts;
}

Result<DumpFacts> ReadDumpFacts(const std::string& path) {
  if (debug_mode::FormOfLog(path)) return ReadLogFacts(path);
  DumpFacts facts;
  facts.path = path;
  const std::string directory(DirectoryOf(path));
  PL_TRY_ASSIGN(const dump_json::DumpFile file, dump_json::ReadDump(path, /*salvage=*/true));
  facts.header = file.header;
  facts.loss = file.loss;
  std::unordered_set<std::string> named;
  CountEntries(file.calls, facts, named);
  const load::RecordingState state = load::StateOf(directory, BaseName(path));
  facts.loss.recorder_drops = state.losses;
  facts.loss.ended_early = state.ended_early;
  if (!state.log_problem.empty()) facts.loss.side_files.push_back(state.log_problem);
  facts.loss.unfinished = state.unfinished;
  facts.header.by_plumbline = KindOf(JoinPath(directory, run_files::kRunMark)) == PathKind::kFile;
  if (!facts.header.holds_saves()) {
    facts.stacks =
        CountRows(JoinPath(directory, run_files::kStackJson), dump_json::ReadStack, facts);
    facts.parents =
        CountRows(JoinPath(directory, run_files::kConstructJson), dump_json::ReadCallTree, facts);
  }
  facts.dialect = DialectOf(directory, facts);
  PL_TRY(CountTensorFiles(JoinPath(directory, run_files::kTensorDirectory), named,
                          facts.tensor_files));
  const std::string journal = JoinPath(directory, run_files::kJournal);
  if (KindOf(journal) == PathKind::kFile) {
    PL_TRY_ASSIGN(facts.journal, ReadJournalFacts(journal));
  }
  return facts;
}

// The dump files and journals of one directory; true when there was something.
Result<bool> AddDirectory(const std::string& directory, Inventory& inventory) {
  bool found = false;
  for (const std::string_view name : {run_files::kDumpJson, run_files::kDebugJson}) {
    const std::string path = JoinPath(directory, name);
    if (KindOf(path) != PathKind::kFile) continue;
    PL_TRY_ASSIGN(DumpFacts facts, ReadDumpFacts(path));
    inventory.dumps.push_back(std::move(facts));
    found = true;
  }
  const std::string journal = JoinPath(directory, run_files::kJournal);
  if (found || KindOf(journal) != PathKind::kFile) return found;
  DumpFacts facts;
  facts.path = directory;
  PL_TRY_ASSIGN(facts.journal, ReadJournalFacts(journal));
  facts.header = facts.journal->run;
  facts.dialect = "plumbline";
  facts.loss.unfinished = true;
  inventory.dumps.push_back(std::move(facts));
  return true;
}

Status AddRanks(const std::string& directory, Inventory& inventory) {
  PL_TRY_ASSIGN(const bool found, AddDirectory(directory, inventory));
  if (found) return {};
  PL_TRY_ASSIGN(const auto ranks, load::ListRankDirectories(directory));
  for (const load::RankDirectory& rank : ranks) {
    PL_TRY_ASSIGN([[maybe_unused]] const bool any, AddDirectory(rank.path, inventory));
  }
  return {};
}

Status AddAllBelow(const std::string& path, Inventory& inventory) {
  PL_TRY(AddRanks(path, inventory));
  PL_TRY_ASSIGN(const auto steps, load::ListStepDirectories(path));
  for (const load::StepDirectory& step : steps) PL_TRY(AddRanks(step.path, inventory));
  if (!inventory.dumps.empty()) return {};
  PL_TRY_ASSIGN(inventory.side_files, ReadGraphFacts(path));
  if (!inventory.side_files.empty()) return {};
  PL_TRY_ASSIGN(inventory.device_dumps, ReadDeviceDumps(path));
  if (!inventory.device_dumps.empty()) return {};
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no dump.json, debug.json or journal here nor in a step or rank "
                           "directory below, no static-graph dump, no dump of ATB and none of a "
                           "device",
                           path));
}

Result<SideFileFacts> ReadStackFacts(const std::string& path) {
  PL_TRY_ASSIGN(const dump_json::StackTable rows, dump_json::ReadStack(path));
  PL_TRY_ASSIGN(const bool grouped, dump_json::IsGroupedStack(path));
  std::set<std::vector<std::string>> different;
  for (const auto& [name, frames] : rows) different.insert(frames);
  return SideFileFacts{path,
                       grouped ? "stack, grouped" : "stack, flat",
                       {{"entries", rows.size()}, {"different stacks", different.size()}}};
}

Result<SideFileFacts> ReadConstructFacts(const std::string& path) {
  PL_TRY_ASSIGN(const dump_json::CallTree tree, dump_json::ReadCallTree(path));
  const auto roots =
      std::ranges::count_if(tree.rows, [](const auto& row) { return row.parent.empty(); });
  return SideFileFacts{
      path,
      "construct",
      {{"entries", tree.rows.size()}, {"without parent", static_cast<uint64_t>(roots)}}};
}

Status AddFile(const std::string& path, Inventory& inventory) {
  const std::string_view name = BaseName(path);
  if (name.ends_with(".pt") || name.ends_with(".npy")) {
    PL_TRY_ASSIGN(TensorFacts facts, ReadTensorFacts(path));
    inventory.tensors.push_back(std::move(facts));
  } else if (name.ends_with(run_files::kStackJson)) {
    PL_TRY_ASSIGN(SideFileFacts facts, ReadStackFacts(path));
    inventory.side_files.push_back(std::move(facts));
  } else if (name.ends_with(run_files::kConstructJson)) {
    PL_TRY_ASSIGN(SideFileFacts facts, ReadConstructFacts(path));
    inventory.side_files.push_back(std::move(facts));
  } else if (name.starts_with(run_files::kJournal)) {
    PL_TRY_ASSIGN(JournalFacts facts, ReadJournalFacts(path));
    inventory.journals.push_back(std::move(facts));
  } else if (name.ends_with(".json") || debug_mode::FormOfLog(path)) {
    PL_TRY_ASSIGN(DumpFacts facts, ReadDumpFacts(path));
    inventory.dumps.push_back(std::move(facts));
  } else if (const auto dump_name = load::DumpNameOf(path)) {
    inventory.device_dumps.push_back(ReadDeviceDump(path, *dump_name));
  } else {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: not a file of a recording (expected dump.json, debug.json, "
                             "stack.json, construct.json, a journal, .pt, .npy or the dump of a "
                             "device)",
                             path));
  }
  return {};
}

}  // namespace

Result<Inventory> TakeInventory(const std::string& path) {
  Inventory inventory;
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(path));
  if (facts.is_link) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: a symbolic link. Name what it points to.", path));
  }
  if (facts.kind == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such file or directory", path));
  }
  if (facts.kind == PathKind::kDirectory) {
    PL_TRY(AddAllBelow(path, inventory));
  } else {
    PL_TRY(AddFile(path, inventory));
  }
  return inventory;
}

namespace {

constexpr size_t kFewValues = 8;

struct ToText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  template <class T>
  std::string operator()(T value) const {
    if constexpr (std::is_integral_v<T>) return std::to_string(value);
    return PythonFloat(static_cast<double>(value));
  }
  template <class T>
  std::string operator()(T real, T imaginary) const {
    std::string text = (*this)(real);
    if (!(imaginary < 0)) text += '+';
    return text + (*this)(imaginary) + "j";
  }
};

void AddStatistic(const char* name, const Statistic& value, TensorFacts& facts) {
  std::string text;
  if (const auto* real = std::get_if<double>(&value)) {
    text = PythonFloat(*real);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    text = std::to_string(*integer);
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    text = *truth ? "true" : "false";
  } else {
    return;
  }
  facts.statistics.emplace_back(name, std::move(text));
}

void Describe(const TensorView& view, TensorFacts& facts) {
  facts.dtype = InfoOf(view.dtype).name;
  facts.shape.assign(view.sizes.begin(), view.sizes.end());
  facts.bytes = view.size_bytes();
  const kernels::TensorScan scan = kernels::ScanTensor(view, {});
  const TensorStats stats = ComputeStats(view.dtype, scan.moments, view.sizes.empty());
  AddStatistic("max", stats.max, facts);
  AddStatistic("min", stats.min, facts);
  AddStatistic("mean", stats.mean, facts);
  AddStatistic("norm", stats.norm, facts);
  facts.nans = scan.moments.nan_count;
  facts.infs = scan.moments.inf_count;
  facts.zeros = scan.moments.zero_count;
  const size_t few = std::min<size_t>(static_cast<size_t>(view.element_count()), kFewValues);
  if (few == 0) return;
  std::vector<std::byte> scratch(BlockGather::kMinScratchBytes);
  BlockGather gather(view, scratch);
  gather.Select(0, few);
  const std::span<const std::byte> bytes = gather.Next();
  for (size_t i = 0; i < few; ++i) {
    const std::byte* at = bytes.data() + i * InfoOf(view.dtype).size_bytes;
    facts.values.push_back(VisitElement(view.dtype, at, ToText()));
  }
}

}  // namespace

Result<TensorFacts> ReadTensorFacts(const std::string& path) {
  TensorFacts facts;
  facts.path = path;
  if (path.ends_with(".npy")) {
    PL_TRY_ASSIGN(const npy::NpyFile file, npy::NpyFile::Open(path));
    Describe(file.view(), facts);
  } else {
    PL_TRY_ASSIGN(const torch_pt::PtFile file, torch_pt::PtFile::Open(path));
    Describe(file.view(), facts);
  }
  return facts;
}

namespace {

std::string_view ContainerName(acl::Container container) {
  switch (container) {
    case acl::Container::kVersion2:
      return "version 2";
    case acl::Container::kVersion1:
      return "version 1";
    case acl::Container::kNano:
      return "nano";
    case acl::Container::kNpy:
      return "array";
  }
  return "";
}

// "2021-02-04 11:52:43 UTC" of microseconds; empty for zero.
std::string TimeText(uint64_t microseconds) {
  if (microseconds == 0) return {};
  const auto seconds = static_cast<std::time_t>(microseconds / 1'000'000);
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return {};
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", parts);
}

std::string TypeText(int32_t code) {
  const acl::TypeInfo* type = acl::FindType(code);
  return type == nullptr || type->file_name.empty() ? acl::TypeName(code)
                                                    : std::string(type->file_name);
}

void AddTensors(const std::vector<acl::DumpedTensor>& tensors, std::string_view role,
                DeviceDumpFacts& facts) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const acl::DumpedTensor& tensor = tensors[i];
    DumpedTensorFacts& one = facts.tensors.emplace_back();
    one.place = fmt::format("{} {}", role, i);
    one.dtype = TypeText(tensor.data_type);
    one.format = DeviceFormatName(tensor.format);
    one.shape = acl::KnownShape(tensor.shape);
    const std::optional<Shape> before = acl::KnownShape(tensor.original_shape);
    if (before && !before->empty() && before != one.shape) one.shape_before = before;
    one.bytes = tensor.size;
    one.is_cut = tensor.is_cut();
  }
}

}  // namespace

DeviceDumpFacts ReadDeviceDump(const std::string& path, const std::string& name) {
  DeviceDumpFacts facts;
  facts.path = path;
  if (const auto parts = acl::ParseDumpFileName(name)) {
    facts.op_type = parts->op_type;
    facts.op_name = parts->op_name;
    facts.timestamp = parts->timestamp;
    facts.time = TimeText(parts->sort_time());
  }
  const Result<acl::DumpFile> file = acl::DumpFile::Open(path, name);
  if (!file) {
    facts.problem = file.error().message();
    const std::string place = path + ": ";
    if (facts.problem.starts_with(place)) facts.problem.erase(0, place.size());
    return facts;
  }
  const acl::Message& message = file->message();
  if (!message.op_name.empty()) facts.op_name = message.op_name;
  facts.container = ContainerName(file->container());
  AddTensors(message.inputs, "input", facts);
  AddTensors(message.outputs, "output", facts);
  facts.buffers = message.buffers.size();
  facts.spaces = message.spaces.size();
  for (const auto* parts : {&message.buffers, &message.spaces}) {
    for (const acl::DumpedBytes& part : *parts) facts.other_bytes += part.size;
  }
  facts.surplus_bytes = file->surplus_bytes();
  const std::string cut = file->FirstCutPart();
  if (!cut.empty()) facts.problem = fmt::format("the file is cut: {} is not all there", cut);
  return facts;
}

Result<std::vector<DeviceDumpFacts>> ReadDeviceDumps(const std::string& directory) {
  PL_TRY_ASSIGN(const load::DumpFiles found, load::FindDumpFiles(directory, {.recursive = true}));
  std::vector<DeviceDumpFacts> all(found.files.size());
  ParallelFor(all.size(),
              [&](size_t i) { all[i] = ReadDeviceDump(found.files[i].path, found.files[i].name); });
  return all;
}

namespace {

void CountValues(const Value& value, uint64_t& tensors, uint64_t& unreadable) {
  if (const auto* tensor = value.As<TensorRecord>()) {
    ++tensors;
    if (tensor->dtype_text == load::kUnreadableDType) ++unreadable;
  } else if (const auto* list = value.As<ValueList>()) {
    for (const Value& element : *list) CountValues(element, tensors, unreadable);
  } else if (const auto* map = value.As<ValueMap>()) {
    for (const auto& [key, member] : *map) CountValues(member, tensors, unreadable);
  }
}

bool HasTensors(const std::string& directory) {
  const auto names = ListDirectory(directory);
  return names && std::ranges::any_of(
                      *names, [](const std::string& name) { return name.ends_with(".npy"); });
}

using Place = std::pair<int64_t, int64_t>;  // rank, step

struct GraphFacts {
  bool has_tensors = false;
  load::StatisticCounts counts{};
  uint64_t unreadable = 0, problems = 0;
};

SideFileFacts FactsOf(const std::vector<std::string>& directories, const Place& place,
                      const GraphFacts& facts) {
  return {load::GraphPath(directories),
          facts.has_tensors ? "static-graph dump, tensors" : "static-graph dump, statistics",
          {{"rank", static_cast<uint64_t>(place.first)},
           {"step", static_cast<uint64_t>(place.second)},
           {"kernels", facts.counts.kernels},
           {"values", facts.counts.values},
           {"unreadable", facts.unreadable},
           {"problems", facts.problems}}};
}

Result<SideFileFacts> FactsOfGraph(const std::vector<std::string>& directories,
                                   const Place& place) {
  if (std::ranges::none_of(directories, HasTensors)) {
    // Tables may be larger than the memory.
    PL_TRY_ASSIGN(const load::StatisticCounts counts, load::CountStatistics(directories));
    if (counts.values > 0) return FactsOf(directories, place, {.counts = counts});
  }
  PL_TRY_ASSIGN(const load::GraphRecords records, load::ReadGraphDump(directories));
  uint64_t tensors = 0, unreadable = 0;
  for (const Call& call : records.calls) {
    for (const auto& [key, value] : call.members) CountValues(value, tensors, unreadable);
  }
  return FactsOf(
      directories, place,
      {records.has_tensors, {records.calls.size(), tensors}, unreadable, records.problems.size()});
}

Result<SideFileFacts> FactsOfAtb(const std::string& directory) {
  PL_TRY_ASSIGN(const load::AtbDump dump, load::ReadAtbDump(directory));
  std::set<std::string_view> operators;
  uint64_t missing = 0;
  for (const load::AtbTensor& tensor : dump.tensors) {
    operators.insert(tensor.operation);
    if (dump.has_tensors && KindOf(tensor.path) != PathKind::kFile) ++missing;
  }
  return SideFileFacts{directory,
                       dump.has_tensors ? "ATB dump, tensors" : "ATB dump, statistics",
                       {{"operators", operators.size()},
                        {"values", dump.tensors.size()},
                        {"missing files", missing},
                        {"rows left out", dump.left_out}}};
}

}  // namespace

Result<std::vector<SideFileFacts>> ReadGraphFacts(const std::string& directory) {
  std::vector<SideFileFacts> facts;
  if (load::IsAtbDump(directory)) {
    PL_TRY_ASSIGN(SideFileFacts found, FactsOfAtb(directory));
    facts.push_back(std::move(found));
    return facts;
  }
  std::map<Place, std::vector<std::string>> places;
  for (const load::GraphDirectory& each : load::ListGraphDirectories(directory)) {
    places[{each.rank, each.step}].push_back(each.path);
  }
  for (const auto& [place, directories] : places) {
    PL_TRY_ASSIGN(SideFileFacts found, FactsOfGraph(directories, place));
    facts.push_back(std::move(found));
  }
  return facts;
}

}  // namespace plumbline
