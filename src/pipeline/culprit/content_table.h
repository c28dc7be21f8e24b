// Where a value was last seen: finds the row of given contents among those judged so far.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_CONTENT_TABLE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_CONTENT_TABLE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/culprit/content_key.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_CONTENT_TABLE_H_
