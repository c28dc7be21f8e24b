#include "store/recover.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "formats/json/error_log.h"
#include "record/run_files.h"
#include "store/entry_table.h"
#include "store/run_layout.h"

namespace plumbline {
namespace {

using run_files::kJournal;

// Name of a journal that had damage before its end, kept for a closer look.
constexpr std::string_view kDamagedJournal = ".dump.journal.damaged";
constexpr size_t kMaxDepth = 16;  // directory levels below the given path

// What the intact records of a journal hold.
struct JournalContent {
  std::optional<JournalHeader> header;
  EntryTable entries;
};

Status Take(const JournalRecord& record, JournalContent& content, Recovery& recovery) {
  switch (record.kind) {
    case RecordKind::kHeader: {
      PL_TRY_ASSIGN(content.header, ParseJournalHeader(record.payload));
      break;
    }
    case RecordKind::kEntry:
      if (!content.entries.Add(record.payload)) ++recovery.entries_damaged;
      break;
    case RecordKind::kStack: {
      PL_TRY_ASSIGN(const StackDefinition stack, ParseStack(record.payload));
      content.entries.AddStack(stack.id, stack.frames);
      break;
    }
    case RecordKind::kLoss: {
      PL_TRY_ASSIGN(const Loss loss, ParseLoss(record.payload));
      MergeLoss(recovery.losses, loss);
      break;
    }
    case RecordKind::kRemove: {
      PL_TRY_ASSIGN(const std::string name, ParseRemove(record.payload));
      content.entries.Remove(name);
      break;
    }
    case RecordKind::kLate:
      if (!content.entries.AddLate(record.payload)) ++recovery.entries_damaged;
      break;
    case RecordKind::kSeal:
      break;
    default:
      // A kind of a later version; its checksum is right, so it is skipped, not an error.
      ++recovery.entries_damaged;
  }
  return {};
}

// Which files the run was writing: they were made, empty, when it began.
EntryTable::Files FilesOf(const std::string& directory, const RunHeader& header) {
  if (header.level == "debug") return EntryTable::Files::kDebug;
  const bool all = KindOf(JoinPath(directory, run_files::kStackJson)) == PathKind::kFile;
  return all ? EntryTable::Files::kAll : EntryTable::Files::kDumpOnly;
}

// Adds what the recorder had counted in the log of this directory, the same losses as in its
// journal, where the journal could not be written any more: the larger count is the later one.
void AddLogged(const std::vector<Loss>& logged, std::vector<Loss>& losses) {
  for (const Loss& loss : logged) {
    const auto known = std::ranges::find(losses, loss.counter, &Loss::counter);
    if (known == losses.end()) {
      losses.push_back(loss);
    } else {
      *known = {loss.counter, std::max(known->count, loss.count), loss.sentence};
    }
  }
}

// Those whose names are recorded and whose files are not there.
void AddMissingTensors(uint64_t count, std::vector<Loss>& losses) {
  if (count == 0) return;
  const Loss* known = FindLoss(losses, error_log::kTensorsDropped);
  MergeLoss(losses,
            {std::string(error_log::kTensorsDropped), count,
             known != nullptr ? known->sentence
                              : "the process ended before these tensor files were written"});
}

// Those that a device had not given when the process ended.
void AddMissingValues(uint64_t count, std::vector<Loss>& losses) {
  if (count == 0) return;
  losses.push_back({std::string(error_log::kValuesDropped), count,
                    "the process ended before their device had given these statistics"});
}

// What the log of the directory says; nothing where there is none. It would be replaced.
Result<std::vector<Loss>> LoggedLosses(const std::string& directory) {
  const std::string path = JoinPath(directory, run_files::kErrorLog);
  if (KindOf(path) == PathKind::kMissing) return std::vector<Loss>();
  return error_log::Read(path);
}

// The final files, from an unsealed journal.
Status WriteFiles(const JournalContent& content, const Directory& directory,
                  const std::optional<Directory>& tensors, const std::vector<Loss>& logged,
                  Recovery& recovery) {
  // One of this name is of this run: those of earlier runs were removed before it was recorded.
  const auto has_file = [&](const std::string& name) {
    return tensors && tensors->KindOf(name) == PathKind::kFile;
  };
  EntryTable::WriteOptions options;
  options.files = FilesOf(recovery.directory, content.header->run);
  options.durable = true;
  // As when the run itself writes them: dump.json never stands without the record of what it lacks.
  options.before_dump = [&](const EntryTable::WriteResult& result) -> Status {
    std::vector<Loss> losses = recovery.losses;
    AddMissingTensors(result.tensors_dropped, losses);
    AddMissingValues(result.values_missing, losses);
    AddLogged(logged, losses);
    const uint64_t damaged = recovery.entries_damaged + result.entries_damaged;
    if (damaged > 0) losses.push_back({"entries_damaged", damaged, "records of the journal"});
    // A disk that was full cut it before the death of the process did.
    if (FindLoss(losses, error_log::kRecordsDropped) == nullptr &&
        FindLoss(losses, error_log::kEndedEarly) == nullptr) {
      losses.push_back(
          {std::string(error_log::kEndedEarly), 1,
           "the process ended while it was recorded; what should follow is not known"});
    }
    constexpr size_t kMostBytes = std::numeric_limits<size_t>::max();
    return WriteFileAtomically(directory, run_files::kErrorLog,
                               error_log::Format(losses, kMostBytes), /*durable=*/false);
  };
  PL_TRY_ASSIGN(const EntryTable::WriteResult written,
                content.entries.Write(directory, content.header->run, has_file, options));
  recovery.calls = content.entries.call_count() - written.entries_damaged;
  recovery.tensors_missing = written.tensors_dropped;
  recovery.entries_damaged += written.entries_damaged;
  AddLogged(logged, recovery.losses);
  return {};
}

// Temporary files that the killed process was writing, and space it had taken. Best effort.
void RemoveTemporaries(const Directory& directory) {
  const auto names = directory.List();
  if (!names) return;
  for (const std::string& name : *names) {
    if (run_layout::IsTemporary(name)) (void)directory.Remove(name);
  }
}

bool IsJournalDirectory(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == run_files::kJournal) return true;
  }
  return false;
}

void Walk(const std::string& directory, size_t depth, RecoverReport& report) {
  const auto names = ListDirectory(directory);
  if (!names) {
    report.failures.push_back(names.error());
    return;
  }
  if (IsJournalDirectory(*names)) {
    auto recovery = RecoverDirectory(directory);
    if (recovery) {
      report.directories.push_back(*std::move(recovery));
    } else {
      report.failures.push_back(std::move(recovery).error());
    }
  }
  if (depth == kMaxDepth) return;
  for (const std::string& name : *names) {
    if (name == run_files::kTensorDirectory) continue;
    const std::string path = JoinPath(directory, name);
    const auto facts = Inspect(path);
    if (facts && facts->kind == PathKind::kDirectory) Walk(path, depth + 1, report);
  }
}

}  // namespace

Result<Recovery> RecoverDirectory(const std::string& directory) {
  Recovery recovery;
  recovery.directory = directory;
  const std::string path = JoinPath(directory, run_files::kJournal);
  if (KindOf(path) == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no journal to recover from", directory));
  }
  PL_TRY_ASSIGN(File lock, File::OpenRead(path));
  PL_TRY_ASSIGN(const bool locked, lock.TryLock());
  recovery.in_use = !locked;
  if (!locked) return recovery;
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    if (run_layout::IsStaleJournal(name)) recovery.stale_journals.push_back(name);
  }
  PL_TRY_ASSIGN(const Directory handle, Directory::Open(directory));
  std::optional<Directory> tensors;
  const std::string tensor_path = JoinPath(directory, run_files::kTensorDirectory);
  if (KindOf(tensor_path) == PathKind::kDirectory) {
    PL_TRY_ASSIGN(tensors, Directory::Open(tensor_path));
  }
  JournalContent content;
  {
    PL_TRY_ASSIGN(const auto bytes, MappedFile::Open(path));
    const auto scan = ReadJournal(bytes->bytes(), [&](const JournalRecord& record) {
      return Take(record, content, recovery);
    });
    if (!scan) return scan.error().In(path);
    recovery.bytes_dropped = scan->bytes_dropped;
    recovery.already_final = scan->sealed;
    recovery.journal_damaged = scan->damaged;
  }
  PL_TRY_ASSIGN(const std::vector<Loss> logged, LoggedLosses(directory));
  recovery.files_are_newer = FindLoss(logged, error_log::kNotJournaled) != nullptr;
  // Without a header not even the empty files were complete: nothing was recorded yet.
  if (!recovery.already_final && !recovery.files_are_newer && content.header) {
    PL_TRY(WriteFiles(content, handle, tensors, logged, recovery));
  }
  RemoveTemporaries(handle);
  if (tensors) RemoveTemporaries(*tensors);
  if (recovery.journal_damaged) {
    PL_TRY(RenameFile(path, JoinPath(directory, kDamagedJournal)));
  } else {
    PL_TRY(RemoveFile(path));
  }
  PL_TRY(SyncDirectory(directory));
  return recovery;
}

const Loss* CutOf(const Recovery& recovery) {
  return FindLoss(recovery.losses, error_log::kRecordsDropped);
}

Result<RecoverReport> RecoverAll(const std::string& path) {
  if (KindOf(path) != PathKind::kDirectory) {
    return Error(
        ErrorCode::kNotFound,
        fmt::format("{}: no such directory (expected a dump, step or rank directory)", path));
  }
  RecoverReport report;
  Walk(path, 0, report);
  return report;
}

}  // namespace plumbline
