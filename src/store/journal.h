// What a recording writes so that nothing is lost unseen: the journal, the record of losses, and
// log lines about what went wrong.

#ifndef PLUMBLINE_STORE_JOURNAL_H_
#define PLUMBLINE_STORE_JOURNAL_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "formats/json/error_log.h"
#include "plumbline/result.h"
#include "plumbline/run.h"

namespace plumbline {

// What goes wrong while recording is said once, however many files it costs.

// What a failure costs. Each is news to the user, also where one full disk is the cause of all.
enum class Harm : uint8_t {
  kPlace,    // the directory was removed, moved or replaced
  kTensors,  // tensor files
  kSync,     // safety from a power failure
  kJournal,  // safety from a kill
  kFiles,    // the final files of a step, said after kJournal
  kSteps,    // whole steps: says all that kJournal and kFiles say
};

// Thread-safe.
class Trouble {
 public:
  // Logs `error` and the sentences `what_now`, unless this harm in the same directory or of the
  // same cause (the text behind the last ": ") was logged before. False: it was. A cause that was
  // held back because of its directory is logged when another directory meets it.
  bool Report(Harm harm, std::string_view directory, const Error& error, std::string_view what_now);

 private:
  using Said = std::set<std::pair<Harm, std::string>>;
  std::mutex mutex_;  // guards what follows
  Said directories_;
  Said causes_;
};

// The append-only log of one rank directory (docs/formats/journal.md): what a killed process
// leaves.
//
//   journal = "PLJRNL1\n" { u32 length, u32 crc32c(kind, payload), u8 kind, payload[length] }
// Little-endian. A reader stops at the first record that is cut or damaged.

// Stored; never renumber.
enum class RecordKind : uint8_t {
  kHeader = 1,  // JournalHeader
  kEntry = 2,   // packed entry (record/value.h); members merge into an earlier entry of that name
  kStack = 3,   // u32 id, u32 count, count str: frames, innermost first
  kLoss = 4,    // str counter, u64 count, str sentence
  kRemove = 5,  // str name: deletes the entry
  kLate = 7,    // what EntryPacker::Late() packed, any number of times: values of earlier entries
  kSeal = 6,    // empty: everything before is in the final files, durably
};

// What the run was. Texts are stored as given.
struct JournalHeader {
  RunHeader run;
  std::string tool_version;
  std::string run_id;
};

// Writer. Each Append hands its record to the kernel with one write() before it returns, so a
// SIGKILL loses at most the record in flight; nothing is synced (Sync does that). Move-only.
// Thread-compatible.
class Journal {
 public:
  Journal() = default;
  // Takes an empty, locked file opened for appending and writes the magic and the header record.
  static Result<Journal> Start(File file, const JournalHeader& header);

  // Never allocates once its buffer has grown to the largest record. After an error the journal
  // must not be appended to: a cut record may stand at its end.
  Status Append(RecordKind kind, std::span<const std::byte> payload);
  Status AppendStack(uint32_t id, std::span<const std::string> frames);
  Status AppendLoss(const Loss& loss);
  Status AppendRemove(std::string_view name);
  Status AppendSeal() { return Append(RecordKind::kSeal, {}); }
  Status Sync() { return file_.Sync(); }
  Status Touch() { return file_.Touch(); }
  Status SetModifiedAt(int64_t time) { return file_.SetModifiedAt(time); }
  Status Close() { return file_.Close(); }

  [[nodiscard]] bool is_open() const { return file_.is_open(); }
  [[nodiscard]] const std::string& path() const { return file_.path(); }

 private:
  explicit Journal(File file) : file_(std::move(file)) {}
  File file_;
  std::vector<std::byte> buffer_;   // the record being written
  std::vector<std::byte> payload_;  // payload of the small record kinds
};

// One intact record; the payload points into the bytes given to ReadJournal.
struct JournalRecord {
  RecordKind kind;
  std::span<const std::byte> payload;
};

struct JournalScan {
  uint64_t records = 0;        // intact records, the header included
  uint64_t bytes_dropped = 0;  // from the first cut or damaged record to the end
  bool sealed = false;         // the last record is a seal
  bool damaged = false;        // the scan ended at a whole record with a wrong checksum: not a cut
};

// Calls `visit` for every intact record in order; an error of `visit` ends the scan and is
// returned. kCorrupt when the bytes do not start like a journal, kUnsupported for another version.
// Shorter than the magic but a prefix of it: no records (the process died while creating it).
Result<JournalScan> ReadJournal(std::span<const std::byte> bytes,
                                const std::function<Status(const JournalRecord&)>& visit);

// Payloads. kCorrupt when the bytes are not one.
Result<JournalHeader> ParseJournalHeader(std::span<const std::byte> payload);
struct StackDefinition {
  uint32_t id = 0;
  std::vector<std::string> frames;
};
Result<StackDefinition> ParseStack(std::span<const std::byte> payload);
Result<Loss> ParseLoss(std::span<const std::byte> payload);
Result<std::string> ParseRemove(std::span<const std::byte> payload);

// The loss record of one rank directory: dump_error_info.log, whose space is taken beforehand.

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

#endif  // PLUMBLINE_STORE_JOURNAL_H_
