#include "load/operator_dumps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "formats/acl/acl_file_name.h"
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

// One output: an array, or a dump of one, of a framework or of a quantised model.
constexpr std::string_view kArray = ".npy", kStandard = ".pb", kQuant = ".quant";

std::string_view SuffixOf(std::string_view file_name) {
  for (const std::string_view suffix : {kArray, kStandard, kQuant}) {
    if (file_name.ends_with(suffix)) return suffix;
  }
  return {};
}

std::optional<OperatorDump> ParseOutput(std::string_view file_name, std::string_view suffix) {
  std::string as_array(file_name.substr(0, file_name.size() - suffix.size()));
  as_array += kArray;
  const std::optional<acl::ArrayFileName> name = acl::ParseArrayFileName(as_array);
  if (!name) return std::nullopt;
  OperatorDump dump;
  dump.suffix = suffix;
  dump.op_name = name->op_name;
  dump.output = name->output;
  dump.timestamp = name->sort_time();
  return dump;
}

// Whether a name that says no operator is that of a dump all the same: one with other characters,
// or the number that stands for a name which is too long.
bool IsNameOfSomeDump(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return acl::ParseDumpFileName(name).has_value() || std::ranges::all_of(name, is_digit);
}

std::string_view TypeText(const OperatorDump& dump) {
  return dump.suffix.empty() ? "device dumps" : std::string_view(dump.suffix);
}

// Whether a file of this name is the dump of an operator, and not an array.
bool IsDeviceDump(std::string_view name) {
  const std::optional<OperatorDump> dump = ParseOperatorDumpName(name);
  return dump && !dump->output;
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
  const std::string_view suffix = SuffixOf(file_name);
  return suffix.empty() ? ParseDevice(file_name) : ParseOutput(file_name, suffix);
}

bool HoldsDeviceDumps(const std::string& directory, const std::vector<DirectoryEntry>& entries) {
  const auto any_file = [&](const auto& is_dump) {
    return std::ranges::any_of(entries, [&](const DirectoryEntry& entry) {
      return entry.kind == PathKind::kFile && is_dump(entry.name);
    });
  };
  if (any_file(IsDeviceDump)) return true;
  if (!std::ranges::binary_search(entries, run_files::kMappingCsv, {}, &DirectoryEntry::name)) {
    return false;
  }
  const Result<NameMapping> mapping = NameMapping::Read(directory);
  return mapping &&
         any_file([&](const std::string& name) { return IsDeviceDump(mapping->NameOf(name)); });
}

Result<OperatorDumps> ReadOperatorDumps(const std::string& directory) {
  OperatorDumps dumps;
  PL_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, ListEntries(directory));
  PL_TRY_ASSIGN(const NameMapping mapping, NameMapping::Read(directory));
  dumps.notes = mapping.notes();
  dumps.files.reserve(entries.size());
  for (const auto& [file, kind] : entries) {
    if (kind == PathKind::kDirectory || run_files::IsAboutDumps(file)) continue;
    std::string path = JoinPath(directory, file);
    std::string name = mapping.NameOf(file);
    std::optional<OperatorDump> dump = ParseOperatorDumpName(name);
    if (kind == PathKind::kOther) {
      if (dump) dumps.notes.push_back(path + ": no regular file; left out");
      continue;
    }
    if (!dump && IsNameOfSomeDump(name)) {
      ++dumps.unnamed;
      dumps.notes.push_back(path +
                            ": a dump without a name that can be compared (expected letters, "
                            "digits, '_' and '-' in the operator's name, or a line of mapping.csv "
                            "for a number); left out");
      continue;
    }
    if (!dump) {
      dumps.notes.push_back(path + ": not the name of a dump; left out");
      continue;
    }
    for (OperatorSlice& slice : dump->slices.files) slice.path = path;
    dump->path = std::move(path);
    dump->file_name = std::move(name);
    const bool is_marked = dump->suffix != kStandard && IsQuantisedName(dump->op_name);
    dumps.is_quantised = dumps.is_quantised || is_marked || dump->suffix == kQuant;
    if (!dumps.files.empty() && dumps.files.front().suffix != dump->suffix) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("Not all files in the path {} are of the same type ({} and {}).",
                               directory, TypeText(dumps.files.front()), TypeText(*dump)));
    }
    dumps.files.push_back(std::move(*dump));
  }
  if (dumps.files.empty()) return NoDumps(directory);
  if (!dumps.files.front().suffix.empty()) {
    dumps.kind = dumps.is_quantised ? OperatorDumpKind::kQuant : OperatorDumpKind::kStandard;
  }
  std::sort(dumps.files.begin(), dumps.files.end(), [](const auto& a, const auto& b) {
    return std::tie(a.timestamp, a.path) < std::tie(b.timestamp, b.path);
  });
  return dumps;
}

namespace {

constexpr int kDeepest = 12;  // {step}/{time}/{device}/{model}/{id}/{index} and some more
constexpr size_t kTimeDigits = 14;

bool IsTimeDirectory(std::string_view name) { return name.size() == kTimeDigits && IsDigits(name); }

struct Found {
  // Directories with dumps by their paths without times; later ones replace earlier ones.
  std::map<std::string, std::string> directories;
  Status searched;                 // the first directory that cannot be read
  std::vector<std::string> above;  // without links: those that are being searched
};

void SearchDumps(const std::string& path, const std::string& name, int depth, Found& found) {
  const auto entries = ListEntries(path);
  const auto real = RealPath(path);
  if (!entries || !real) {
    if (found.searched) found.searched = entries ? real.error() : entries.error();
    return;
  }
  if (std::ranges::count(found.above, *real) > 0) return;  // a link leads back
  // A recording of a framework has thousands of files that are none of these.
  if (std::ranges::binary_search(*entries, "dump.json", {}, &DirectoryEntry::name)) return;
  if (load::HoldsDeviceDumps(path, *entries)) found.directories[name] = path;
  if (depth == kDeepest) return;
  found.above.push_back(*real);
  for (const auto& [entry, kind] : *entries) {
    if (kind != PathKind::kDirectory) continue;
    if (std::ranges::count(entry, '.') > 1) continue;  // a file by its name
    const std::string step =
        IsTimeDirectory(entry) ? name : (name.empty() ? entry : name + "/" + entry);
    SearchDumps(JoinPath(path, entry), step, depth + 1, found);
  }
  found.above.pop_back();
}

Found DumpDirectories(const std::string& tree) {
  Found found;
  if (KindOf(tree) == PathKind::kDirectory) SearchDumps(tree, "", 0, found);
  return found;
}

}  // namespace

Result<OperatorTrees> FindOperatorTrees(const std::string& target, const std::string& golden) {
  const Found mine = DumpDirectories(target);
  Found theirs = DumpDirectories(golden);
  if (mine.directories.empty() || theirs.directories.empty()) {
    if (!mine.directories.empty()) return OperatorTrees{{}, target};
    return OperatorTrees{{}, theirs.directories.empty() ? "" : golden};
  }
  PL_TRY(mine.searched);
  PL_TRY(theirs.searched);
  OperatorTrees found;
  std::vector<OperatorTree>& trees = found.pairs;
  if (mine.directories.size() == 1 && theirs.directories.size() == 1) {
    trees.push_back({"", mine.directories.begin()->second, theirs.directories.begin()->second});
    return found;
  }
  for (const auto& [name, path] : mine.directories) {
    const auto other = theirs.directories.find(name);
    const bool is_paired = other != theirs.directories.end();
    trees.push_back({name, path, is_paired ? other->second : ""});
    if (is_paired) theirs.directories.erase(other);
  }
  for (const auto& [name, path] : theirs.directories) trees.push_back({name, "", path});
  return found;
}

}  // namespace plumbline::load
