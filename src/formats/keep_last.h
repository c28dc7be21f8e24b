// Repeated keys of a JSON object, settled as Python's json module settles them.

#ifndef PLUMBLINE_FORMATS_KEEP_LAST_H_
#define PLUMBLINE_FORMATS_KEEP_LAST_H_

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "base/name_table.h"

namespace plumbline {

// Leaves the last row of each name, at the place of the first row of that name. `name_of(row)` is a
// reference to the row's own std::string. Returns how many rows were dropped.
template <class Row, class NameOf>
size_t KeepLastOfEach(std::vector<Row>& rows, const NameOf& name_of) {
  NameTable first(rows.size());
  const auto name_at = [&](size_t i) { return std::string_view(name_of(rows[i])); };
  std::vector<size_t> first_of;  // row of the same name
  first_of.reserve(rows.size());
  size_t dropped = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    first_of.push_back(first.Add(i, name_at));
    if (first_of[i] != i) ++dropped;
  }
  if (dropped == 0) return 0;
  size_t kept = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (first_of[i] != i) rows[first_of[i]] = std::move(rows[i]);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (first_of[i] != i) continue;
    if (kept != i) rows[kept] = std::move(rows[i]);
    ++kept;
  }
  rows.resize(kept);
  return dropped;
}

}  // namespace plumbline

#endif  // PLUMBLINE_FORMATS_KEEP_LAST_H_
