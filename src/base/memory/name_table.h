// Which of many rows has a name: a flat hash table over names that stand elsewhere.

#ifndef PLUMBLINE_BASE_MEMORY_NAME_TABLE_H_
#define PLUMBLINE_BASE_MEMORY_NAME_TABLE_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace plumbline {

// Eight bytes per place and no allocation per name: half the time of std::unordered_map for
// hundreds of thousands of names. The table holds indices of rows, below 2^32 - 1; every call is
// told how to get the name of one, `name_at(index)`, which must not change. Grows where it was not
// told enough rows. Thread-compatible.
class NameTable {
 public:
  NameTable() = default;
  // With room for so many rows.
  explicit NameTable(size_t rows) : entries_(std::bit_ceil(2 * (rows + 1))) {}

  // Adds `row` under its name. Returns the row that has the name: an earlier one, or this.
  template <class NameAt>
  size_t Add(size_t row, const NameAt& name_at) {
    if (2 * (taken_ + 1) > entries_.size()) Grow(name_at);
    const std::string_view name = name_at(row);
    const size_t hash = std::hash<std::string_view>()(name);
    Entry& entry = entries_[PlaceOf(name, hash, name_at)];
    if (entry.row == kFree) {
      entry = {static_cast<uint32_t>(row), TagOf(hash)};
      ++taken_;
    }
    return entry.row;
  }

  template <class NameAt>
  [[nodiscard]] std::optional<size_t> Find(std::string_view name, const NameAt& name_at) const {
    if (entries_.empty()) return std::nullopt;
    const size_t hash = std::hash<std::string_view>()(name);
    const Entry& entry = entries_[PlaceOf(name, hash, name_at)];
    return entry.row == kFree ? std::nullopt : std::optional<size_t>(entry.row);
  }

 private:
  static constexpr uint32_t kFree = 0xFFFFFFFF;
  struct Entry {
    uint32_t row = kFree;
    uint32_t tag = 0;  // other bits of the hash than choose the place
  };

  static uint32_t TagOf(size_t hash) { return static_cast<uint32_t>(uint64_t{hash} >> 32); }

  // The entry of `name`, or the free one where it belongs.
  template <class NameAt>
  [[nodiscard]] size_t PlaceOf(std::string_view name, size_t hash, const NameAt& name_at) const {
    const size_t mask = entries_.size() - 1;
    for (size_t place = hash & mask;; place = (place + 1) & mask) {
      const Entry& entry = entries_[place];
      if (entry.row == kFree) return place;
      if (entry.tag == TagOf(hash) && name_at(entry.row) == name) return place;
    }
  }

  template <class NameAt>
  void Grow(const NameAt& name_at) {
    constexpr size_t kLeast = 128;
    const std::vector<Entry> before =
        std::exchange(entries_, std::vector<Entry>(std::max(kLeast, 2 * entries_.size())));
    const size_t mask = entries_.size() - 1;
    for (const Entry& entry : before) {
      if (entry.row == kFree) continue;
      size_t place = std::hash<std::string_view>()(name_at(entry.row)) & mask;
      while (entries_[place].row != kFree) place = (place + 1) & mask;
      entries_[place] = entry;
    }
  }

  std::vector<Entry> entries_;  // a power of two; at most half are taken
  size_t taken_ = 0;
};

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_MEMORY_NAME_TABLE_H_
