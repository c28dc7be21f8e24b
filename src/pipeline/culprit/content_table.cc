#include "pipeline/culprit/content_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace plumbline::pipeline {
namespace {

constexpr size_t kFirstSize = 1024;

// The low bits choose the place, so the tag takes the high ones.
uint32_t TagOf(size_t hash) { return static_cast<uint32_t>(uint64_t{hash} >> 32); }

}  // namespace

size_t ContentTable::PlaceOf(const ContentKey& key, size_t hash) const {
  const size_t mask = entries_.size() - 1;
  for (size_t place = hash & mask;; place = (place + 1) & mask) {
    const Entry& entry = entries_[place];
    if (entry.row == kFree) return place;
    if (entry.tag == TagOf(hash) && KeyOf(*rows_[entry.row].golden) == key) return place;
  }
}

std::optional<uint32_t> ContentTable::Find(const ContentKey& key) const {
  if (entries_.empty()) return std::nullopt;
  const Entry& entry = entries_[PlaceOf(key, ContentKeyHash()(key))];
  return entry.row == kFree ? std::nullopt : std::optional(entry.row);
}

void ContentTable::Expect(const ContentKey& key) const {
  if (entries_.empty()) return;
  __builtin_prefetch(&entries_[ContentKeyHash()(key) & (entries_.size() - 1)]);
}

void ContentTable::Remember(const ContentKey& key, uint32_t row) {
  if (2 * (taken_ + 1) > entries_.size()) Grow();
  const size_t hash = ContentKeyHash()(key);
  Entry& entry = entries_[PlaceOf(key, hash)];
  if (entry.row == kFree) ++taken_;
  entry = {row, TagOf(hash)};
}

void ContentTable::Grow() {
  // Room for all rows at once: every growth would look up the contents of all rows again.
  const size_t size = std::max(kFirstSize, std::bit_ceil(2 * (rows_.size() + 1)));
  std::vector<Entry> old =
      std::exchange(entries_, std::vector<Entry>(entries_.empty() ? size : 2 * entries_.size()));
  const size_t mask = entries_.size() - 1;
  for (const Entry& entry : old) {
    if (entry.row == kFree) continue;
    size_t place = ContentKeyHash()(*KeyOf(*rows_[entry.row].golden)) & mask;
    while (entries_[place].row != kFree) place = (place + 1) & mask;
    entries_[place] = entry;
  }
}

}  // namespace plumbline::pipeline
