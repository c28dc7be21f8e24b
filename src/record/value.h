// The packed form of one observed entry: what the hot path writes and the journal stores.
//
// An entry is packed while the arguments are walked, into one growing buffer, without building a
// Value tree; readers unpack it into a Call. Little-endian. Grammar (docs/formats/journal.md):
//   entry   = u8 flags, u32 stack id (0: none), str name, [str parent], members "kEnd"
//   members = { str key, value }            str = u32 length, bytes
//   value   = u8 tag, then what the tag says (PackTag)

#ifndef PLUMBLINE_RECORD_VALUE_H_
#define PLUMBLINE_RECORD_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plumbline/record.h"
#include "record/tensor_stats.h"

namespace plumbline {

// Tags of packed values. Stored; never renumber.
enum class PackTag : uint8_t {
  kEnd = 0,  // closes a list or map
  kNull = 1,
  kFalse = 2,
  kTrue = 3,
  kInt = 4,      // i64
  kFloat = 5,    // f64
  kBigInt = 6,   // str, decimal digits
  kString = 7,   // str
  kList = 8,     // values, kEnd
  kMap = 9,      // {kKey, str, value}, kEnd
  kTensor = 10,  // see PackedTensor
  kKey = 11,
  // u64 number: in place of a tensor's four statistics, or of the keys of a map that is a tensor.
  // What is known of it comes later (LateTable).
  kLate = 12,
};

// What is found out about a tensor after its entry was packed: the host does not wait for a device.
struct LateValues {
  TensorStats stats;
  std::string digest;  // empty: none
};
// By the number that stands in the entry, which is used once in a process.
using LateTable = std::unordered_map<uint64_t, LateValues>;

// A tensor as the hot path describes it; texts are borrowed until Add() returns.
struct PackedTensor {
  std::string_view type;
  std::string_view dtype_text;
  std::span<const int64_t> shape;
  Statistic max, min, mean, norm;
  std::optional<bool> requires_grad;
  std::optional<Statistic> max_finite, min_finite;
  std::string_view digest;     // empty: none
  std::string_view data_name;  // empty: none
  // Number of the values, where they come later; statistics and digest above are not looked at.
  std::optional<uint64_t> late;
};

// Packs one entry. Reusable: Begin() clears. Calls must nest properly. Single-threaded.
class EntryPacker {
 public:
  // `parent` null: not known (no construct.json row); empty: a root.
  void Begin(std::string_view name, const std::string_view* parent, uint32_t stack_id);
  // Every value inside a map (the entry itself is one) is preceded by its key.
  void Key(std::string_view key);
  void Null() { Tag(PackTag::kNull); }
  void Bool(bool v) { Tag(v ? PackTag::kTrue : PackTag::kFalse); }
  void Int(int64_t v);
  void Float(double v);
  void Big(std::string_view digits);
  void String(std::string_view text);
  void BeginList() { Tag(PackTag::kList); }
  void BeginMap() { Tag(PackTag::kMap); }
  void EndList() { Tag(PackTag::kEnd); }
  void EndMap() { Tag(PackTag::kEnd); }
  void Tensor(const PackedTensor& tensor);
  // In a map, in place of a key: the statistics and the digest of that number.
  void LateMembers(uint64_t number);
  // Behind the entries, in a record of its own: what UnpackLate() reads.
  void Late(uint64_t number, const LateValues& values);
  // {"type": type, "value": <the next value>}: call, add the value, then EndMap().
  void BeginTyped(std::string_view type);
  // Appends values packed elsewhere (a list or map body, or one value).
  void Raw(std::span<const std::byte> packed);
  // Ends the entry and returns its bytes, valid until the next Begin().
  std::span<const std::byte> Finish();

  [[nodiscard]] size_t size() const { return buffer_.size(); }
  // Drops everything packed after `size` (a walk that failed half way).
  void Truncate(size_t size) { buffer_.resize(size); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return buffer_; }
  void Clear() { buffer_.clear(); }

 private:
  void Tag(PackTag tag) { buffer_.push_back(static_cast<std::byte>(tag)); }
  void Text(std::string_view text);
  void Stat(const Statistic& value);
  template <class T>
  void Number(T value);

  std::vector<std::byte> buffer_;
};

// What stands before the members of a packed entry. Views into the packed bytes.
struct EntryHead {
  std::string_view name;
  std::string_view parent;  // empty with has_parent: a root
  uint32_t stack_id = 0;
  bool has_parent = false;
  bool has_members = false;  // at least one
};

// kCorrupt when the bytes do not start like a packed entry.
Result<EntryHead> PeekEntry(std::span<const std::byte> packed);

// An entry read back.
struct UnpackedEntry {
  Call call;
  uint32_t stack_id = 0;
  bool has_parent = false;
  std::string parent;         // empty with has_parent: a root
  uint32_t late_missing = 0;  // tensors whose values have not come: their statistics are absent
};

// `late`: values that came after the entry. kCorrupt when the bytes are not a packed entry.
Result<UnpackedEntry> UnpackEntry(std::span<const std::byte> packed,
                                  const LateTable* late = nullptr);

// Adds what EntryPacker::Late() packed, any number of times. kCorrupt: `table` may hold a part.
Status UnpackLate(std::span<const std::byte> packed, LateTable* table);

// The kind of entry a name denotes (record/call_name.h has the full grammar).
CallKind KindOfCall(std::string_view name);

}  // namespace plumbline

#endif  // PLUMBLINE_RECORD_VALUE_H_
