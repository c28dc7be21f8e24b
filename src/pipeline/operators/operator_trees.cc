#include "pipeline/operators/operator_trees.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/text_parts.h"
#include "load/operator_dumps.h"

namespace plumbline::pipeline {
namespace {

constexpr int kDeepest = 12;  // {step}/{time}/{device}/{model}/{id}/{index} and some more
constexpr size_t kTimeDigits = 14;

bool IsTime(std::string_view name) { return name.size() == kTimeDigits && IsDigits(name); }

bool IsDump(const std::string& path, const std::string& name) {
  const auto dump = load::ParseOperatorDumpName(name);
  return dump && !dump->output && KindOf(JoinPath(path, name)) == PathKind::kFile;
}

// Directories with dumps by their paths without times; later ones replace earlier ones.
using Found = std::map<std::string, std::string>;

void Search(const std::string& path, const std::string& name, int depth, Found& found) {
  const auto names = ListDirectory(path);
  // A recording of a framework has thousands of files that are none of these.
  if (!names || std::binary_search(names->begin(), names->end(), "dump.json")) return;
  if (std::any_of(names->begin(), names->end(),
                  [&](const std::string& file) { return IsDump(path, file); })) {
    found[name] = path;
  }
  if (depth == kDeepest) return;
  for (const std::string& entry : *names) {
    if (std::count(entry.begin(), entry.end(), '.') > 1) continue;  // a file by its name
    const std::string below = JoinPath(path, entry);
    if (KindOf(below) != PathKind::kDirectory) continue;
    const std::string step = IsTime(entry) ? name : (name.empty() ? entry : name + "/" + entry);
    Search(below, step, depth + 1, found);
  }
}

Found DumpDirectories(const std::string& tree) {
  Found found;
  Search(tree, "", 0, found);
  return found;
}

}  // namespace

bool HoldsOperatorDumps(const std::string& directory) {
  return KindOf(directory) == PathKind::kDirectory && !DumpDirectories(directory).empty();
}

std::vector<OperatorTree> PairOperatorTrees(const std::string& target, const std::string& golden) {
  const Found mine = DumpDirectories(target);
  Found theirs = DumpDirectories(golden);
  if (mine.size() == 1 && theirs.size() == 1) {
    return {{"", mine.begin()->second, theirs.begin()->second}};
  }
  std::vector<OperatorTree> trees;
  for (const auto& [name, path] : mine) {
    const auto found = theirs.find(name);
    trees.push_back({name, path, found == theirs.end() ? "" : found->second});
    if (found != theirs.end()) theirs.erase(found);
  }
  for (const auto& [name, path] : theirs) trees.push_back({name, "", path});
  return trees;
}

}  // namespace plumbline::pipeline
