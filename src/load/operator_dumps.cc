#include "load/operator_dumps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/csv.h"
#include "base/file.h"
#include "base/text_parts.h"
#include "formats/acl_file_name.h"
#include "load/operator_slices.h"

namespace plumbline::load {
namespace {

constexpr std::string_view kMappingFile = "mapping.csv";
constexpr size_t kTimestampDigits = 16;

// Parts of operator names by which upstream tells quantised models.
constexpr std::string_view kQuantMarkers[] = {
    "_quant_layer", "_anti_quant_layer", "AscendQuant", "AscendWeightQuant", "AntiQuant",
    "_quant",       "_weight_quant",     "_anti_quant", "_dequant_layer",    "AscendDequant",
    "_dequant"};

bool IsName(std::string_view text) {
  const auto is_part = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_part);
}

uint64_t TimestampOf(std::string_view digits) {
  if (digits.size() != kTimestampDigits) return 0;
  return static_cast<uint64_t>(ParseNatural(digits).value_or(0));
}

std::optional<OperatorDump> ParseDevice(std::string_view file_name) {
  const std::optional<acl::DumpFileName> name = acl::ParseDumpFileName(file_name);
  if (!name || !IsName(name->op_type) || !IsName(name->op_name)) return std::nullopt;
  OperatorDump dump;
  dump.op_type = name->op_type;
  dump.op_name = name->op_name;
  dump.timestamp = name->sort_time();
  if (name->thread) dump.thread_id = static_cast<int64_t>(name->thread->thread_id);
  if (name->thread && name->thread->task_type == acl::kFftsTask) {
    const std::optional<SliceName> by_hand = ParseSliceName(dump.op_name);
    dump.slices.files.push_back({"", by_hand ? by_hand->number : *dump.thread_id, dump.timestamp});
  }
  return dump;
}

// {name}.{output}.{time}.npy
std::optional<OperatorDump> ParseArray(const std::vector<std::string_view>& parts) {
  if (parts.size() < 4) return std::nullopt;
  const std::string_view output = parts[parts.size() - 3], time = parts[parts.size() - 2];
  OperatorDump dump;
  for (size_t i = 0; i + 3 < parts.size(); ++i) {
    if (!IsName(parts[i])) return std::nullopt;
    dump.op_name += (i == 0 ? "" : "_") + std::string(parts[i]);
  }
  if (!IsDigits(output) || !IsDigits(time)) return std::nullopt;
  dump.output = ParseNatural(output);
  if (!dump.output) return std::nullopt;
  dump.timestamp = TimestampOf(time);
  return dump;
}

// The names that stand for long ones, of a directory that has such a table.
Result<std::map<std::string, std::string>> LongNames(const std::string& directory,
                                                     OperatorDumps& dumps) {
  std::map<std::string, std::string> names;
  const std::string path = JoinPath(directory, kMappingFile);
  if (KindOf(path) != PathKind::kFile) return names;
  PL_TRY_ASSIGN(const std::vector<csv::Row> rows, csv::ReadRows(path));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() == 2) {
      names[rows[i][0]] = rows[i][1];
    } else if (!rows[i].empty()) {
      dumps.notes.push_back(fmt::format("{}: line {}: wrong number of fields (expected 2, got {})",
                                        path, i + 1, rows[i].size()));
    }
  }
  return names;
}

// The name that a file stands for: its own, or the one behind digits. Empty if the table lacks it.
std::string NameBehind(const std::string& file, const std::map<std::string, std::string>& names) {
  constexpr std::string_view kArray = ".npy";
  const bool is_array = file.ends_with(kArray);
  const std::string stem = is_array ? file.substr(0, file.size() - kArray.size()) : file;
  if (!IsDigits(stem)) return file;
  for (const std::string& key : {file, stem}) {
    const auto found = names.find(key);
    if (found == names.end()) continue;
    return is_array && !found->second.ends_with(kArray) ? found->second + std::string(kArray)
                                                        : found->second;
  }
  return {};
}

Error NoDumps(const std::string& directory) {
  return {ErrorCode::kNotFound,
          directory +
              ": No valid dump files in the path (expected names such as "
              "Conv2D.conv1.2.7.1612439563338020 or conv1.0.1612439563338020.npy)"};
}

}  // namespace

std::string_view OperatorDumpKindName(OperatorDumpKind kind) {
  switch (kind) {
    case OperatorDumpKind::kOffline:
      return "Offline";
    case OperatorDumpKind::kStandard:
      return "Standard";
    case OperatorDumpKind::kQuant:
      return "Quant";
  }
  return "";
}

bool IsQuantisedName(std::string_view op_name) {
  return std::any_of(
      std::begin(kQuantMarkers), std::end(kQuantMarkers),
      [&](std::string_view marker) { return op_name.find(marker) != std::string_view::npos; });
}

std::optional<OperatorDump> ParseOperatorDumpName(std::string_view file_name) {
  const std::vector<std::string_view> parts = SplitAt(file_name, '.');
  return parts.back() == "npy" ? ParseArray(parts) : ParseDevice(file_name);
}

Result<OperatorDumps> ReadOperatorDumps(const std::string& directory) {
  OperatorDumps dumps;
  PL_TRY_ASSIGN(const std::vector<std::string> files, ListDirectory(directory));
  PL_TRY_ASSIGN(const auto long_names, LongNames(directory, dumps));
  bool has_arrays = false;
  for (const std::string& file : files) {
    const std::string path = JoinPath(directory, file);
    if (file == kMappingFile || file == "convert_failed_file_list.txt") continue;
    if (KindOf(path) != PathKind::kFile) continue;
    std::optional<OperatorDump> dump = ParseOperatorDumpName(NameBehind(file, long_names));
    if (!dump) {
      dumps.notes.push_back(path + ": not the name of a dump; left out");
      continue;
    }
    dump->path = path;
    for (OperatorSlice& slice : dump->slices.files) slice.path = path;
    dumps.is_quantised = dumps.is_quantised || IsQuantisedName(dump->op_name);
    if (!dumps.files.empty() && has_arrays != dump->output.has_value()) {
      return Error(ErrorCode::kInvalidArgument,
                   "Not all files in the path " + directory +
                       " are of the same type (device dumps and .npy arrays).");
    }
    has_arrays = dump->output.has_value();
    dumps.files.push_back(std::move(*dump));
  }
  if (dumps.files.empty()) return NoDumps(directory);
  if (has_arrays) {
    dumps.kind = dumps.is_quantised ? OperatorDumpKind::kQuant : OperatorDumpKind::kStandard;
  }
  std::sort(dumps.files.begin(), dumps.files.end(), [](const auto& a, const auto& b) {
    return std::tie(a.timestamp, a.path) < std::tie(b.timestamp, b.path);
  });
  return dumps;
}

}  // namespace plumbline::load
