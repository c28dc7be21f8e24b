#include "load/atb_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/file/file.h"
#include "base/text/csv.h"
#include "base/text/text_parts.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

constexpr size_t kMaxHeaderBytes = 4096;
constexpr std::string_view kNotAvailable = "N/A";
constexpr std::string_view kDumpName = "atb_dump_data";
constexpr size_t kPathPartsOfDump = 4;  // up to device and process, which the root stands for

enum Column : size_t {
  kDevice,
  kExecution,
  kOpName,
  kOpType,
  kOpId,
  kIo,
  kIndex,
  kDType,
  kFormat,
  kShape,
  kMax,
  kMin,
  kMean,
  kNorm,
  kPath,
  kColumnCount,
};

// Where the file is now: what the recorder wrote names the place where it ran.
std::string PathOf(const std::string& root, std::string_view recorded) {
  const size_t at = recorded.rfind(kDumpName);
  if (at == std::string_view::npos) return {};
  const std::vector<std::string_view> parts = SplitAt(recorded.substr(at), '/');
  std::string path = root;
  for (size_t i = kPathPartsOfDump; i < parts.size(); ++i) {
    if (parts[i].empty() || parts[i] == "..") return {};  // never out of the directory
    path = JoinPath(path, parts[i]);
  }
  return parts.size() > kPathPartsOfDump ? path : std::string();
}

bool AddRow(const csv::Row& row, const std::string& root, AtbDump& dump) {
  if (row.size() != kColumnCount) return false;
  const auto names = SplitAt(row[kOpName], '/'), ids = SplitAt(row[kOpId], '_');
  if (names.size() != ids.size()) return false;
  AtbTensor& tensor = dump.tensors.emplace_back();
  for (size_t i = 0; i < names.size(); ++i) {
    tensor.operation += fmt::format("{}{}_{}", i == 0 ? "" : "/", ids[i], names[i]);
  }
  tensor.name = fmt::format("{}/{}.{}", tensor.operation, row[kIo], row[kIndex]);
  tensor.is_output = row[kIo].find("out") == 0 || row[kIo].find("Out") == 0;
  tensor.device_and_pid = row[kDevice];
  tensor.execution_count = row[kExecution];
  tensor.dtype = row[kDType];
  tensor.shape = row[kShape];
  tensor.statistics = {row[kMax], row[kMin], row[kMean], row[kNorm]};
  if (row[kPath] != kNotAvailable) tensor.path = PathOf(root, row[kPath]);
  return true;
}

}  // namespace

bool IsAtbDump(const std::string& path) {
  const std::string csv = JoinPath(path, run_files::kStatisticCsv);
  if (KindOf(csv) != PathKind::kFile) return false;
  const auto start = ReadStart(csv, kMaxHeaderBytes);
  if (!start) return false;
  const auto rows = csv::Parse(std::string_view(*start).substr(0, start->find_first_of("\r\n")));
  // MindSpore's file of this name begins with "Op Type".
  return rows && !rows->empty() && rows->front().size() == kColumnCount &&
         rows->front()[kDevice] != "Op Type";
}

Result<AtbDump> ReadAtbDump(const std::string& directory) {
  const std::string path = JoinPath(directory, run_files::kStatisticCsv);
  PL_TRY_ASSIGN(const std::vector<csv::Row> rows, csv::ReadRows(path));
  if (rows.empty() || rows.front().size() != kColumnCount) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: no ATB dump ({} columns, expected {})", path,
                             rows.empty() ? 0 : rows.front().size(), size_t{kColumnCount}));
  }
  AtbDump dump;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (!rows[i].empty() && !AddRow(rows[i], directory, dump)) ++dump.left_out;
  }
  if (dump.tensors.empty()) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: holds no tensor", path));
  }
  // Blank lines may stand in front of the first row.
  const auto first =
      std::find_if(rows.begin() + 1, rows.end(), [](const csv::Row& row) { return !row.empty(); });
  dump.has_tensors = first != rows.end() && first->back() != kNotAvailable;
  return dump;
}

}  // namespace plumbline::load
