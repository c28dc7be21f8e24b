// Where the iterations of a static-graph dump lie: the directory half of graph_dump.h.

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/file.h"
#include "base/text_parts.h"
#include "load/detect.h"
#include "load/graph_dump.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

constexpr int kMaxDepth = 10;
constexpr std::string_view kAny = "*";

std::vector<std::string_view> PartsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

// The place of a directory by its last parts; nothing if they do not say it.
std::optional<GraphDirectory> PlaceOf(const std::string& path) {
  const Result<std::string> absolute = AbsolutePath(path);
  const std::string text = absolute ? *absolute : path;
  const std::vector<std::string_view> parts = PartsOf(text);
  if (parts.size() < 4) return std::nullopt;
  const auto from_end = [&](size_t k) { return parts[parts.size() - k]; };
  const std::optional<int64_t> step = ParseNatural(from_end(1));
  if (!step) return std::nullopt;
  constexpr std::string_view kRank = "rank_";
  const std::string_view fourth = from_end(4);
  std::optional<int64_t> rank;
  if (fourth.starts_with(kRank)) {
    rank = ParseNatural(fourth.substr(kRank.size()));
  } else if (text.find("/rank_") == std::string::npos) {
    rank = ParseNatural(fourth);
    if (!rank) rank = ParseNatural(from_end(3));
  }
  if (!rank) return std::nullopt;
  return GraphDirectory{path, *rank, *step};
}

bool HoldsKernels(const std::string& directory, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    if (name == run_files::kStatisticCsv) return true;
    if (ParseKernelFile(name)) return true;
    const bool is_number = name.ends_with(".npy") && ParseNatural(name.substr(0, name.size() - 4));
    return is_number && KindOf(JoinPath(directory, run_files::kMappingCsv)) == PathKind::kFile;
  });
}

// The directory of a rank of another recorder, which is not searched: it may hold very many files.
bool IsRecording(const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [](const std::string& name) {
    return name == run_files::kDumpJson || name == run_files::kDebugJson ||
           name == run_files::kTensorDirectory;
  });
}

// With `one`, the search ends at the first.
void Collect(const std::string& directory, int depth, bool one,
             std::vector<GraphDirectory>& found) {
  const auto names = ListDirectory(directory);
  if (!names || IsRecording(*names)) return;
  if (HoldsKernels(directory, *names)) {
    if (auto place = PlaceOf(directory)) found.push_back(std::move(*place));
    return;
  }
  if (depth == kMaxDepth) return;
  for (const std::string& name : *names) {
    const std::string child = JoinPath(directory, name);
    const auto facts = Inspect(child);  // links are not followed: they may lead in circles
    if (facts && facts->kind == PathKind::kDirectory) Collect(child, depth + 1, one, found);
    if (one && !found.empty()) return;
  }
}

void Expand(const std::string& path, std::vector<std::string>& found) {
  const size_t star = path.find("/*");
  if (star == std::string::npos) {
    if (KindOf(path) == PathKind::kDirectory) found.push_back(path);
    return;
  }
  const std::string head = path.substr(0, star), tail = path.substr(star + 2);
  const auto names = ListDirectory(head);
  if (!names) return;
  for (const std::string& name : *names) Expand(JoinPath(head, name) + tail, found);
}

}  // namespace

std::vector<GraphDirectory> ListGraphDirectories(const std::string& root) {
  std::vector<GraphDirectory> found;
  if (KindOf(root) == PathKind::kDirectory) Collect(root, 0, /*one=*/false, found);
  std::ranges::sort(found, [](const GraphDirectory& a, const GraphDirectory& b) {
    return std::tie(a.rank, a.step, a.path) < std::tie(b.rank, b.step, b.path);
  });
  return found;
}

bool IsGraphDump(const std::string& path) {
  if (KindOf(path) != PathKind::kDirectory) return path.find("/*") != std::string::npos;
  std::vector<GraphDirectory> found;
  Collect(path, 0, /*one=*/true, found);
  return !found.empty();
}

std::string GraphPath(const std::vector<std::string>& directories) {
  if (directories.size() == 1) return directories.front();
  std::vector<std::string_view> shared = PartsOf(directories.front());
  for (const std::string& directory : directories) {
    const std::vector<std::string_view> parts = PartsOf(directory);
    for (size_t i = 0; i < std::min(parts.size(), shared.size()); ++i) {
      if (parts[i] != shared[i]) shared[i] = kAny;
    }
  }
  std::string text = directories.front().starts_with('/') ? "/" : "";
  for (size_t i = 0; i < shared.size(); ++i) {
    if (i > 0) text += '/';
    text += shared[i];
  }
  return text;
}

Result<std::vector<std::string>> ResolveGraphPath(const std::string& path) {
  std::vector<std::string> named;
  Expand(path, named);
  std::vector<GraphDirectory> found;
  for (const std::string& directory : named) {
    for (GraphDirectory& each : ListGraphDirectories(directory)) found.push_back(std::move(each));
  }
  if (found.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no static-graph dump (expected .npy files of kernels or "
                             "statistic.csv in rank_0/net/graph/step)",
                             path));
  }
  std::set<std::pair<int64_t, int64_t>> places;
  for (const GraphDirectory& each : found) places.emplace(each.rank, each.step);
  if (places.size() > 1) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: holds {} ranks and steps (expected one). Name one of them, such "
                             "as {}",
                             path, places.size(), found.front().path));
  }
  std::vector<std::string> directories;
  for (GraphDirectory& each : found) directories.push_back(std::move(each.path));
  return directories;
}

}  // namespace plumbline::load
