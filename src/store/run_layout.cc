#include "store/run_layout.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <span>
#include <utility>

#include "base/file/file.h"
#include "base/memory/digest.h"
#include "base/process/log.h"
#include "record/run_files.h"
#include "store/journal.h"

namespace plumbline::run_layout {

namespace {

// Bytes of a file name without extension; longer ones are cut (file systems allow 255, and a
// temporary name and ".dup{k}" need room).
constexpr size_t kMaxNameBytes = 200;
constexpr size_t kKeptNameBytes = 180;

bool IsAllowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

// The file name without its extension.
std::string Stem(std::string_view tensor_name) {
  std::string stem(tensor_name);
  for (char& c : stem) {
    if (!IsAllowed(c)) c = '_';
  }
  // A leading dot would hide the file and make it look like a temporary.
  if (stem.empty() || stem.front() == '.') stem.insert(stem.begin(), '_');
  if (stem.size() <= kMaxNameBytes) return stem;
  Xxh3 hash;
  hash.Update(std::as_bytes(std::span(tensor_name)));
  return fmt::format("{}.{:016x}", stem.substr(0, kKeptNameBytes), hash.Finish().low);
}

}  // namespace

std::string StepName(int64_t step) { return fmt::format("step{}", step); }

std::string RankName(std::optional<int> rank) {
  return rank ? fmt::format("rank{}", *rank) : "rank";
}

std::string RankDirectory(std::string_view dump_path, std::optional<int64_t> step,
                          std::optional<int> rank) {
  if (!step) return JoinPath(dump_path, RankName(rank));
  return JoinPath(JoinPath(dump_path, StepName(*step)), RankName(rank));
}

std::string ContestedDirectory(std::string_view rank_directory, pid_t pid) {
  return fmt::format("{}_{}", rank_directory, pid);
}

std::string StaleJournalName(std::time_t when, int attempt) {
  std::tm local{};
  ::localtime_r(&when, &local);
  const std::string name = fmt::format("{}.{:%Y%m%d%H%M%S}", run_files::kJournal, local);
  return attempt == 0 ? name : fmt::format("{}.{}", name, attempt);
}

bool IsStaleJournal(std::string_view name) {
  if (!name.starts_with(run_files::kJournal)) return false;
  name.remove_prefix(run_files::kJournal.size());
  return name.size() > 1 && name[0] == '.' && name[1] >= '0' && name[1] <= '9';
}

bool IsTemporary(std::string_view name) { return name.starts_with('.') && name.ends_with(".tmp"); }

std::string TensorFileName(std::string_view tensor_name, std::string_view extension) {
  return Stem(tensor_name).append(extension);
}

std::string_view TensorExtension(std::string_view framework) {
  return framework == "pytorch" ? ".pt" : ".npy";
}

std::string TensorNames::Reserve(std::string_view tensor_name) {
  const std::string stem = Stem(tensor_name);
  std::string name = stem;
  // The first use of a stem is plain; later ones are numbered. A numbered name may itself be taken
  // by a tensor whose own name looks like that, hence the loop.
  for (uint32_t& uses = uses_[stem];;) {
    const uint32_t use = uses++;
    if (use == 0) break;
    name = fmt::format("{}.dup{}", stem, use);
    if (uses_.emplace(name, 1).second) break;
  }
  return name.append(extension_);
}

std::string TensorNames::Replace(std::string_view tensor_name) {
  std::string stem = Stem(tensor_name);
  uses_.try_emplace(stem, 1);
  return stem.append(extension_);
}

}  // namespace plumbline::run_layout

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
