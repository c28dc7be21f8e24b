// Repeated keys of a JSON object, settled as Python's json module settles them.

#ifndef PLUMBLINE_FORMATS_KEEP_LAST_H_
#define PLUMBLINE_FORMATS_KEEP_LAST_H_

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace plumbline {

// Leaves the last row of each name, at the place of the first row of that name. `name_of(row)` is a
// reference to the row's own std::string. Returns how many rows were dropped.
template <class Row, class NameOf>
size_t KeepLastOfEach(std::vector<Row>& rows, const NameOf& name_of) {
  std::unordered_map<std::string_view, size_t> slots;
  slots.reserve(rows.size());
  std::vector<size_t> slot_of;
  slot_of.reserve(rows.size());
  for (const Row& row : rows) {
    slot_of.push_back(slots.try_emplace(name_of(row), slots.size()).first->second);
  }
  const size_t dropped = rows.size() - slots.size();
  if (dropped == 0) return 0;
  std::vector<Row> kept(slots.size());
  for (size_t i = 0; i < rows.size(); ++i) kept[slot_of[i]] = std::move(rows[i]);
  rows = std::move(kept);
  return dropped;
}

}  // namespace plumbline

#endif  // PLUMBLINE_FORMATS_KEEP_LAST_H_
