#include "pipeline/operators/operator_trees.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/list_entries.h"
#include "base/text_parts.h"
#include "load/operator_dumps.h"

namespace plumbline::pipeline {
namespace {

constexpr int kDeepest = 12;  // {step}/{time}/{device}/{model}/{id}/{index} and some more
constexpr size_t kTimeDigits = 14;

bool IsTime(std::string_view name) { return name.size() == kTimeDigits && IsDigits(name); }

struct Found {
  // Directories with dumps by their paths without times; later ones replace earlier ones.
  std::map<std::string, std::string> directories;
  Status searched;                 // the first directory that cannot be read
  std::vector<std::string> above;  // without links: those that are being searched
};

void Search(const std::string& path, const std::string& name, int depth, Found& found) {
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
    const std::string step = IsTime(entry) ? name : (name.empty() ? entry : name + "/" + entry);
    Search(JoinPath(path, entry), step, depth + 1, found);
  }
  found.above.pop_back();
}

Found DumpDirectories(const std::string& tree) {
  Found found;
  if (KindOf(tree) == PathKind::kDirectory) Search(tree, "", 0, found);
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

}  // namespace plumbline::pipeline
