#include "view/merge/merged_dump.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "formats/json/dump_json.h"
#include "record/call_name.h"
#include "record/run_files.h"
#include "view/merge/merged_values.h"

namespace plumbline::view {
namespace {

// Below the root, children before parents.
std::vector<Part*> PartsInOrder(RankTree& tree) {
  std::vector<Part*> order;
  std::vector<std::pair<Part*, size_t>> open = {{&tree.root(), 0}};  // and its next child
  while (!open.empty()) {
    auto& [part, next] = open.back();
    if (next < part->children.size()) {
      Part* const child = part->children[next++];
      open.emplace_back(child, 0);
      continue;
    }
    if (part->parent != nullptr) order.push_back(part);
    open.pop_back();
  }
  return order;
}

std::string ConstructText(const RankTree& tree, const std::vector<Part*>& parts) {
  dump_json::CallTree calls;
  calls.has_micro_steps = tree.counts_micro_steps;
  calls.last_micro_step = tree.micro_steps - 1;
  calls.rows.reserve(parts.size());
  for (const Part* const part : parts) {
    calls.rows.push_back({part->name, part->parent->name, part->micro_step});
  }
  return dump_json::FormatConstruct(calls);
}

Status WriteStacks(const std::vector<Part*>& parts, const std::string& path) {
  std::vector<dump_json::StackGroup> groups;
  std::unordered_map<std::string_view, size_t> group_of;
  for (const Part* const part : parts) {
    if (part->frames.empty()) continue;
    const auto [known, is_new] = group_of.emplace(part->frames, groups.size());
    if (is_new) groups.push_back({{}, part->frames});
    groups[known->second].names.push_back(part->name);
  }
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  PL_TRY(dump_json::WriteStackGroups(groups,
                                     [&](std::string_view piece) { return file.Write(piece); }));
  return file.Commit(/*durable=*/false);
}

// The entry of a part as it stands in dump.json. Its members move there.
Call EntryOf(Part& part, bool has_files) {
  for (const PlacedValue& value : PlacedValuesOf(part)) {
    if (value.tensor != nullptr && !has_files) ForgetContents(*value.tensor);
  }
  Call call;
  call.name = part.name;
  call.members = std::move(part.members);
  if (part.merge.empty()) return call;
  ValueList lines;
  for (std::string& line : part.merge) lines.emplace_back(std::move(line));
  call.members.emplace_back(dump_json::kMergeLines, std::move(lines));
  return call;
}

Status WriteEntries(const RankTree& tree, const std::vector<Part*>& parts,
                    const std::string& path) {
  constexpr size_t kPieceBytes = size_t{1} << 20;
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  std::string text;
  dump_json::DumpWriter writer(text);
  RunHeader header;
  header.task = tree.task;
  header.level = tree.level;
  header.framework = tree.framework;
  header.is_merged = true;
  header.dump_data_dir = tree.tensor_directory;
  writer.Begin(header);
  for (Part* const part : parts) {
    if (part->members.empty() && part->merge.empty()) continue;
    writer.Add(EntryOf(*part, !tree.tensor_directory.empty()));
    if (text.size() < kPieceBytes) continue;
    PL_TRY(file.Write(text));
    text.clear();
  }
  writer.End();
  PL_TRY(file.Write(text));
  return file.Commit(/*durable=*/false);
}

}  // namespace

Result<uint64_t> WriteMergedDump(RankTree& tree, const std::string& directory) {
  const std::string dump = JoinPath(directory, run_files::kDumpJson);
  if (KindOf(dump) != PathKind::kMissing) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: exists already, and recordings are not replaced. Name another "
                             "output directory (-o)",
                             dump));
  }
  PL_TRY(MakeDirectories(directory));
  const std::vector<Part*> parts = PartsInOrder(tree);
  PL_TRY(WriteFileAtomically(JoinPath(directory, run_files::kConstructJson),
                             ConstructText(tree, parts), /*durable=*/false));
  PL_TRY(WriteStacks(parts, JoinPath(directory, run_files::kStackJson)));
  PL_TRY(WriteEntries(tree, parts, dump));
  return parts.size();
}

}  // namespace plumbline::view
