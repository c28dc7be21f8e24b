#include "base/text/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/file/file.h"
#include "base/text/text_parts.h"

namespace plumbline::csv {
namespace {

constexpr std::string_view kAsciiTriggers = "=+-@%";
// Full-width = + - @ % (U+FF1D, U+FF0B, U+FF0D, U+FF20, U+FF05).
constexpr std::array<std::string_view, 5> kWideTriggers = {
    "\xEF\xBC\x9D", "\xEF\xBC\x8B", "\xEF\xBC\x8D", "\xEF\xBC\xA0", "\xEF\xBC\x85"};

// What some programs drop before they look at a cell. A blank at its start, which guards a cell, is
// not; one behind a tab or a line break guards nothing.
std::string_view WithoutLineBlanks(std::string_view text) {
  if (text.starts_with(' ')) return text;
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

bool StartsWithTrigger(std::string_view text) {
  text = WithoutLineBlanks(text);
  if (text.empty()) return false;
  if (kAsciiTriggers.find(text[0]) != std::string_view::npos) return true;
  if (text[0] != kWideTriggers[0][0]) return false;  // their first bytes are the same
  for (const std::string_view wide : kWideTriggers) {
    if (text.starts_with(wide)) return true;
  }
  return false;
}

bool IsNumber(std::string_view text) {
  text = WithoutLineBlanks(text);
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  // A second sign is no number ("+-1"), although from_chars would take the minus.
  if (text.empty() || text[0] == '-') return false;
  double value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

// As a whole.
bool IsFormula(std::string_view cell) { return StartsWithTrigger(cell) && !IsNumber(cell); }

// What a cell asks for: quotes, a closer look because it may be no text, or because a part of it
// may be a formula.
struct Needs {
  bool quotes, care, parts;
};

Needs NeedsOf(std::string_view cell) {
  // All bytes, without a way out and without a table, so that many are looked at together.
  uint8_t quotes = 0, care = 0, parts = 0;
  for (const char c : cell) {
    quotes |= static_cast<uint8_t>((c == ',') | (c == '"') | (c == '\r') | (c == '\n'));
    care |= static_cast<uint8_t>((c == '\0') | (static_cast<unsigned char>(c) >= 0x80));
    parts |= static_cast<uint8_t>(c == ';');
  }
  return {quotes != 0, care != 0, parts != 0};
}

// What Python's csv module and others read: UTF-8 without NUL.
std::string ReadableText(std::string_view cell) {
  std::string text = ReplaceInvalidUtf8(cell);
  for (size_t at = text.find('\0'); at != std::string::npos; at = text.find('\0', at)) {
    text.replace(at, 1, kReplacementCharacter);
  }
  return text;
}

bool IsReadable(std::string_view cell) {
  return IsUtf8(cell) && cell.find('\0') == std::string_view::npos;
}

template <class Cell>
void AppendCells(std::span<const Cell> cells, std::string& out) {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out += ',';
    AppendCell(cells[i], out);
  }
  // A lone empty cell must not look like a row without cells.
  if (cells.size() == 1 && cells[0].empty()) out += "\"\"";
  out += '\n';
}

// With its quotes doubled.
void AppendQuoted(std::string_view cell, std::string& out) {
  for (size_t quote = cell.find('"'); quote != std::string_view::npos; quote = cell.find('"')) {
    out += cell.substr(0, quote + 1);
    out += '"';
    cell.remove_prefix(quote + 1);
  }
  out += cell;
}

// Splits a text into rows; `at_` only moves forward. `first_byte`: where the text begins in what
// messages speak of.
class Splitter {
 public:
  explicit Splitter(std::string_view text, size_t first_byte = 0)
      : text_(text), first_byte_(first_byte) {}

  Status Run(const std::function<Status(Row& row)>& visit) {
    while (at_ < text_.size()) {
      PL_TRY_ASSIGN(Row row, Next());
      PL_TRY(visit(row));
    }
    return {};
  }

  // The next row.
  Result<Row> Next() {
    Row row;
    if (!AtLineEnd()) PL_TRY(ReadRow(row));
    SkipLineEnd();
    return row;
  }
  // How many bytes the rows so far took.
  [[nodiscard]] size_t taken() const { return at_; }
  // Whether that is all.
  [[nodiscard]] bool is_done() const { return at_ == text_.size(); }
  // Whether the last row may go on behind the text: it has no line end, or half of one, or a
  // quoted cell that has not ended.
  [[nodiscard]] bool is_cut() const {
    return is_in_quotes_ || (is_done() && !text_.ends_with('\n'));
  }

 private:
  [[nodiscard]] bool AtLineEnd() const {
    return at_ == text_.size() || text_[at_] == '\n' || text_[at_] == '\r';
  }

  void SkipLineEnd() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
  }

  Status ReadRow(Row& row) {
    for (;;) {
      PL_TRY_ASSIGN(std::string cell, ReadCell());
      row.push_back(std::move(cell));
      if (AtLineEnd()) return {};
      ++at_;  // the comma
    }
  }

  Result<std::string> ReadCell() {
    if (at_ < text_.size() && text_[at_] == '"') return ReadQuoted();
    const size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    std::string cell(text_.substr(at_, end - at_));
    at_ = end;
    return cell;
  }

  Result<std::string> ReadQuoted() {
    const size_t start = at_++;
    std::string cell;
    for (;;) {
      const size_t quote = text_.find('"', at_);
      if (quote == std::string_view::npos) {
        is_in_quotes_ = true;
        return Error(ErrorCode::kCorrupt,
                     fmt::format("quoted cell at byte {} never ends", first_byte_ + start));
      }
      cell += text_.substr(at_, quote - at_);
      at_ = quote + 1;
      if (at_ == text_.size() || text_[at_] != '"') break;
      cell += '"';
      ++at_;
    }
    if (!AtLineEnd() && text_[at_] != ',') {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("text after the closing quote at byte {} (expected a comma)",
                               first_byte_ + at_));
    }
    return cell;
  }

  std::string_view text_;
  size_t first_byte_;
  size_t at_ = 0;
  bool is_in_quotes_ = false;
};

// Reads a file block by block and hands on its rows; a row that the end of a block cuts is read
// again with the next one.
class BlockReader {
 public:
  BlockReader(File file, bool whole_rows_only)
      : file_(std::move(file)), whole_rows_only_(whole_rows_only) {}

  // Returns where the rows end that were handed on.
  Result<uint64_t> Run(const VisitPlacedRow& visit) {
    while (!is_end_) {
      PL_TRY(Load());
      PL_TRY(VisitLoaded(visit));
    }
    return offset_;
  }

 private:
  // Adds a block to what is left of the last one. Where that held no whole row the block is twice
  // as large, so that a cell without an end costs no more than reading it twice.
  Status Load() {
    const size_t kept = text_.size();
    if (kept >= block_bytes_) block_bytes_ *= 2;
    text_.resize(kept + block_bytes_);
    PL_TRY_ASSIGN(
        const size_t got,
        file_.ReadAt(std::as_writable_bytes(std::span(text_).subspan(kept)), offset_ + kept));
    text_.resize(kept + got);
    is_end_ = got < block_bytes_;
    return {};
  }

  Status VisitLoaded(const VisitPlacedRow& visit) {
    size_t taken = 0;
    if (offset_ == 0 && text_.starts_with(kByteOrderMark)) taken = kByteOrderMark.size();
    const size_t skipped = taken;
    Splitter splitter(std::string_view(text_).substr(skipped), offset_ + skipped);
    while (!splitter.is_done()) {
      Result<Row> row = splitter.Next();
      if (splitter.is_cut() && (!is_end_ || whole_rows_only_)) break;
      if (!row) return row.error();
      const RowPlace place{offset_ + taken, offset_ + skipped + splitter.taken()};
      PL_TRY(visit(*row, place));
      taken = skipped + splitter.taken();
    }
    text_.erase(0, taken);
    offset_ += taken;
    return {};
  }

  File file_;
  bool whole_rows_only_;
  size_t block_bytes_ = size_t{4} << 20;
  std::string text_;
  uint64_t offset_ = 0;  // of the text in the file
  bool is_end_ = false;
};

}  // namespace

void AppendCell(std::string_view cell, std::string& out) {
  const Needs needs = NeedsOf(cell);
  if (needs.care && !IsReadable(cell)) return AppendCell(ReadableText(cell), out);
  const bool guard = needs.parts ? LooksLikeFormula(cell) : IsFormula(cell);
  if (!needs.quotes) {
    if (guard) out += ' ';
    out += cell;
    return;
  }
  out += '"';
  if (guard) out += ' ';
  AppendQuoted(cell, out);
  out += '"';
}

void AppendExactly(std::string_view cell, std::string& out) {
  if (!NeedsOf(cell).quotes) {
    out += cell;
    return;
  }
  out += '"';
  AppendQuoted(cell, out);
  out += '"';
}

bool LooksLikeFormula(std::string_view cell) {
  if (StartsWithTrigger(cell)) return !IsNumber(cell);
  for (size_t at = cell.find(';'); at != std::string_view::npos; at = cell.find(';', at + 1)) {
    if (StartsWithTrigger(cell.substr(at + 1))) return true;
  }
  return false;
}

void AppendRow(std::span<const std::string_view> cells, std::string& out) {
  AppendCells(cells, out);
}

void AppendRow(std::span<const std::string> cells, std::string& out) { AppendCells(cells, out); }

Result<std::vector<Row>> Parse(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<Row> rows;
  PL_TRY(Splitter(text).Run([&](Row& row) -> Status {
    rows.push_back(std::move(row));
    return {};
  }));
  return rows;
}

Result<FirstRow> ParseFirst(std::string_view text) {
  Splitter splitter(text);
  PL_TRY_ASSIGN(Row cells, splitter.Next());
  return FirstRow{std::move(cells), splitter.taken()};
}

Result<std::vector<Row>> ReadRows(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  auto rows = Parse(text);
  if (!rows) return rows.error().In(path);
  return rows;
}

Status VisitRows(const std::string& path, const std::function<Status(Row& row)>& visit) {
  PL_TRY_ASSIGN(File file, File::OpenRead(path));
  BlockReader reader(std::move(file), /*whole_rows_only=*/false);
  const auto end = reader.Run([&](Row& row, const RowPlace& /*place*/) { return visit(row); });
  if (!end) return end.error().In(path);
  return {};
}

Result<uint64_t> VisitWholeRows(const std::string& path, const VisitPlacedRow& visit) {
  PL_TRY_ASSIGN(File file, File::OpenRead(path));
  const auto end = BlockReader(std::move(file), /*whole_rows_only=*/true).Run(visit);
  if (!end) return end.error().In(path);
  return *end;
}

}  // namespace plumbline::csv
