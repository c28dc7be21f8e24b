// The append-only log of one rank directory (docs/formats/journal.md): what a killed process
// leaves.
//
//   journal = "PLJRNL1\n" { u32 length, u32 crc32c(kind, payload), u8 kind, payload[length] }
// Little-endian. A reader stops at the first record that is cut or damaged.

#ifndef PLUMBLINE_STORE_JOURNAL_H_
#define PLUMBLINE_STORE_JOURNAL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "formats/error_log.h"
#include "plumbline/result.h"
#include "plumbline/run.h"

namespace plumbline {

// Stored; never renumber.
enum class RecordKind : uint8_t {
  kHeader = 1,  // JournalHeader
  kEntry = 2,   // packed entry (record/value.h); members merge into an earlier entry of that name
  kStack = 3,   // u32 id, u32 count, count str: frames, innermost first
  kLoss = 4,    // str counter, u64 count, str sentence
  kRemove = 5,  // str name: deletes the entry
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

}  // namespace plumbline

#endif  // PLUMBLINE_STORE_JOURNAL_H_
