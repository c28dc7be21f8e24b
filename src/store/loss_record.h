// The loss record of one rank directory: dump_error_info.log, whose space is taken beforehand.

#ifndef PLUMBLINE_STORE_LOSS_RECORD_H_
#define PLUMBLINE_STORE_LOSS_RECORD_H_

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/directory.h"
#include "base/file.h"
#include "formats/error_log.h"
#include "plumbline/result.h"

namespace plumbline {

// A full disk is what makes losses, and what keeps a record of them from being written. Until there
// is something to say the record is a hidden file of blanks; its text is written over these and the
// file renamed, which takes no space. Movable. Thread-compatible.
class LossRecord {
 public:
  LossRecord() = default;
  // Without space of its own: Write() makes a file then, as long as there is some.
  explicit LossRecord(std::shared_ptr<const Directory> directory);
  // Takes the space in `directory`. kIo.
  static Result<LossRecord> Reserve(std::shared_ptr<const Directory> directory);
  LossRecord(LossRecord&& other) noexcept;
  LossRecord& operator=(LossRecord&& other) noexcept;
  // Tries again what could not be written; removes the space that was not needed.
  ~LossRecord();

  // Replaces what was written before. On error it is tried again by the next call and at the end.
  Status Write(std::span<const Loss> losses);

  [[nodiscard]] bool is_reserved() const { return file_.is_open(); }

 private:
  Status WriteText(const std::string& text);
  Status WriteInPlace(const std::string& text);
  void End();

  std::shared_ptr<const Directory> directory_;  // null: moved from, or never made
  File file_;
  pid_t pid_ = 0;
  bool is_named_ = false;  // the file is dump_error_info.log
  std::string unwritten_;  // empty: all was written
};

// The record of the directory that was recorded into last. Steps for which no directory can be made
// are counted there. Thread-safe.
class LastLossRecord {
 public:
  // Takes the place of the one before. `losses`: what it says.
  void Keep(LossRecord record, std::vector<Loss> losses);
  // A later directory has its own.
  void Drop();
  // False: there is none, or it cannot be written.
  bool Add(const Loss& loss);

 private:
  std::mutex mutex_;  // guards what follows
  LossRecord record_;
  std::vector<Loss> losses_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_STORE_LOSS_RECORD_H_
