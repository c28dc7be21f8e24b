#include "pipeline/ranks/merge_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/csv.h"
#include "base/file.h"
#include "base/text_parts.h"

namespace plumbline::pipeline {
namespace {

constexpr std::string_view kPrefix = "compare_result_rank";
constexpr std::string_view kMergedPrefix = "multi_ranks_compare_merge_";
constexpr size_t kStampDigits = 14;

// A name of the form compare_result_rank{n}[-rank{m}]_{14 digits}[_{k}][_part_{i}].{extension}.
struct ResultName {
  std::optional<int64_t> rank;  // none: "rank", a run of one process
  std::string stamp;            // what orders results of one rank in time
  uint64_t repeat = 0;          // k
  uint64_t part = 0;            // i
};

// Takes a number off the front of `text`.
std::optional<uint64_t> TakeNumber(std::string_view& text) {
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  return number;
}

bool TakeText(std::string_view prefix, std::string_view& text) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<ResultName> ParseName(std::string_view stem) {
  if (!TakeText(kPrefix, stem)) return std::nullopt;
  ResultName name;
  if (const auto rank = TakeNumber(stem)) name.rank = static_cast<int64_t>(*rank);
  if (TakeText("-rank", stem)) {
    // Of the golden side; tables are labelled by the target's rank.
    const bool numbered = TakeNumber(stem).has_value();
    if (numbered != name.rank.has_value()) return std::nullopt;
  }
  if (!TakeText("_", stem) || stem.size() < kStampDigits) return std::nullopt;
  name.stamp = stem.substr(0, kStampDigits);
  if (name.stamp.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  stem.remove_prefix(kStampDigits);
  if (TakeText("_part_", stem)) {
    const auto part = TakeNumber(stem);
    if (!part) return std::nullopt;
    name.part = *part;
  } else if (TakeText("_", stem)) {
    const auto repeat = TakeNumber(stem);
    if (!repeat) return std::nullopt;
    name.repeat = *repeat;
    if (TakeText("_part_", stem)) name.part = TakeNumber(stem).value_or(0);
  }
  if (!stem.empty()) return std::nullopt;
  return name;
}

// One result of one rank: a point in time and a kind of file.
struct SetKey {
  std::string stamp;
  uint64_t repeat = 0;
  bool is_workbook = false;  // the workbook counts as later than the CSV of the same time
  friend auto operator<=>(const SetKey&, const SetKey&) = default;
};
using Parts = std::map<uint64_t, std::string>;

Status AddCsvRows(const std::string& path, const TableVisitor& visit) {
  PL_TRY_ASSIGN(std::vector<csv::Row> rows, csv::ReadRows(path));
  if (rows.empty()) return {};
  std::vector<xlsx::Cell> cells;
  for (size_t i = 1; i < rows.size(); ++i) {
    cells.clear();
    for (std::string& cell : rows[i]) {
      const bool is_number = cell.find_first_not_of("0123456789.eE+-") == std::string::npos &&
                             ParseReal(cell).has_value();
      cells.push_back({std::move(cell), is_number});
    }
    PL_TRY(visit(rows.front(), cells));
  }
  return {};
}

Status AddWorkbookRows(const std::string& path, const TableVisitor& visit) {
  std::vector<std::string> header;
  std::optional<size_t> current;
  Status status;
  PL_TRY(xlsx::ReadRows(path, [&](size_t sheet, std::span<const xlsx::Cell> cells) {
    if (current != sheet) {
      current = sheet;
      header.clear();
      for (const xlsx::Cell& cell : cells) header.push_back(cell.text);
      return true;
    }
    status = visit(header, cells);
    return status.has_value();
  }));
  return status;
}

}  // namespace

Result<RankTables> FindRankTables(const std::string& directory) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  RankTables out;
  std::map<int64_t, std::map<SetKey, Parts>> by_rank;
  for (const std::string& file : names) {
    const bool is_workbook = file.ends_with(".xlsx");
    if (!is_workbook && !file.ends_with(".csv")) continue;
    if (file.starts_with(kMergedPrefix) || file.starts_with('.')) continue;  // our own output
    const std::string path = JoinPath(directory, file);
    const auto name = ParseName(std::string_view(file).substr(0, file.rfind('.')));
    if (!name) {
      if (!is_workbook) continue;
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: not the result of a rank (expected a name such as "
                               "compare_result_rank0-rank0_20260131120000.xlsx). Move it away.",
                               path));
    }
    if (!name->rank) {
      out.left_out.push_back(fmt::format("{}: of a run without ranks; left out", path));
      continue;
    }
    by_rank[*name->rank][{name->stamp, name->repeat, is_workbook}][name->part] = path;
  }
  for (auto& [rank, sets] : by_rank) {
    RankTable table;
    table.rank = rank;
    const auto& [key, parts] = *sets.rbegin();
    for (const auto& [part, path] : parts) table.files.push_back(path);
    for (const auto& [other, files] : sets) {
      if (std::tie(other.stamp, other.repeat) == std::tie(key.stamp, key.repeat)) continue;
      out.warnings.push_back(
          fmt::format("{}: an older result of rank {}; left out", files.begin()->second, rank));
    }
    out.tables.push_back(std::move(table));
  }
  return out;
}

Status ReadTable(const std::string& path, const TableVisitor& visit) {
  return path.ends_with(".csv") ? AddCsvRows(path, visit) : AddWorkbookRows(path, visit);
}

}  // namespace plumbline::pipeline
