#include "pipeline/culprit/content_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace plumbline::pipeline {
namespace {

constexpr size_t kFirstSize = 1024;

}  // namespace

void ContentTable::Remember(size_t hash, uint32_t row) {
  if (2 * (taken_ + 1) > entries_.size()) Grow();
  Entry& entry = entries_[PlaceOf(hash, [&] { return KeyOf(*rows_[row].golden); })];
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
