#include "store/claim.h"

#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <utility>

#include "base/log.h"
#include "record/run_files.h"
#include "store/journal.h"
#include "store/run_layout.h"

namespace plumbline {
namespace {

using run_files::kJournal;

// How often to start over when other processes create and remove the journal at the same time.
constexpr int kOpenAttempts = 16;

// True if the journal holds calls that may not be in the final files.
bool NeedsKeeping(const std::string& path) {
  const auto bytes = MappedFile::Open(path);
  if (!bytes) return true;
  const auto scan = ReadJournal((*bytes)->bytes(), [](const JournalRecord&) { return Status(); });
  if (!scan) return true;
  // The header alone holds no calls; neither does a file that was cut before it.
  return !scan->sealed && scan->records > 1;
}

// Moves an unfinished journal aside, under a name that does not exist yet.
Status MoveAside(const Directory& directory) {
  const std::time_t now = std::time(nullptr);
  for (int attempt = 0;; ++attempt) {
    const std::string aside = run_layout::StaleJournalName(now, attempt);
    if (directory.KindOf(aside) != PathKind::kMissing) continue;
    PL_TRY(directory.Rename(run_files::kJournal, aside));
    LogWarning(
        fmt::format("{}: an earlier run stopped here without finishing; its journal is kept as {}",
                    directory.path(), aside));
    return {};
  }
}

// The empty, locked journal file of `directory`; a closed File when another process holds it.
Result<File> LockJournal(const Directory& directory) {
  for (int attempt = 0; attempt < kOpenAttempts; ++attempt) {
    PL_TRY_ASSIGN(File file, File::OpenAppend(directory, run_files::kJournal));
    PL_TRY_ASSIGN(const bool locked, file.TryLock());
    if (!locked) return File();
    // Between open and lock the previous owner may have removed or moved the file.
    if (!directory.Holds(run_files::kJournal, file)) continue;
    PL_TRY_ASSIGN(const uint64_t size, FileSize(file.path()));
    if (size == 0) return file;
    if (NeedsKeeping(file.path())) {
      PL_TRY(MoveAside(directory));
    } else {
      PL_TRY(directory.Remove(run_files::kJournal));
    }
  }
  return Error(ErrorCode::kIo, fmt::format("{}/{}: other processes keep replacing it",
                                           directory.path(), run_files::kJournal));
}

}  // namespace

Result<Directory> OpenRankPlace(const RankPlace& place) {
  PL_TRY(MakeDirectories(place.dump_path));
  PL_TRY_ASSIGN(Directory directory, Directory::OpenUnlinked(place.dump_path));
  for (const std::string& name : place.below) {
    PL_TRY_ASSIGN(directory, directory.MakeInside(name));
  }
  return directory;
}

Result<Claim> ClaimRankPlace(RankPlace place, Worker& sync) {
  PL_TRY_ASSIGN(Directory directory, OpenRankPlace(place));
  PL_TRY_ASSIGN(File journal, LockJournal(directory));
  if (!journal.is_open()) {
    // The holder may be this recorder, still finishing an earlier step of the same number.
    sync.Drain();
    PL_TRY_ASSIGN(journal, LockJournal(directory));
  }
  if (journal.is_open()) return Claim{std::move(place), std::move(directory), std::move(journal)};
  const std::string contested = directory.path();
  place.below.back() = run_layout::ContestedDirectory(place.below.back(), ::getpid());
  PL_TRY_ASSIGN(directory, OpenRankPlace(place));
  LogWarning(fmt::format(
      "{}: another process is recording into it; this process (pid {}) writes to {} instead. Give "
      "each process its own dump_path or rank",
      contested, ::getpid(), directory.path()));
  PL_TRY_ASSIGN(journal, LockJournal(directory));
  if (journal.is_open()) return Claim{std::move(place), std::move(directory), std::move(journal)};
  return Error(
      ErrorCode::kIo,
      fmt::format("{}: in use by another process. Choose another dump_path", directory.path()));
}

}  // namespace plumbline
