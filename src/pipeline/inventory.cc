#include "pipeline/inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/file.h"
#include "formats/dump_json.h"
#include "load/detect.h"
#include "load/rank_directories.h"
#include "load/single_dump.h"
#include "pipeline/device_dump/inventory_device.h"
#include "pipeline/graphs/inventory_graphs.h"
#include "pipeline/inventory_tensor.h"
#include "pipeline/overflow/bad_value.h"
#include "record/run_files.h"

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

template <class Table>
uint64_t CountRows(const std::string& path, Result<Table> (*read)(const std::string&),
                   DumpFacts& facts) {
  if (KindOf(path) != PathKind::kFile) {
    facts.missing_files.emplace_back(BaseName(path));
    return 0;
  }
  const Result<Table> table = read(path);
  if (table) return table->size();
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

Result<DumpFacts> ReadDumpFacts(const std::string& path) {
  DumpFacts facts;
  facts.path = path;
  const std::string directory(DirectoryOf(path));
  PL_TRY_ASSIGN(const dump_json::DumpFile file, dump_json::ReadDump(path, /*salvage=*/true));
  facts.header = file.header;
  facts.loss = file.loss;
  facts.entries = file.calls.size();
  std::unordered_set<std::string> named;
  for (const Call& call : file.calls) {
    ++facts.kinds[static_cast<size_t>(call.kind)];
    for (const auto& [key, value] : call.members) CountTensors(value, facts, named);
    if (HasBadValue(call)) ++facts.bad_entries;
  }
  const load::RecordingState state = load::StateOf(directory, BaseName(path));
  facts.loss.recorder_drops = state.losses;
  if (!state.log_problem.empty()) facts.loss.side_files.push_back(state.log_problem);
  facts.loss.unfinished = state.unfinished;
  facts.header.by_plumbline = KindOf(JoinPath(directory, run_files::kRunMark)) == PathKind::kFile;
  if (!facts.header.holds_saves()) {
    facts.stacks =
        CountRows(JoinPath(directory, run_files::kStackJson), dump_json::ReadStack, facts);
    facts.parents =
        CountRows(JoinPath(directory, run_files::kConstructJson), dump_json::ReadConstruct, facts);
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
  PL_TRY_ASSIGN(const dump_json::ConstructTable rows, dump_json::ReadConstruct(path));
  const auto roots =
      std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.second.empty(); });
  return SideFileFacts{
      path,
      "construct",
      {{"entries", rows.size()}, {"without parent", static_cast<uint64_t>(roots)}}};
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
  } else if (name.ends_with(".json")) {
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

}  // namespace plumbline
