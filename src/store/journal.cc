#include "store/journal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <utility>

#include "base/memory/digest.h"
#include "base/process/log.h"
#include "record/run_files.h"
#include "store/run_layout.h"

namespace plumbline {

bool Trouble::Report(Harm harm, std::string_view directory, const Error& error,
                     std::string_view what_now) {
  const std::string& message = error.message();
  const size_t colon = message.rfind(": ");
  const std::string cause = colon == std::string::npos ? message : message.substr(colon);
  {
    const std::lock_guard lock(mutex_);
    const bool is_new_place = directories_.emplace(harm, directory).second;
    // A cause that is silent because of its directory has not been said: it counts elsewhere.
    if (!is_new_place) return false;
    const bool is_covered =
        harm != Harm::kSteps && harm >= Harm::kJournal && causes_.contains({Harm::kSteps, cause});
    if (is_covered || !causes_.emplace(harm, cause).second) return false;
  }
  LogLoss(fmt::format("{}. {}", message, what_now));
  return true;
}

namespace {

constexpr std::string_view kMagic = "PLJRNL1\n";
constexpr size_t kMagicFamilyBytes = 6;  // "PLJRNL", shared by all versions
constexpr size_t kFrameBytes = 9;        // u32 length, u32 crc, u8 kind

template <class T>
void Put(T value, std::vector<std::byte>& out) {
  const size_t at = out.size();
  out.resize(at + sizeof(T));
  std::memcpy(out.data() + at, &value, sizeof(T));
}

void PutText(std::string_view text, std::vector<std::byte>& out) {
  Put(static_cast<uint32_t>(text.size()), out);
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// Cursor over a payload; every read checks what remains, a failure sticks.
class PayloadReader {
 public:
  explicit PayloadReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T Number() {
    if (bytes_.size() < sizeof(T)) failed_ = true;
    if (failed_) return T{};
    const T value = Load<T>(bytes_.data());
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }

  std::string Text() {
    const auto size = Number<uint32_t>();
    if (bytes_.size() < size) failed_ = true;
    if (failed_) return {};
    std::string text(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return text;
  }

  [[nodiscard]] bool failed() const { return failed_; }

  // Success if exactly all bytes were read.
  Status Done(std::string_view what) const {
    if (!failed_ && bytes_.empty()) return {};
    return Error(ErrorCode::kCorrupt, fmt::format("journal {}: damaged record", what));
  }

 private:
  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

uint32_t Checksum(std::span<const std::byte> kind_and_payload) { return Crc32c(kind_and_payload); }

}  // namespace

Result<Journal> Journal::Start(File file, const JournalHeader& header) {
  Journal journal(std::move(file));
  PL_TRY(journal.file_.Write(kMagic));
  std::vector<std::byte>& payload = journal.payload_;
  for (const std::string* text :
       {&header.run.task, &header.run.level, &header.run.framework, &header.run.dump_data_dir,
        &header.tool_version, &header.run_id}) {
    PutText(*text, payload);
  }
  PL_TRY(journal.Append(RecordKind::kHeader, payload));
  return journal;
}

Status Journal::Append(RecordKind kind, std::span<const std::byte> payload) {
  if (payload.size() > std::numeric_limits<uint32_t>::max()) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: record of {} bytes is too long", file_.path(), payload.size()));
  }
  buffer_.resize(kFrameBytes + payload.size());
  buffer_[8] = static_cast<std::byte>(kind);
  if (!payload.empty()) std::memcpy(buffer_.data() + kFrameBytes, payload.data(), payload.size());
  const auto length = static_cast<uint32_t>(payload.size());
  const uint32_t crc = Checksum(std::span(buffer_).subspan(8));
  std::memcpy(buffer_.data(), &length, sizeof(length));
  std::memcpy(buffer_.data() + 4, &crc, sizeof(crc));
  return file_.Write(buffer_);
}

Status Journal::AppendStack(uint32_t id, std::span<const std::string> frames) {
  payload_.clear();
  Put(id, payload_);
  Put(static_cast<uint32_t>(frames.size()), payload_);
  for (const std::string& frame : frames) PutText(frame, payload_);
  return Append(RecordKind::kStack, payload_);
}

Status Journal::AppendLoss(const Loss& loss) {
  payload_.clear();
  PutText(loss.counter, payload_);
  Put(loss.count, payload_);
  PutText(loss.sentence, payload_);
  return Append(RecordKind::kLoss, payload_);
}

Status Journal::AppendRemove(std::string_view name) {
  payload_.clear();
  PutText(name, payload_);
  return Append(RecordKind::kRemove, payload_);
}

Result<JournalScan> ReadJournal(std::span<const std::byte> bytes,
                                const std::function<Status(const JournalRecord&)>& visit) {
  JournalScan scan;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic)) {
    if (kMagic.starts_with(text)) {
      scan.bytes_dropped = bytes.size();
      return scan;
    }
    if (text.starts_with(kMagic.substr(0, kMagicFamilyBytes))) {
      return Error(ErrorCode::kUnsupported,
                   "written by another version of plumbline. Use that version's `plumb recover`");
    }
    return Error(ErrorCode::kCorrupt, "not a journal of plumbline");
  }
  size_t at = kMagic.size();
  while (bytes.size() - at >= kFrameBytes) {
    const auto length = Load<uint32_t>(bytes.data() + at);
    if (length > bytes.size() - at - kFrameBytes) break;
    const auto body = bytes.subspan(at + 8, size_t{1} + length);
    if (Checksum(body) != Load<uint32_t>(bytes.data() + at + 4)) {
      scan.damaged = true;
      break;
    }
    const auto kind = static_cast<RecordKind>(body[0]);
    scan.sealed = kind == RecordKind::kSeal;
    ++scan.records;
    PL_TRY(visit({kind, body.subspan(1)}));
    at += kFrameBytes + length;
  }
  scan.bytes_dropped = bytes.size() - at;
  if (scan.bytes_dropped > 0) scan.sealed = false;
  return scan;
}

Result<JournalHeader> ParseJournalHeader(std::span<const std::byte> payload) {
  PayloadReader in(payload);
  JournalHeader header;
  for (std::string* text : {&header.run.task, &header.run.level, &header.run.framework,
                            &header.run.dump_data_dir, &header.tool_version, &header.run_id}) {
    *text = in.Text();
  }
  PL_TRY(in.Done("header"));
  return header;
}

Result<StackDefinition> ParseStack(std::span<const std::byte> payload) {
  PayloadReader in(payload);
  StackDefinition stack;
  stack.id = in.Number<uint32_t>();
  const auto count = in.Number<uint32_t>();
  for (uint32_t i = 0; i < count && !in.failed(); ++i) stack.frames.push_back(in.Text());
  PL_TRY(in.Done("call stack"));
  return stack;
}

Result<Loss> ParseLoss(std::span<const std::byte> payload) {
  PayloadReader in(payload);
  Loss loss;
  loss.counter = in.Text();
  loss.count = in.Number<uint64_t>();
  loss.sentence = in.Text();
  PL_TRY(in.Done("loss"));
  return loss;
}

Result<std::string> ParseRemove(std::span<const std::byte> payload) {
  PayloadReader in(payload);
  std::string name = in.Text();
  PL_TRY(in.Done("removal"));
  return name;
}

namespace {

using run_files::kErrorLog, run_layout::kLossReserve;

// A block of common file systems.
constexpr size_t kReservedBytes = 4096;

}  // namespace

LossRecord::LossRecord(std::shared_ptr<const Directory> directory)
    : directory_(std::move(directory)), pid_(::getpid()) {}

Result<LossRecord> LossRecord::Reserve(std::shared_ptr<const Directory> directory) {
  PL_TRY(directory->Remove(kLossReserve));  // of a killed process
  LossRecord record(std::move(directory));
  PL_TRY_ASSIGN(record.file_, File::OpenUpdate(JoinPath(record.directory_->path(), kLossReserve)));
  if (!record.directory_->Holds(kLossReserve, record.file_)) {
    return Error(ErrorCode::kIo, record.file_.path() + ": was replaced while it was made");
  }
  // Written, not allocated: file systems differ in what that promises.
  PL_TRY(record.file_.WriteAt(std::string(kReservedBytes, '\n'), 0));
  return record;
}

LossRecord::LossRecord(LossRecord&& other) noexcept
    : directory_(std::move(other.directory_)),
      file_(std::move(other.file_)),
      pid_(other.pid_),
      is_named_(other.is_named_),
      unwritten_(std::exchange(other.unwritten_, {})) {}

LossRecord& LossRecord::operator=(LossRecord&& other) noexcept {
  if (this == &other) return *this;
  End();
  directory_ = std::move(other.directory_);
  file_ = std::move(other.file_);
  pid_ = other.pid_;
  is_named_ = other.is_named_;
  unwritten_ = std::exchange(other.unwritten_, {});
  return *this;
}

LossRecord::~LossRecord() { End(); }

void LossRecord::End() {
  if (directory_ == nullptr || ::getpid() != pid_) return;
  if (!unwritten_.empty()) (void)WriteText(std::exchange(unwritten_, {}));
  if (!is_named_) (void)directory_->Remove(kLossReserve);
  directory_ = nullptr;
}

Status LossRecord::Write(std::span<const Loss> losses) {
  unwritten_ = error_log::Format(losses, kReservedBytes);
  PL_TRY(WriteText(unwritten_));
  unwritten_.clear();
  return {};
}

Status LossRecord::WriteText(const std::string& text) {
  if (directory_ == nullptr) return Error(ErrorCode::kIo, "no directory for a loss record");
  if (file_.is_open() && WriteInPlace(text)) return {};
  // Where nothing can be written over, as on file systems that copy, or after the file was removed.
  return WriteFileAtomically(*directory_, kErrorLog, text, /*durable=*/false);
}

Status LossRecord::WriteInPlace(const std::string& text) {
  if (is_named_ && !directory_->Holds(kErrorLog, file_)) {
    return Error(ErrorCode::kNotFound, file_.path() + ": was removed");
  }
  PL_TRY(file_.WriteAt(text, 0));
  PL_TRY(file_.Resize(text.size()));
  if (!is_named_) PL_TRY(directory_->Rename(kLossReserve, kErrorLog));
  is_named_ = true;
  return {};
}

void LastLossRecord::Keep(LossRecord record, std::vector<Loss> losses) {
  const std::lock_guard lock(mutex_);
  record_ = std::move(record);
  losses_ = std::move(losses);
}

void LastLossRecord::Drop() { Keep(LossRecord(), {}); }

bool LastLossRecord::Add(const Loss& loss) {
  const std::lock_guard lock(mutex_);
  if (!record_.is_reserved()) return false;
  MergeLoss(losses_, loss);
  return record_.Write(losses_).has_value();
}

}  // namespace plumbline
