#include "store/loss_record.h"

#include <unistd.h>

#include <utility>

#include "record/run_files.h"
#include "store/run_layout.h"

namespace plumbline {
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
