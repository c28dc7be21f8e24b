// The entries of one rank directory in memory, and the three JSON files made of them.

#ifndef PLUMBLINE_STORE_ENTRY_TABLE_H_
#define PLUMBLINE_STORE_ENTRY_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "plumbline/record.h"
#include "plumbline/result.h"
#include "plumbline/run.h"
#include "record/value.h"

namespace plumbline {

// Keeps entries packed, in order of first appearance; they are unpacked one at a time when written.
// Single-threaded.
class EntryTable {
 public:
  EntryTable();

  // Copies the bytes. kCorrupt when they do not start like a packed entry.
  Status Add(std::span<const std::byte> packed);
  void Remove(std::string_view name);
  void AddStack(uint32_t id, std::span<const std::string> frames);
  // The bytes of EntryPacker::Late(): values of tensors in entries added before. kCorrupt.
  Status AddLate(std::span<const std::byte> packed) { return UnpackLate(packed, &late_); }

  // Entries with at least one member: what dump.json will list.
  [[nodiscard]] size_t call_count() const { return call_count_; }
  // Packed bytes of everything added: a measure of what Write() costs.
  [[nodiscard]] uint64_t bytes_added() const { return bytes_added_; }

  // `keep_tensor` decides whether a recorded tensor file is named in dump.json (null: all are).
  using KeepTensor = std::function<bool(const std::string& data_name)>;
  struct WriteResult {
    uint64_t tensors_dropped = 0;
    uint64_t values_missing = 0;   // tensors whose values have not come: null in dump.json
    uint64_t entries_damaged = 0;  // their bytes could not be unpacked; left out
  };
  // Which files Write() makes.
  enum class Files : uint8_t {
    kAll,       // dump.json, stack.json and construct.json
    kDumpOnly,  // dump.json
    kDebug,     // debug.json, whose entries are values
  };
  // The one that holds the entries.
  static std::string_view MainFileOf(Files files);
  // Into `directory`, each by rename, the dump last. With `durable` each is synced first.
  struct WriteOptions {
    Files files = Files::kAll;
    bool durable = false;
    // Called when all but the dump stands and the dump is ready: what has to be there before it.
    // On error the dump is not replaced.
    std::function<Status(const WriteResult&)> before_dump = {};
  };
  Result<WriteResult> Write(const Directory& directory, const RunHeader& header,
                            const KeepTensor& keep_tensor, const WriteOptions& options) const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  // One recorded part of an entry; parts of one entry form a list.
  struct Part {
    std::span<const std::byte> bytes;
    uint32_t next = kNone;
  };
  struct Slot {
    std::string_view name;  // into memory_
    std::string_view parent;
    uint32_t first_part = kNone;
    uint32_t last_part = kNone;
    uint32_t stack_id = 0;
    bool has_parent = false;
    bool has_members = false;
    bool removed = false;
  };

  std::span<const std::byte> Keep(std::span<const std::byte> bytes);
  Result<Call> Merge(const Slot& slot, WriteResult& result) const;
  Status WriteStacks(AtomicFile& file) const;
  std::string ConstructText() const;
  Status WriteDump(AtomicFile& file, const RunHeader& header, const KeepTensor& keep_tensor,
                   WriteResult& result) const;

  // Behind a pointer, so that the table can be moved.
  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory_;
  std::pmr::vector<Part> parts_;
  std::pmr::vector<Slot> slots_;
  std::pmr::unordered_map<std::string_view, uint32_t> index_;
  std::pmr::unordered_map<uint32_t, std::pmr::string> stacks_;  // as they stand in stack.json
  LateTable late_;
  size_t call_count_ = 0;
  uint64_t bytes_added_ = 0;
};

}  // namespace plumbline

namespace plumbline::debug_entry {

// Entries of debug.json: one value each, and gradients that arrive after it.

// A recorded debug entry is a member with an empty key, the value, and one member per part that
// arrived later, whose key is its place in that value: the positions of list items and map members
// from the top, joined by dots ("1.0"; positions, because keys may hold dots).
//
// Puts the parts in their places and leaves the first member alone. Parts without such a place are
// dropped. Members that do not start with an empty key are left as they are.
void Compose(ValueMap& members);

}  // namespace plumbline::debug_entry

#endif  // PLUMBLINE_STORE_ENTRY_TABLE_H_
