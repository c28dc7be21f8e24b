// Comma-separated files: what is read is the same when written and read again, but for bytes that
// are no text, which are replaced once and for all.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/csv.h"
#include "base/text/text_parts.h"

namespace {

using plumbline::csv::Row;

bool IsText(std::string_view cell) {
  return plumbline::IsUtf8(cell) && cell.find('\0') == std::string_view::npos;
}

std::string Written(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) plumbline::csv::AppendRow(row, text);
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto rows = plumbline::csv::Parse({reinterpret_cast<const char*>(data), size});
  if (!rows) return 0;
  bool has_formula = false;  // written with a space in front
  bool is_text = true;
  for (const Row& row : *rows) {
    // A second byte order mark is text, but not once it stands first in a file.
    if (!row.empty() && row[0].starts_with("\xef\xbb\xbf")) return 0;
    for (const std::string& cell : row) {
      has_formula |= plumbline::csv::LooksLikeFormula(cell);
      is_text &= IsText(cell);
    }
  }
  const std::string text = Written(*rows);
  if (!IsText(text)) std::abort();
  const auto again = plumbline::csv::Parse(text);
  if (!again || again->size() != rows->size()) std::abort();
  if (has_formula) return 0;
  if (is_text && *again != *rows) std::abort();
  if (Written(*again) != text) std::abort();
  return 0;
}
