// Comma-separated files: what is read is the same when written and read again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto rows = plumbline::csv::Parse({reinterpret_cast<const char*>(data), size});
  if (!rows) return 0;
  std::string text;
  bool has_formula = false;  // written with a space in front
  for (const auto& row : *rows) {
    // A second byte order mark is text, but not once it stands first in a file.
    if (!row.empty() && row[0].starts_with("\xef\xbb\xbf")) return 0;
    for (const auto& cell : row) has_formula |= plumbline::csv::LooksLikeFormula(cell);
    plumbline::csv::AppendRow(row, text);
  }
  const auto again = plumbline::csv::Parse(text);
  if (!again || again->size() != rows->size()) std::abort();
  if (!has_formula && *again != *rows) std::abort();
  return 0;
}
