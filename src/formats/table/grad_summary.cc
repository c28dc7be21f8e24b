#include "formats/table/grad_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/csv.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"

namespace plumbline::grad_summary {
namespace {

constexpr std::string_view kNameColumn = "param_name";
constexpr std::string_view kFilePrefix = "grad_summary_";
constexpr std::string_view kFileEnding = ".csv";

// Not AppendRow(): the column "=0" is one that programs look up.
void AppendLine(std::span<const std::string> cells, std::string& out) {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out += ',';
    csv::AppendExactly(cells[i], out);
  }
  out += "\r\n";
}

std::vector<std::string> Header(const Columns& columns) {
  std::vector<std::string> cells = {std::string(kNameColumn)};
  if (columns.has_md5) cells.emplace_back("MD5");
  if (columns.has_shares) {
    std::string low = "(-inf";
    for (const std::string& bound : columns.bounds) {
      cells.push_back(fmt::format("{}, {}]", low, bound));
      low = "(" + bound;
    }
    cells.push_back(low + ", inf)");
    cells.emplace_back("=0");
  }
  cells.insert(cells.end(), {"max", "min", "norm", "shape"});
  return cells;
}

std::vector<std::string> Cells(const Columns& columns, const Row& row) {
  std::vector<std::string> cells = {row.name};
  if (columns.has_md5) cells.push_back(row.md5);
  if (columns.has_shares) {
    for (const uint64_t count : row.counts) {
      const auto all = static_cast<double>(row.elements);
      cells.push_back(row.elements == 0 ? "0" : PythonFloat(static_cast<double>(count) / all));
    }
  }
  for (const double value : {row.max, row.min, row.norm}) cells.push_back(PythonFloat(value));
  cells.push_back(fmt::format("[{}]", fmt::join(row.shape, ", ")));
  return cells;
}

}  // namespace

std::string FileText(const Columns& columns, std::span<const Row> rows) {
  std::string text = "\xEF\xBB\xBF";
  AppendLine(Header(columns), text);
  for (const Row& row : rows) AppendLine(Cells(columns, row), text);
  return text;
}

std::string FileName(int64_t step) {
  return fmt::format("{}{}{}", kFilePrefix, step, kFileEnding);
}

std::optional<int64_t> StepOf(std::string_view file_name) {
  if (!file_name.starts_with(kFilePrefix) || !file_name.ends_with(kFileEnding)) return {};
  file_name.remove_prefix(kFilePrefix.size());
  if (file_name.size() < kFileEnding.size()) return {};
  file_name.remove_suffix(kFileEnding.size());
  return ParseNatural(file_name);
}

Result<std::vector<Entry>> ReadEntries(const std::string& path) {
  PL_TRY_ASSIGN(const std::vector<csv::Row> rows, csv::ReadRows(path));
  const csv::Row header = rows.empty() ? csv::Row() : rows.front();
  std::optional<size_t> name;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < header.size(); ++i) {
    const std::string column = LowerCase(header[i]);
    if (column == kNameColumn && !name) name = i;
    if (column == "max" || column == "min" || column == "norm") numbers.push_back(i);
  }
  if (!name) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: no column {} (expected a file of a gradient probe)", path,
                             kNameColumn));
  }
  std::vector<Entry> entries;
  for (size_t i = 1; i < rows.size(); ++i) {
    const csv::Row& row = rows[i];
    if (*name >= row.size()) continue;
    const bool is_nonfinite = std::ranges::any_of(numbers, [&](size_t at) {
      const auto value = at < row.size() ? ParseReal(row[at]) : std::nullopt;
      return value && !std::isfinite(*value);
    });
    entries.push_back({row[*name], is_nonfinite});
  }
  return entries;
}

}  // namespace plumbline::grad_summary
