#include "store/run_writer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/log.h"
#include "plumbline/c_api.h"

namespace plumbline {
namespace {

using run_layout::kJournal;

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
Status MoveAside(const std::string& directory, const std::string& path) {
  const std::time_t now = std::time(nullptr);
  for (int attempt = 0;; ++attempt) {
    const std::string aside = JoinPath(directory, run_layout::StaleJournalName(now, attempt));
    if (KindOf(aside) != PathKind::kMissing) continue;
    PL_TRY(RenameFile(path, aside));
    LogWarning(
        fmt::format("{}: an earlier run stopped here without finishing; its journal is kept as {}",
                    directory, BaseName(aside)));
    return {};
  }
}

// The empty, locked journal file of `directory`; a closed File when another process holds it.
Result<File> LockJournal(const std::string& directory) {
  const std::string path = JoinPath(directory, kJournal);
  for (int attempt = 0; attempt < kOpenAttempts; ++attempt) {
    PL_TRY_ASSIGN(File file, File::OpenAppend(path));
    PL_TRY_ASSIGN(const bool locked, file.TryLock());
    if (!locked) return File();
    // Between open and lock the previous owner may have removed or moved the file.
    PL_TRY_ASSIGN(const bool current, IsOpenAs(file, path));
    if (!current) continue;
    PL_TRY_ASSIGN(const uint64_t size, FileSize(path));
    if (size == 0) return file;
    if (NeedsKeeping(path)) {
      PL_TRY(MoveAside(directory, path));
    } else {
      PL_TRY(RemoveFile(path));
    }
  }
  return Error(ErrorCode::kIo, fmt::format("{}: other processes keep replacing it", path));
}

// Everything a directory needs before the first entry.
struct Claim {
  std::string directory;
  File journal;
};

Result<Claim> ClaimDirectory(const RunOptions& options, Worker& sync) {
  Claim claim;
  claim.directory = run_layout::RankDirectory(options.dump_path, options.step, options.rank);
  PL_TRY(MakeDirectories(claim.directory));
  PL_TRY_ASSIGN(claim.journal, LockJournal(claim.directory));
  if (!claim.journal.is_open()) {
    // The holder may be this recorder, still finishing an earlier step of the same number.
    sync.Drain();
    PL_TRY_ASSIGN(claim.journal, LockJournal(claim.directory));
  }
  if (claim.journal.is_open()) return claim;
  const std::string contested = claim.directory;
  claim.directory = run_layout::ContestedDirectory(contested, ::getpid());
  LogWarning(fmt::format(
      "{}: another process is recording into it; this process (pid {}) writes to {} instead. Give "
      "each process its own dump_path or rank",
      contested, ::getpid(), claim.directory));
  PL_TRY(MakeDirectories(claim.directory));
  PL_TRY_ASSIGN(claim.journal, LockJournal(claim.directory));
  if (claim.journal.is_open()) return claim;
  return Error(
      ErrorCode::kIo,
      fmt::format("{}: in use by another process. Choose another dump_path", claim.directory));
}

void LogIfFailed(const Status& status) {
  if (!status) LogWarning(status.error().message());
}

Status WarnOfOldTensors(const std::string& directory) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  if (names.empty()) return {};
  LogWarning(fmt::format(
      "{}: holds {} files of an earlier run. Those this run does not overwrite stay, and dump.json "
      "does not name them",
      directory, names.size()));
  return {};
}

// fsync of everything in the final files of a directory.
Status SyncFiles(const std::string& directory, bool has_tensors, EntryTable::Files files) {
  // One call per file system instead of one per file: a step can have thousands of tensor files.
  if (has_tensors) return SyncFileSystem(directory);
  std::vector<std::string_view> names = {run_layout::kDumpJson};
  if (files == EntryTable::Files::kDebug) names = {run_layout::kDebugJson};
  if (files == EntryTable::Files::kAll) {
    names.push_back(run_layout::kStackJson);
    names.push_back(run_layout::kConstructJson);
  }
  for (const std::string_view name : names) {
    PL_TRY_ASSIGN(File file, File::OpenRead(JoinPath(directory, name)));
    PL_TRY(file.Sync());
  }
  return SyncDirectory(directory);
}

}  // namespace

Result<std::unique_ptr<RunWriter>> RunWriter::Open(const RunOptions& options,
                                                   StoreThreads& threads) {
  PL_TRY_ASSIGN(Claim claim, ClaimDirectory(options, threads.sync));
  JournalHeader header{options.header, PLUMBLINE_VERSION, options.run_id};
  header.run.dump_data_dir.clear();
  if (options.has_tensors) {
    header.run.dump_data_dir = JoinPath(claim.directory, run_layout::kTensorDirectory);
    PL_TRY(MakeDirectories(header.run.dump_data_dir));
    PL_TRY(WarnOfOldTensors(header.run.dump_data_dir));
  }
  PL_TRY(RemoveFile(JoinPath(claim.directory, run_layout::kErrorLog)));
  if (options.files != EntryTable::Files::kAll) {
    // What an earlier run left would be taken for this run's.
    PL_TRY(RemoveFile(JoinPath(claim.directory, run_layout::kStackJson)));
    PL_TRY(RemoveFile(JoinPath(claim.directory, run_layout::kConstructJson)));
  }
  PL_TRY(EntryTable().Write(claim.directory, header.run, nullptr, {.files = options.files}));
  const std::string mark =
      fmt::format("{{\"tool\": \"plumbline\", \"version\": \"{}\"}}\n", PLUMBLINE_VERSION);
  PL_TRY(WriteFileAtomically(JoinPath(claim.directory, run_layout::kRunMark), mark, false));
  PL_TRY_ASSIGN(Journal journal, Journal::Start(std::move(claim.journal), header));
  return std::unique_ptr<RunWriter>(new RunWriter(threads, std::move(claim.directory),
                                                  std::move(header.run), options.files,
                                                  std::move(journal)));
}

RunWriter::RunWriter(StoreThreads& threads, std::string directory, RunHeader header,
                     EntryTable::Files files, Journal journal)
    : threads_(threads),
      directory_(std::move(directory)),
      tensor_directory_(JoinPath(directory_, run_layout::kTensorDirectory)),
      header_(std::move(header)),
      files_(files),
      pid_(::getpid()),
      journal_(std::move(journal)) {}

RunWriter::~RunWriter() {
  if (!changed_ || ::getpid() != pid_) return;
  LogWarning(fmt::format(
      "{}: recording ended without writing dump.json. Run `plumb recover {}` to write it",
      directory_, directory_));
}

void RunWriter::Journaled(const Status& status) {
  changed_ = true;
  if (status) return;
  journal_failed_ = true;
  LogError(
      fmt::format("{}. The journal is switched off: recording goes on, but what is recorded before "
                  "the next stop() or step() is lost if the process is killed",
                  status.error().message()));
}

void RunWriter::AddEntry(std::span<const std::byte> packed) {
  const std::lock_guard lock(mutex_);
  const Status added = entries_.Add(packed);
  if (!added) {
    AddLossLocked({"calls_dropped", 1, added.error().message()});
    return;
  }
  if (journal_failed_) {
    ++unjournaled_;
    return;
  }
  Journaled(journal_.Append(RecordKind::kEntry, packed));
}

void RunWriter::RemoveEntry(std::string_view name) {
  const std::lock_guard lock(mutex_);
  entries_.Remove(name);
  changed_ = true;
  if (!journal_failed_) Journaled(journal_.AppendRemove(name));
}

void RunWriter::AddStack(uint32_t id, std::span<const std::string> frames) {
  const std::lock_guard lock(mutex_);
  entries_.AddStack(id, frames);
  changed_ = true;
  if (!journal_failed_) Journaled(journal_.AppendStack(id, frames));
}

void RunWriter::AddLoss(std::string_view counter, uint64_t count, std::string_view sentence) {
  const std::lock_guard lock(mutex_);
  AddLossLocked({std::string(counter), count, std::string(sentence)});
}

void RunWriter::AddLossLocked(const Loss& loss) {
  MergeLoss(losses_, loss);
  changed_ = true;
  if (!journal_failed_) Journaled(journal_.AppendLoss(loss));
}

std::string RunWriter::ReserveTensorName(std::string_view tensor_name, NameUse use) {
  const std::lock_guard lock(mutex_);
  if (use == NameUse::kNew) return names_.Reserve(tensor_name);
  std::string name = names_.Replace(tensor_name);
  // The file will hold other contents: nothing may be linked to it any more.
  if (const auto it = key_of_file_.find(name); it != key_of_file_.end()) {
    file_of_key_.erase(it->second);
    key_of_file_.erase(it);
  }
  return name;
}

bool RunWriter::LinkIfKnown(const ContentKey& key, std::string_view file_name) {
  const std::lock_guard lock(mutex_);
  const auto it = file_of_key_.find(key);
  if (it == file_of_key_.end()) return false;
  TensorJob job;
  job.path = JoinPath(tensor_directory_, file_name);
  job.link_from = JoinPath(tensor_directory_, it->second);
  last_ticket_ = threads_.tensors.Submit(std::move(job));
  return true;
}

void RunWriter::SaveTensor(const SaveRequest& request, TensorBuffer buffer) {
  const std::lock_guard lock(mutex_);
  TensorJob job;
  job.path = JoinPath(tensor_directory_, request.file_name);
  job.dtype = request.dtype;
  job.sizes.assign(request.sizes.begin(), request.sizes.end());
  job.crc32 = request.crc32;
  job.buffer = std::move(buffer);
  std::string name(request.file_name);
  key_of_file_.insert_or_assign(name, request.key);
  file_of_key_.insert_or_assign(request.key, std::move(name));
  last_ticket_ = threads_.tensors.Submit(std::move(job));
}

void RunWriter::Secure() {
  const std::lock_guard lock(mutex_);
  threads_.tensors.WaitFor(last_ticket_);
  if (!journal_failed_) Journaled(journal_.Sync());
}

Status RunWriter::Publish() {
  const std::lock_guard lock(mutex_);
  PL_TRY(PublishLocked());
  threads_.sync.Submit(directory_,
                       [directory = directory_, tensors = has_tensors(), files = files_] {
                         LogIfFailed(SyncFiles(directory, tensors, files));
                       });
  return {};
}

Status RunWriter::PublishIfGrown() {
  constexpr uint64_t kSmallBytes = uint64_t{256} << 10;
  constexpr uint64_t kShare = 8;
  {
    const std::lock_guard lock(mutex_);
    const uint64_t total = entries_.bytes_added();
    if (total > kSmallBytes && (total - published_bytes_) * kShare < total) return {};
  }
  return Publish();
}

Status RunWriter::PublishLocked() {
  threads_.tensors.WaitFor(last_ticket_);
  if (!changed_) return {};
  EntryTable::KeepTensor keep_tensor;
  if (threads_.tensors.stats().lost > 0) {
    keep_tensor = [this](const std::string& name) {
      return KindOf(JoinPath(tensor_directory_, name)) == PathKind::kFile;
    };
  }
  PL_TRY_ASSIGN(const EntryTable::WriteResult result,
                entries_.Write(directory_, header_, keep_tensor, {.files = files_}));
  changed_ = false;
  published_bytes_ = entries_.bytes_added();
  if (result.tensors_dropped > 0 || unjournaled_ > 0 || !losses_.empty()) {
    LogIfFailed(WriteErrorLog(result));
  }
  return {};
}

Status RunWriter::WriteErrorLog(const EntryTable::WriteResult& result) const {
  std::tm local{};
  const std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &local);
  std::vector<Loss> losses = losses_;
  if (result.tensors_dropped > 0) {
    losses.push_back({"tensors_dropped", result.tensors_dropped,
                      "tensor files that could not be written; dump.json does not name them"});
  }
  if (unjournaled_ > 0) {
    losses.push_back({"records_not_journaled", unjournaled_,
                      "records kept in memory only, because the journal could not be written"});
  }
  std::string text;
  for (const Loss& loss : losses) {
    text += fmt::format("[{:%Y-%m-%d %H:%M:%S %z}] [ERROR] {}: {} ({})\n", local, loss.counter,
                        loss.count, OneLine(loss.sentence));
  }
  return WriteFileAtomically(JoinPath(directory_, run_layout::kErrorLog), text, /*durable=*/false);
}

Status RunWriter::Finish() {
  const std::lock_guard lock(mutex_);
  PL_TRY(PublishLocked());
  // Shared only because std::function must be copyable.
  auto finish = [directory = directory_, tensors = has_tensors(), files = files_,
                 sealable = !journal_failed_,
                 journal = std::make_shared<Journal>(std::move(journal_))] {
    if (const Status synced = SyncFiles(directory, tensors, files); !synced) {
      // Not known to be on disk: the journal stays.
      LogWarning(synced.error().message());
      return;
    }
    if (sealable) LogIfFailed(journal->AppendSeal());
    LogIfFailed(RemoveFile(JoinPath(directory, kJournal)));
    LogIfFailed(journal->Close());
  };
  threads_.sync.Submit(directory_, std::move(finish));
  return {};
}

bool RunWriter::failed() const {
  const std::lock_guard lock(mutex_);
  return journal_failed_;
}

std::vector<Loss> RunWriter::losses() const {
  const std::lock_guard lock(mutex_);
  return losses_;
}

}  // namespace plumbline
