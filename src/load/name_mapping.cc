#include "load/name_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/csv.h"
#include "base/file.h"
#include "base/utf8.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

constexpr std::string_view kNpy = ".npy";

std::string AsArray(const std::string& name) {
  return name.ends_with(kNpy) ? name : name + std::string(kNpy);
}

// One row of the table; an empty file or name: it is none.
struct Row {
  std::string file, name;
  size_t bytes = 0;  // that it takes of the text
  bool is_blank = false;
};

// The first row of a text. Most writers do not quote, and then the name is everything behind the
// first comma; where the cells are quoted from end to end, they are what the quotes hold.
Row ReadRow(std::string_view text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t comma = line.find(',');
  const bool has_quote = line.starts_with('"') || (comma != std::string_view::npos &&
                                                   line.substr(comma + 1).starts_with('"'));
  if (has_quote) {
    Result<csv::FirstRow> first = csv::ParseFirst(text);
    if (first && first->cells.size() == 2) {
      return {std::move(first->cells[0]), std::move(first->cells[1]), first->bytes, false};
    }
  }
  Row row;
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
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  for (size_t line = 1; !rest.empty();) {
    Row row = ReadRow(rest);
    const std::string_view taken = rest.substr(0, row.bytes);
    if (!row.is_blank && (row.file.empty() || row.name.empty())) {
      mapping.notes_.push_back(
          fmt::format("{}: line {} is no row (expected FILE,NAME); left out", path, line));
    } else if (!row.is_blank) {
      mapping.Add(std::move(row.file), std::move(row.name));
    }
    line += static_cast<size_t>(std::ranges::count(taken, '\n'));
    rest.remove_prefix(row.bytes);
  }
  return mapping;
}

void NameMapping::Add(std::string file, std::string name) {
  if (file.ends_with(kNpy)) {
    name = AsArray(name);
  } else {
    arrays_.insert_or_assign(AsArray(file), AsArray(name));
  }
  rows_.insert_or_assign(std::move(file), std::move(name));
}

const std::string& NameMapping::NameOf(const std::string& file) const {
  if (const auto row = rows_.find(file); row != rows_.end()) return row->second;
  const auto array = arrays_.find(file);
  return array == arrays_.end() ? file : array->second;
}

}  // namespace plumbline::load
