#include "load/operator_dumps.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/list_entries.h"
#include "formats/acl_file_name.h"
#include "load/name_mapping.h"
#include "load/operator_slices.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

// Parts of operator names by which upstream tells quantised models.
constexpr std::string_view kQuantMarkers[] = {
    "_quant_layer", "_anti_quant_layer", "AscendQuant", "AscendWeightQuant", "AntiQuant",
    "_quant",       "_weight_quant",     "_anti_quant", "_dequant_layer",    "AscendDequant",
    "_dequant"};

// A dump file, or nothing.
std::optional<OperatorDump> ParseDevice(std::string_view file_name) {
  const std::optional<acl::DumpFileName> name = acl::ParseDumpFileName(file_name);
  if (!name || !acl::IsOperatorName(name->op_type) || !acl::IsOperatorName(name->op_name)) {
    return std::nullopt;
  }
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

// An array of one output, or nothing.
std::optional<OperatorDump> ParseArray(std::string_view file_name) {
  const std::optional<acl::ArrayFileName> name = acl::ParseArrayFileName(file_name);
  if (!name) return std::nullopt;
  OperatorDump dump;
  dump.op_name = name->op_name;
  dump.output = name->output;
  dump.timestamp = name->sort_time();
  return dump;
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
  return file_name.ends_with(".npy") ? ParseArray(file_name) : ParseDevice(file_name);
}

Result<OperatorDumps> ReadOperatorDumps(const std::string& directory) {
  OperatorDumps dumps;
  PL_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, ListEntries(directory));
  PL_TRY_ASSIGN(const NameMapping mapping, NameMapping::Read(directory));
  dumps.notes = mapping.notes();
  bool has_arrays = false;
  for (const auto& [file, kind] : entries) {
    if (kind == PathKind::kDirectory || run_files::IsAboutDumps(file)) continue;
    std::string path = JoinPath(directory, file);
    std::string name = mapping.NameOf(file);
    std::optional<OperatorDump> dump = ParseOperatorDumpName(name);
    if (kind == PathKind::kOther) {
      if (dump) dumps.notes.push_back(path + ": no regular file; left out");
      continue;
    }
    if (!dump) {
      dumps.notes.push_back(path + ": not the name of a dump; left out");
      continue;
    }
    for (OperatorSlice& slice : dump->slices.files) slice.path = path;
    dump->path = std::move(path);
    dump->file_name = std::move(name);
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
