#include "load/name_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/text/csv.h"
#include "base/text/text_parts.h"
#include "formats/array/npy.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

std::string AsArray(const std::string& name) {
  return name.ends_with(npy::kEnding) ? name : name + std::string(npy::kEnding);
}

// One row of the table; an empty file or name: it is none.
struct ParsedRow {
  std::string_view file, name;       // in the text
  std::optional<csv::Row> unquoted;  // in their place: cells that had quotes
  size_t bytes = 0;                  // that it takes of the text
  bool is_blank = false;
};

// The first row of a text. Most writers do not quote, and then the name is everything behind the
// first comma; where the cells are quoted from end to end, they are what the quotes hold.
ParsedRow ReadRow(std::string_view text) {
  ParsedRow row;
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t comma = line.find(',');
  const bool has_quote = line.starts_with('"') || (comma != std::string_view::npos &&
                                                   line.substr(comma + 1).starts_with('"'));
  if (has_quote) {
    Result<csv::FirstRow> first = csv::ParseFirst(text);
    if (first && first->cells.size() == 2) {
      row.bytes = first->bytes;
      row.unquoted = std::move(first->cells);
      return row;
    }
  }
  row.bytes = std::min(end + 1, text.size());
  row.is_blank = line.empty();
  if (comma == std::string_view::npos) return row;
  row.file = line.substr(0, comma);
  row.name = line.substr(comma + 1);
  return row;
}

}  // namespace

Result<NameMapping> NameMapping::Read(const std::string& directory) {
  NameMapping mapping;
  const std::string path = JoinPath(directory, run_files::kMappingCsv);
  if (KindOf(path) != PathKind::kFile) return mapping;
  PL_TRY_ASSIGN(mapping.text_, ReadFile(path));
  mapping.AddRows(path);
  mapping.SortRows();
  return mapping;
}

void NameMapping::AddRows(const std::string& path) {
  std::string_view rest = text_;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  for (size_t line = 1; !rest.empty();) {
    const ParsedRow row = ReadRow(rest);
    const std::string_view taken = rest.substr(0, row.bytes);
    const std::string_view file = row.unquoted ? (*row.unquoted)[0] : row.file;
    const std::string_view name = row.unquoted ? (*row.unquoted)[1] : row.name;
    const bool is_row =
        !file.empty() && !name.empty() && file.size() <= UINT32_MAX && name.size() <= UINT32_MAX;
    if (is_row) {
      const auto place = [&](std::string_view cell) -> uint64_t {
        if (!row.unquoted) return static_cast<uint64_t>(cell.data() - text_.data());
        unquoted_ += cell;
        return text_.size() + unquoted_.size() - cell.size();
      };
      rows_.push_back({place(file), place(name), static_cast<uint32_t>(file.size()),
                       static_cast<uint32_t>(name.size())});
    } else if (!row.is_blank) {
      notes_.push_back(
          fmt::format("{}: line {} is no row (expected FILE,NAME); left out", path, line));
    }
    line += static_cast<size_t>(std::ranges::count(taken, '\n'));
    rest.remove_prefix(row.bytes);
  }
}

void NameMapping::SortRows() {
  const auto file_of = [this](const Row& row) { return Text(row.file_at, row.file_bytes); };
  std::ranges::stable_sort(rows_, {}, file_of);
  // The last of those for one file.
  size_t kept = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const bool is_last = i + 1 == rows_.size() || file_of(rows_[i]) != file_of(rows_[i + 1]);
    if (is_last) rows_[kept++] = rows_[i];
  }
  rows_.resize(kept);
}

std::string_view NameMapping::Text(uint64_t at, uint32_t bytes) const {
  if (at < text_.size()) return std::string_view(text_).substr(at, bytes);
  return std::string_view(unquoted_).substr(at - text_.size(), bytes);
}

std::string NameMapping::NameIn(const Row& row) const {
  const std::string name(Text(row.name_at, row.name_bytes));
  return Text(row.file_at, row.file_bytes).ends_with(npy::kEnding) ? AsArray(name) : name;
}

std::optional<std::string> NameMapping::Find(std::string_view file) const {
  const auto found = std::ranges::lower_bound(
      rows_, file, {}, [this](const Row& row) { return Text(row.file_at, row.file_bytes); });
  const bool is_there = found != rows_.end() && Text(found->file_at, found->file_bytes) == file;
  return is_there ? std::optional(NameIn(*found)) : std::nullopt;
}

std::string NameMapping::NameOf(std::string_view file) const {
  if (rows_.empty()) return std::string(file);
  if (const auto name = Find(file)) return *name;
  if (!file.ends_with(npy::kEnding)) return std::string(file);
  const auto name = Find(file.substr(0, file.size() - npy::kEnding.size()));
  return name ? AsArray(*name) : std::string(file);
}

std::map<std::string, std::string> NameMapping::rows() const {
  std::map<std::string, std::string> all;
  for (const Row& row : rows_) all.emplace(Text(row.file_at, row.file_bytes), NameIn(row));
  return all;
}

}  // namespace plumbline::load
