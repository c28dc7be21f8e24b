// What tensors hold: when two rows hold the same values, where such values were seen before, and
// their elements.

#ifndef PLUMBLINE_VERDICT_CONTENTS_H_
#define PLUMBLINE_VERDICT_CONTENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::verdict {

// The elements of a recorded tensor.

// The elements of a tensor of one side, of its first `rows` rows if that is given; nothing where it
// has no readable file, or more than 2^20 of them. Requires: `rows` at most its first dimension.
std::optional<std::vector<double>> RecordedElements(const Comparison& comparison, const Item& item,
                                                    bool of_target,
                                                    std::optional<int64_t> rows = std::nullopt);

// Where the tensor files of one side are.
std::string TensorDirectoryOf(const Comparison& comparison, bool of_target);

// The data_name by which a tensor of an earlier step is found (EarlierStep).
std::string EarlierFile(std::string_view dump_json, std::string_view file);

// What identifies the contents of a recorded tensor, so that a value can be followed from call to
// call.

// Digest if recorded, else the statistics, with the number of elements: views of one tensor count
// as the same.
struct ContentKey {
  Text digest;
  std::array<uint64_t, 4> statistics{};  // bit patterns
  int64_t element_count = 0;

  [[nodiscard]] bool HasDigest() const { return !digest.empty(); }
  friend bool operator==(const ContentKey&, const ContentKey&) = default;
};

struct ContentKeyHash {
  size_t operator()(const ContentKey& key) const;
};

// Nothing for scalars and for tensors without digest and statistics.
std::optional<ContentKey> KeyOf(const Item& item);

// The key of `-item`, whose own key is `key`. Requires: a key without digest.
ContentKey NegativeOf(const Item& item, const ContentKey& key);

// Whether `item` is `s - other` for a number s, as far as statistics tell: of four, three relations
// hold for one unknown.
bool IsNumberLess(const Item& item, const Item& other);

// Whether the contents tell where they come from: not one value throughout, as masks and fresh
// buffers have, but for a single number that is not whole.
bool IsTelling(const Item& item);

// Where a value was last seen: finds the row of given contents among those judged so far.

// Rows by the contents of their golden item. Holds eight bytes per row and looks the contents up
// in the rows, which must stay where they are. Single-threaded. `hash` is ContentKeyHash of the key
// wherever it stands for one.
class ContentTable {
 public:
  explicit ContentTable(const std::vector<ComparedRow>& rows) : rows_(rows) {}

  // The last row remembered whose golden item has the contents `key()`, which is called where the
  // hash alone does not tell.
  template <typename KeyMaker>
  [[nodiscard]] std::optional<uint32_t> Find(size_t hash, const KeyMaker& key) const {
    if (entries_.empty()) return std::nullopt;
    const Entry& entry = entries_[PlaceOf(hash, key)];
    return entry.row == kFree ? std::nullopt : std::optional(entry.row);
  }
  // Brings the place of a key near the processor, which takes longer than all else in Find().
  void Expect(size_t hash) const {
    if (!entries_.empty()) __builtin_prefetch(&entries_[hash & (entries_.size() - 1)]);
  }
  // From now on `row` is the last one with its contents. Requires: a golden item with a key.
  void Remember(size_t hash, uint32_t row);

 private:
  struct Entry {
    uint32_t row = kFree;
    uint32_t tag = 0;  // other bits of the hash than choose the place
  };
  static constexpr uint32_t kFree = 0xFFFFFFFF;

  // The low bits choose the place, so the tag takes the high ones.
  static uint32_t TagOf(size_t hash) { return static_cast<uint32_t>(uint64_t{hash} >> 32); }

  // The entry of `key()`, or the free one where it belongs. Requires: not full.
  template <typename KeyMaker>
  [[nodiscard]] size_t PlaceOf(size_t hash, const KeyMaker& key) const {
    const size_t mask = entries_.size() - 1;
    for (size_t place = hash & mask;; place = (place + 1) & mask) {
      const Entry& entry = entries_[place];
      if (entry.row == kFree) return place;
      if (entry.tag == TagOf(hash) && KeyOf(*rows_[entry.row].golden) == key()) return place;
    }
  }
  void Grow();

  const std::vector<ComparedRow>& rows_;
  std::vector<Entry> entries_;  // a power of two; at most half are taken
  size_t taken_ = 0;
};

// What rows show by themselves, found on all threads before they are judged one after the other.

// Of one row of a paired call.
struct RowAhead {
  measure::Difference difference;
  // ContentKeyHash of the golden item, and of what its negative would be; meaningless where the
  // item has no key or, for the second, no negative one.
  size_t contents = 0, negative = 0;
  bool has_contents = false;
  bool has_negative = false;  // of inputs alone
};

// Holds the rows of one block of calls at a time, and prepares the next one meanwhile. `comparison`
// must outlive this; what a difference is made of (items and tensor metrics) must not change.
class RowsAhead {
 public:
  // How many calls a block has.
  static constexpr size_t kBlock = 8192;

  RowsAhead(const Comparison& comparison, const measure::PairContext& context)
      : comparison_(comparison), context_(context) {}

  // Prepares the paired ones among `calls`, on the threads of the caller's arena. May run while
  // Of() is asked for rows of the block before.
  void Prepare(std::span<const uint32_t> calls);
  // From now on Of() tells of the block prepared last.
  void Advance() { now_.Swap(next_); }
  // Requires: a row of a paired call of the block, by its index.
  [[nodiscard]] const RowAhead& Of(uint32_t row) const { return now_.rows[row - now_.first_row]; }

 private:
  struct Block {
    std::vector<RowAhead> rows;  // from first_row on
    uint32_t first_row = 0;

    void Swap(Block& other) {
      rows.swap(other.rows);
      std::swap(first_row, other.first_row);
    }
  };

  [[nodiscard]] RowAhead Of(const ComparedRow& row) const;

  const Comparison& comparison_;
  const measure::PairContext context_;
  Block now_, next_;
};

// Where the contents of a pair of tensors were met before, and what was said of them there.

// Follows contents through the rows of one comparison. Both must outlive this; every row asked for
// is one of the block that `ahead` holds.
class KnownContents {
 public:
  KnownContents(const Comparison& comparison, const RowsAhead& ahead)
      : comparison_(comparison), ahead_(ahead), known_(comparison.rows) {}

  // The row where the differing contents of `row` were met before on both sides, or null. What is
  // equal or cannot be judged needs no source.
  [[nodiscard]] const ComparedRow* SourceOf(const measure::Difference& difference,
                                            const ComparedRow& row) const;
  // Whether golden's contents were met at all.
  [[nodiscard]] bool Has(const Item& golden) const;
  // SourceOf() and Remember() of the rows of a call follow soon: where they will look is brought
  // near. Best asked for so many calls ahead, which are judged while memory answers.
  static constexpr size_t kCallsAhead = 4;
  void Expect(uint32_t call) const;
  void Remember(const ComparedRow& row);

 private:
  [[nodiscard]] uint32_t IndexOf(const ComparedRow& row) const {
    return static_cast<uint32_t>(&row - comparison_.rows.data());
  }

  const Comparison& comparison_;
  const RowsAhead& ahead_;
  ContentTable known_;
};

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_CONTENTS_H_
