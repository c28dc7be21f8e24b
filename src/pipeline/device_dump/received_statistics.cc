#include "pipeline/device_dump/received_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/csv.h"
#include "base/file.h"
#include "base/text_parts.h"
#include "formats/acl_file_name.h"
#include "record/run_files.h"

namespace plumbline::pipeline {
namespace {

constexpr std::string_view kFirstColumn = "Input/Output";
constexpr std::array<std::string_view, 6> kTensorColumns = {"input/output", "index",  "datasize",
                                                            "datatype",     "format", "shape"};
constexpr size_t kShape = 5;  // the only cell that may hold commas, as the device does not quote
constexpr const char* kHeader =
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,Input/Output,Slot,Data Size,Data Type,Format,"
    "Shape";

struct Statistic {
  std::string_view column;                  // of statistic.csv, in its order
  std::array<std::string_view, 2> spelled;  // by devices, without case and blanks
};
constexpr std::array<Statistic, 8> kStatistics = {
    {{"Max Value", {"maxvalue", "max"}},
     {"Min Value", {"minvalue", "min"}},
     {"Avg Value", {"avgvalue", "avg"}},
     {"L2 Norm Value", {"l2normvalue", "l2norm"}},
     {"Nan Count", {"nancount", "nan"}},
     {"Negative Inf Count", {"negativeinfcount", "negativeinf"}},
     {"Positive Inf Count", {"positiveinfcount", "positiveinf"}},
     {"MD5 Value", {"md5value", "md5"}}}};

std::string Plain(std::string_view name) {
  std::string text = LowerCase(name);
  std::erase(text, ' ');
  return text;
}

std::optional<size_t> PlaceOf(const csv::Row& header, std::span<const std::string_view> names) {
  for (size_t i = 0; i < header.size(); ++i) {
    if (std::ranges::find(names, Plain(header[i])) != names.end()) return i;
  }
  return std::nullopt;
}

// Which cells of a device's row go where.
struct Layout {
  std::vector<size_t> cells;  // of tensor and statistics, in the order of statistic.csv
  std::string header;         // line of statistic.csv
  size_t count = 0;           // cells of a row
};

Result<Layout> LayoutOf(const csv::Row& header, const std::string& piece) {
  Layout layout{{}, kHeader, header.size()};
  for (const std::string_view& name : kTensorColumns) {
    const auto place = PlaceOf(header, {&name, 1});
    if (!place) {
      return Error(ErrorCode::kCorrupt, fmt::format("{}: has no column {}", piece, name));
    }
    layout.cells.push_back(*place);
  }
  for (const Statistic& statistic : kStatistics) {
    const auto place = PlaceOf(header, statistic.spelled);
    if (!place) continue;
    layout.cells.push_back(*place);
    layout.header += fmt::format(",{}", statistic.column);
  }
  layout.header += "\n";
  return layout;
}

// With the commas of an unquoted shape, "(2,3)", in one cell again.
Result<csv::Row> WholeRow(csv::Row row, const Layout& layout, const std::string& piece) {
  if (row.size() < layout.count) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: a row has too few cells (expected {}, got "
                                                  "{})",
                                                  piece, layout.count, row.size()));
  }
  const size_t place = layout.cells[kShape], surplus = row.size() - layout.count;
  for (size_t i = 0; i < surplus; ++i) row[place] += "," + row[place + 1 + i];
  const auto first = row.begin() + static_cast<std::ptrdiff_t>(place) + 1;
  row.erase(first, first + static_cast<std::ptrdiff_t>(surplus));
  return row;
}

Result<std::string> RowsText(const std::vector<csv::Row>& table, const Layout& layout,
                             const std::string& piece, const acl::DumpFileName& name) {
  const std::string task = std::to_string(name.task_id);
  const std::string stream = name.stream_id ? std::to_string(*name.stream_id) : "";
  std::string text;
  for (size_t i = 1; i < table.size(); ++i) {
    if (table[i].empty()) continue;
    PL_TRY_ASSIGN(const csv::Row row, WholeRow(table[i], layout, piece));
    csv::Row cells = {name.op_type, name.op_name, task, stream, name.timestamp};
    for (const size_t place : layout.cells) cells.push_back(row[place]);
    csv::AppendRow(cells, text);
  }
  return text;
}

}  // namespace

bool IsDeviceTable(const std::string& piece) {
  const Result<std::string> start = ReadStart(piece, kFirstColumn.size());
  return start && *start == kFirstColumn;
}

Result<uint64_t> AddDeviceTable(const std::string& piece, const std::string& target) {
  const auto name = acl::ParseDumpFileName(BaseName(target));
  if (!name) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: is no name of a dump file", target));
  }
  PL_TRY_ASSIGN(const std::vector<csv::Row> table, csv::ReadRows(piece));
  PL_TRY_ASSIGN(const Layout layout, LayoutOf(table.front(), target));
  PL_TRY_ASSIGN(const std::string rows, RowsText(table, layout, target, *name));
  const std::string path = JoinPath(DirectoryOf(target), run_files::kStatisticCsv);
  PL_TRY_ASSIGN(File out, File::OpenAppend(path));
  for (;;) {
    PL_TRY_ASSIGN(const bool locked, out.TryLock());
    if (locked) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  PL_TRY_ASSIGN(const uint64_t size, FileSize(path));
  PL_TRY_ASSIGN(const std::string start, ReadStart(path, layout.header.size()));
  if (size > 0 && start != layout.header) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: has other columns than the rows to add", path));
  }
  PL_TRY(out.Write((size == 0 ? layout.header : std::string()) + rows));
  return static_cast<uint64_t>(std::ranges::count(rows, '\n'));
}

}  // namespace plumbline::pipeline
