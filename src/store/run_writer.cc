#include "store/run_writer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <utility>

#include "base/process/log.h"
#include "base/text/json.h"
#include "formats/json/error_log.h"
#include "plumbline/c_api.h"
#include "record/run_files.h"

namespace plumbline {
namespace {

using run_files::kJournal;

void LogIfFailed(const Status& status) {
  if (!status) LogWarning(status.error().message());
}

// fsync of everything in the final files of a directory.
Status SyncFiles(const Directory& directory, bool has_tensors, EntryTable::Files files) {
  // One call per file system instead of one per file: a step can have thousands of tensor files.
  if (has_tensors) return directory.SyncFileSystem();
  std::vector<std::string_view> names = {EntryTable::MainFileOf(files)};
  if (files == EntryTable::Files::kAll) {
    names.push_back(run_files::kStackJson);
    names.push_back(run_files::kConstructJson);
  }
  for (const std::string_view name : names) {
    PL_TRY_ASSIGN(File file, File::OpenRead(directory, name));
    PL_TRY(file.Sync());
  }
  return directory.Sync();
}

// Readers take a journal that is not older than dump.json as the sign that dump.json lacks calls,
// and a small step begins and ends within one tick of a file system's clock. A second: some keep
// no finer times. Where it fails, readers ask for a recovery that adds nothing.
void MakeOlder(Journal& journal, const std::string& main_file) {
  constexpr int64_t kSecond = 1'000'000'000;
  const Result<int64_t> written = ModifiedAt(main_file);
  if (written) (void)journal.SetModifiedAt(*written - kSecond);
}

// Nothing to say of a directory that the user has removed or moved since: it was complete.
void ReportUnsynced(const Status& synced, const Directory& directory, Trouble& trouble) {
  if (synced || !directory.CheckPlace()) return;
  trouble.Report(Harm::kSync, directory.path(), synced.error(),
                 "What was written stands, but may not survive a power failure");
}

// What stands in the hidden `.run`: which run the files beside it are of.
std::string RunMark(const RunOptions& options) {
  char host[HOST_NAME_MAX + 1] = {};
  (void)::gethostname(host, sizeof(host) - 1);
  std::tm local{};
  const std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &local);
  std::string text = R"({"tool": "plumbline", "version": ")" PLUMBLINE_VERSION R"(", "run_id": )";
  json::AppendString(options.run_id, text);
  text += R"(, "host": )";
  json::AppendString(host, text);
  text += fmt::format(R"(, "pid": {}, "started": "{:%Y-%m-%d %H:%M:%S %z}"}})", ::getpid(), local);
  text += '\n';
  return text;
}

}  // namespace

Result<std::unique_ptr<RunWriter>> RunWriter::Open(const RunOptions& options,
                                                   StoreThreads& threads) {
  if (options.channel != nullptr) {
    return std::unique_ptr<RunWriter>(
        new RunWriter(threads, {options.dump_path, {}}, nullptr, options.header, options));
  }
  RankPlace place{options.dump_path, {}};
  if (options.step) place.below.push_back(run_layout::StepName(*options.step));
  place.below.push_back(run_layout::RankName(options.rank));
  PL_TRY_ASSIGN(Claim claim, ClaimRankPlace(std::move(place), threads.sync));
  const auto handle = std::make_shared<const Directory>(std::move(claim.directory));
  const Directory& directory = *handle;
  JournalHeader header{options.header, PLUMBLINE_VERSION, options.run_id};
  header.run.dump_data_dir.clear();
  std::shared_ptr<TensorDirectory> tensors;
  if (options.has_tensors) {
    PL_TRY_ASSIGN(Directory inside, directory.MakeInside(run_files::kTensorDirectory));
    header.run.dump_data_dir = inside.path();
    PL_TRY_ASSIGN(tensors, TensorDirectory::Adopt(std::move(inside)));
  }
  PL_TRY(directory.Remove(run_files::kErrorLog));
  PL_TRY_ASSIGN(LossRecord record, LossRecord::Reserve(handle));
  if (options.files != EntryTable::Files::kAll) {
    // What an earlier run left would be taken for this run's.
    PL_TRY(directory.Remove(run_files::kStackJson));
    PL_TRY(directory.Remove(run_files::kConstructJson));
  }
  PL_TRY(EntryTable().Write(directory, header.run, nullptr, {.files = options.files}));
  PL_TRY(WriteFileAtomically(directory, run_files::kRunMark, RunMark(options), false));
  PL_TRY_ASSIGN(Journal journal, Journal::Start(std::move(claim.journal), header));
  std::unique_ptr<RunWriter> writer(
      new RunWriter(threads, std::move(claim.place), handle, std::move(header.run), options));
  writer->journal_ = std::move(journal);
  writer->record_ = std::move(record);
  writer->tensors_ = std::move(tensors);
  return writer;
}

RunWriter::RunWriter(StoreThreads& threads, RankPlace place,
                     std::shared_ptr<const Directory> handle, RunHeader header,
                     const RunOptions& options)
    : threads_(threads),
      place_(std::move(place)),
      directory_(handle == nullptr ? std::string() : handle->path()),
      header_(std::move(header)),
      files_(options.files),
      pid_(::getpid()),
      channel_(options.channel),
      step_(options.step.value_or(0)),
      handle_(std::move(handle)),
      names_(run_layout::TensorExtension(header_.framework)) {}

RunWriter::~RunWriter() {
  if (!changed_ || publish_failed_ || ::getpid() != pid_) return;
  LogWarning(fmt::format(
      "{}: recording ended without writing dump.json. Run `plumb recover {}` to write it",
      directory_, directory_));
}

void RunWriter::Journaled(const Status& status) {
  changed_ = true;
  if (status) return;
  journal_failed_ = true;
  journal_problem_ = status.error().message();
  threads_.trouble.Report(Harm::kJournal, directory_, status.error(),
                          "The journal is switched off: recording goes on in memory, and what is "
                          "recorded until the end of the step is lost, and counted, unless "
                          "dump.json can be written then");
}

void RunWriter::SendEntry(std::span<const std::byte> packed) {
  const Result<EntryHead> head = PeekEntry(packed);
  if (!head || !head->has_members) return;
  const std::string prefix = std::string(head->name) + ".";
  std::vector<ChannelTensor> tensors;
  bool is_whole = true;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = pending_.lower_bound(prefix);
         it != pending_.end() && it->first.starts_with(prefix); it = pending_.erase(it)) {
      pending_of_file_.erase(it->second.name);
      is_whole = is_whole && it->second.buffer.is_valid();
      tensors.push_back(std::move(it->second));
    }
  }
  channel_->AddEntry(step_, packed, std::move(tensors), is_whole);
}

TensorBuffer RunWriter::AcquireBuffer(size_t bytes) {
  if (channel_ == nullptr) return threads_.tensors.Acquire(bytes);
  TensorBuffer buffer = threads_.tensors.AcquireWithin(bytes);
  while (!buffer.is_valid() && channel_->WaitForRoom()) {
    buffer = threads_.tensors.AcquireWithin(bytes);
  }
  return buffer;
}

void RunWriter::AddEntry(std::span<const std::byte> packed) {
  if (channel_ != nullptr) return SendEntry(packed);
  const std::lock_guard lock(mutex_);
  const Status added = entries_.Add(packed);
  if (!added) {
    AddLossLocked({"calls_dropped", 1, added.error().message()});
    return;
  }
  changed_ = true;
  if (!journal_failed_) Journaled(journal_.Append(RecordKind::kEntry, packed));
  if (!journal_failed_) return;
  ++unjournaled_;
  ++unpublished_;
  RecordLosses();
}

void RunWriter::RemoveEntry(std::string_view name) {
  if (channel_ != nullptr) return;
  const std::lock_guard lock(mutex_);
  entries_.Remove(name);
  changed_ = true;
  if (!journal_failed_) Journaled(journal_.AppendRemove(name));
}

void RunWriter::AddStack(uint32_t id, std::span<const std::string> frames) {
  if (channel_ != nullptr) return;
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
  if (channel_ != nullptr) return;
  changed_ = true;
  if (!journal_failed_) Journaled(journal_.AppendLoss(loss));
  if (journal_failed_) RecordLosses();
}

void RunWriter::AwaitValues(uint64_t number, LateTensor tensor) {
  const std::lock_guard lock(mutex_);
  awaited_.insert_or_assign(number, std::move(tensor));
  awaited_count_ = awaited_.size();
}

std::optional<RunWriter::LateTensor> RunWriter::Awaited(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto awaited = awaited_.find(number);
  if (awaited == awaited_.end()) return std::nullopt;
  return awaited->second;
}

void RunWriter::AddLateLocked(std::span<const std::byte> packed) {
  if (packed.empty()) return;
  const Status added = entries_.AddLate(packed);
  if (!added)
    return AddLossLocked({std::string(error_log::kValuesDropped), 1, added.error().message()});
  changed_ = true;
  if (!journal_failed_) Journaled(journal_.Append(RecordKind::kLate, packed));
}

void RunWriter::AddValues(uint64_t first, uint64_t count, const ValuesOf& values_of) {
  {
    const std::lock_guard lock(mutex_);
    late_.Clear();
    for (uint64_t i = 0; i < count; ++i) {
      const auto awaited = awaited_.find(first + i);
      if (awaited == awaited_.end()) continue;
      late_.Late(first + i, values_of(i, awaited->second));
      awaited_.erase(awaited);
    }
    AddLateLocked(late_.bytes());
    awaited_count_ = awaited_.size();
  }
  RunIfComplete();
}

void RunWriter::DropValues(uint64_t first, uint64_t count, std::string_view why) {
  {
    const std::lock_guard lock(mutex_);
    const size_t dropped = std::erase_if(awaited_, [&](const auto& item) {
      if (item.first - first >= count) return false;
      if (!item.second.file_name.empty()) tensors_->Lose(item.second.file_name);
      return true;
    });
    if (dropped == 0) return;
    values_problem_ = why;
    changed_ = true;
    awaited_count_ = awaited_.size();
  }
  RunIfComplete();
}

bool RunWriter::is_awaiting() const { return awaited_count_ != 0; }

void RunWriter::WhenComplete(std::function<void(RunWriter&)> then) {
  {
    const std::lock_guard lock(mutex_);
    when_complete_ = std::move(then);
  }
  RunIfComplete();
}

void RunWriter::RunIfComplete() {
  std::function<void(RunWriter&)> then;
  {
    const std::lock_guard lock(mutex_);
    if (!awaited_.empty()) return;
    then = std::exchange(when_complete_, nullptr);
  }
  if (then) then(*this);
}

std::vector<Loss> RunWriter::LossesNow() const {
  std::vector<Loss> losses = losses_;
  if (values_missing_ > 0) {
    losses.push_back({std::string(error_log::kValuesDropped), values_missing_,
                      values_problem_.empty()
                          ? "not given by their device when dump.json was written"
                          : values_problem_});
  }
  if (const uint64_t missing = std::max(tensors_missing_, tensors_ ? tensors_->LostFiles() : 0)) {
    const std::string why = threads_.tensors.reason();
    MergeLoss(losses, {std::string(error_log::kTensorsDropped), missing,
                       why.empty() ? "the directory of the tensor files is gone" : why});
  }
  if (unpublished_ > 0) {
    losses.push_back({std::string(error_log::kRecordsDropped), unpublished_, journal_problem_});
  }
  if (unjournaled_ > unpublished_) {
    losses.push_back({std::string(error_log::kNotJournaled), unjournaled_ - unpublished_,
                      "records kept in memory only, because the journal could not be written"});
  }
  return losses;
}

void RunWriter::RecordLosses() {
  const std::vector<Loss> losses = LossesNow();
  // Where it cannot be written, it is tried again with the next loss, and at the end.
  if (!losses.empty()) (void)record_.Write(losses);
}

void RunWriter::HandOver(LastLossRecord& last) {
  if (channel_ != nullptr) return;
  const std::lock_guard lock(mutex_);
  last.Keep(std::move(record_), LossesNow());
}

void RunWriter::CountLostTensor() {
  if (channel_ != nullptr) return;  // the entry is counted
  threads_.tensors.CountLost(1);
  std::string why = threads_.tensors.reason();
  if (why.empty()) why = "no memory for a copy, or the directory is gone";
  AddLoss(error_log::kTensorsDropped, 1, why);
}

std::string RunWriter::ReserveTensorName(std::string_view tensor_name, NameUse use) {
  const std::lock_guard lock(mutex_);
  std::string name =
      use == NameUse::kNew ? names_.Reserve(tensor_name) : names_.Replace(tensor_name);
  if (channel_ != nullptr) {
    ChannelTensor& tensor = pending_[std::string(tensor_name)];
    tensor = {};
    tensor.name = name;
    pending_of_file_[name] = tensor_name;
    return name;
  }
  tensors_->Claim(name);
  if (use == NameUse::kNew) return name;
  // The file will hold other contents: nothing may be linked to it any more.
  if (const auto it = key_of_file_.find(name); it != key_of_file_.end()) {
    file_of_key_.erase(it->second);
    key_of_file_.erase(it);
  }
  return name;
}

bool RunWriter::LinkIfKnown(const ContentKey& key, std::string_view file_name) {
  if (channel_ != nullptr) return false;  // each entry is sent with all of its tensors
  const std::lock_guard lock(mutex_);
  const auto it = file_of_key_.find(key);
  if (it == file_of_key_.end()) return false;
  TensorJob job;
  job.directory = tensors_;
  job.name = file_name;
  job.link_from = it->second;
  last_ticket_ = threads_.tensors.Submit(std::move(job));
  return true;
}

void RunWriter::SaveTensor(const SaveRequest& request, TensorBuffer buffer) {
  const std::lock_guard lock(mutex_);
  if (channel_ != nullptr) {
    const auto name = pending_of_file_.find(std::string(request.file_name));
    if (name == pending_of_file_.end()) return;
    ChannelTensor& tensor = pending_[name->second];
    tensor.dtype = request.dtype;
    tensor.sizes.assign(request.sizes.begin(), request.sizes.end());
    tensor.buffer = std::move(buffer);
    return;
  }
  TensorJob job;
  job.directory = tensors_;
  job.name = request.file_name;
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
  if (channel_ != nullptr) return;
  const std::lock_guard lock(mutex_);
  threads_.tensors.WaitFor(last_ticket_);
  if (!journal_failed_) Journaled(journal_.Sync());
}

std::function<Status()> RunWriter::SyncJob() const {
  return [directory = handle_, tensors = has_tensors(), files = files_] {
    return SyncFiles(*directory, tensors, files);
  };
}

Status RunWriter::Publish() {
  if (::getpid() != pid_ || channel_ != nullptr) return {};
  const std::lock_guard lock(mutex_);
  PL_TRY(PublishLocked());
  threads_.sync.Submit(directory_,
                       [directory = handle_, sync = SyncJob(), &trouble = threads_.trouble] {
                         ReportUnsynced(sync(), *directory, trouble);
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
  Status status = WriteFinalFiles();
  publish_failed_ = !status;
  if (status) return {};
  RecordLosses();
  // Readers take a journal that is newer than dump.json as the sign that dump.json lacks calls.
  (void)journal_.Touch();
  return status;
}

Status RunWriter::WriteFinalFiles() {
  PL_TRY(ReturnToPlace());
  EntryTable::WriteOptions options;
  options.files = files_;
  // A dump.json that lacks something never stands without the record of it.
  options.before_dump = [this](const EntryTable::WriteResult& result) {
    tensors_missing_ = result.tensors_dropped;
    values_missing_ = result.values_missing;
    const std::vector<Loss> losses = LossesNow();
    return losses.empty() ? Status() : record_.Write(losses);
  };
  PL_TRY(entries_.Write(*handle_, header_, TensorFilter(), options));
  // Nothing of it is lost any more.
  if (std::exchange(unpublished_, 0) > 0) RecordLosses();
  changed_ = false;
  published_bytes_ = entries_.bytes_added();
  if (!journal_failed_) MakeOlder(journal_, MainFile());
  return {};
}

std::string RunWriter::MainFile() const {
  return JoinPath(handle_->path(), EntryTable::MainFileOf(files_));
}

Status RunWriter::ReturnToPlace() {
  const Status place = handle_->CheckPlace();
  if (place) return {};
  const bool removed = place.error().code() == ErrorCode::kNotFound;
  threads_.trouble.Report(Harm::kPlace, directory_, place.error(),
                          removed ? "Statistics recorded before are written again when the step "
                                    "ends; tensor files in it are lost and counted"
                                  : "Statistics are written to where it is now; tensors are not "
                                    "stored any more, and counted");
  if (!removed) return {};
  Result<Directory> again = OpenRankPlace(place_);
  if (!again) {
    // Not the trouble that was reported of directory_, which promised that statistics go on.
    threads_.trouble.Report(Harm::kSteps, place_.dump_path, again.error(),
                            "Nothing can be recorded there while this lasts: the statistics of "
                            "this step are lost unless a later stop() or step() can write them");
    return again.error();
  }
  handle_ = std::make_shared<const Directory>(*std::move(again));
  Result<LossRecord> record = LossRecord::Reserve(handle_);
  record_ = record ? *std::move(record) : LossRecord(handle_);
  journal_failed_ = true;  // it went with the directory
  journal_problem_ = place.error().message();
  return {};
}

EntryTable::KeepTensor RunWriter::TensorFilter() const {
  if (!has_tensors()) return nullptr;
  if (!handle_->Holds(run_files::kTensorDirectory, tensors_->directory())) {
    return [](const std::string&) { return false; };
  }
  if (!tensors_->HasLosses()) return nullptr;
  return [this](const std::string& name) { return !tensors_->HasLost(name); };
}

void RunWriter::ReportLeftOvers() const {
  constexpr size_t kShown = 100;
  if (!has_tensors()) return;
  const std::vector<std::string> names = tensors_->LeftOvers();
  if (names.empty()) return;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    list += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kShown) list += fmt::format(" and {} more", names.size() - kShown);
  LogWarning(fmt::format(
      "{}: {} files of an earlier run were left, which dump.json does not name: {}. Remove them, "
      "or record into an empty directory",
      tensors_->directory().path(), names.size(), OneLine(list)));
}

Status RunWriter::Finish() {
  if (::getpid() != pid_) return {};
  if (channel_ != nullptr) {
    channel_->EndStep(step_);
    return {};
  }
  const std::lock_guard lock(mutex_);
  PL_TRY(PublishLocked());
  ReportLeftOvers();
  // Shared only because std::function must be copyable.
  auto finish = [directory = handle_, sync = SyncJob(), sealable = !journal_failed_,
                 main_file = MainFile(), &trouble = threads_.trouble,
                 journal = std::make_shared<Journal>(std::move(journal_))] {
    const Status synced = sync();
    ReportUnsynced(synced, *directory, trouble);
    if (!synced) return;  // not known to be on disk: the journal stays
    if (sealable) {
      LogIfFailed(journal->AppendSeal());
      MakeOlder(*journal, main_file);
    }
    LogIfFailed(directory->Remove(run_files::kJournal));
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
