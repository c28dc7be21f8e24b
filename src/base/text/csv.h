// Comma-separated files: quoting as Python's csv module does it, and a guard against spreadsheet
// formulas.

#ifndef PLUMBLINE_BASE_TEXT_CSV_H_
#define PLUMBLINE_BASE_TEXT_CSV_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::csv {

using Row = std::vector<std::string>;

// True if a spreadsheet program may take `cell` for a formula: it starts with = + - @ % or their
// full-width forms, also behind tabs and line breaks, or has one of them after a semicolon, and is
// not a number as Python reads it ("-1.5", "+2", "-inf").
bool LooksLikeFormula(std::string_view cell);

// Appends one cell as it stands between two commas of such a line. NUL, bytes that are not UTF-8
// and lone surrogates become U+FFFD.
void AppendCell(std::string_view cell, std::string& out);

// Appends a cell that programs look up and nobody reads: quoted where it must be, otherwise as it
// is.
void AppendExactly(std::string_view cell, std::string& out);

// Appends one line that ends in LF. A cell that looks like a formula gets a leading space; cells
// holding a comma, quote or line break are quoted, quotes are doubled.
void AppendRow(std::span<const std::string_view> cells, std::string& out);
void AppendRow(std::span<const std::string> cells, std::string& out);

// All rows of a text; lines end in LF, CR LF or CR, a UTF-8 byte order mark is skipped, blank lines
// are rows without cells. Rows may have different lengths. kCorrupt for a quoted cell that never
// ends and for text after a closing quote.
Result<std::vector<Row>> Parse(std::string_view text);

// The same of a file; the message names it.
Result<std::vector<Row>> ReadRows(const std::string& path);

// The first row of a text, and how many bytes it takes with its line end. Errors as of Parse().
struct FirstRow {
  Row cells;
  size_t bytes = 0;
};
Result<FirstRow> ParseFirst(std::string_view text);

// Rows of a file one after the other, which holds a block of it in memory and not the whole.
// Errors of `visit` end it; every error names the file. kCorrupt as of Parse(). kNotFound, kIo.
Status VisitRows(const std::string& path, const std::function<Status(Row& row)>& visit);

// Where a row stands in its file: from its first byte to behind its line end.
struct RowPlace {
  uint64_t begin = 0, end = 0;
};
using VisitPlacedRow = std::function<Status(Row& row, const RowPlace& place)>;

// The same of a file that a program was killed while writing: what stands behind the last line end
// is left out. Returns where the whole rows end.
Result<uint64_t> VisitWholeRows(const std::string& path, const VisitPlacedRow& visit);

}  // namespace plumbline::csv

#endif  // PLUMBLINE_BASE_TEXT_CSV_H_
