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

// {time} of a device's tree: 14 digits.
bool IsTime(std::string_view part) {
  constexpr size_t kTimeDigits = 14;
  return part.size() == kTimeDigits && IsDigits(part);
}

// The parts of an absolute path, counted from its end.
class Place {
 public:
  // `below`: how many of the parts are below the root that was named.
  Place(std::string_view path, size_t below) : parts_(PartsOf(path)), below_(below) {}

  [[nodiscard]] std::string_view part(size_t k) const {
    return k <= parts_.size() ? parts_[parts_.size() - k] : std::string_view();
  }
  [[nodiscard]] std::optional<int64_t> number(size_t k) const { return ParseNatural(part(k)); }
  // {step} in front of {time}: only what is below the root is no name that the user chose.
  [[nodiscard]] std::optional<int64_t> step(size_t k) const {
    return k <= below_ && !IsTime(part(k)) ? number(k) : std::nullopt;
  }

 private:
  std::vector<std::string_view> parts_;
  size_t below_;
};

// The place of a directory by its last parts; nothing if they do not say it.
std::optional<GraphDirectory> PlaceOf(const std::string& path, const std::string& root) {
  const Result<std::string> absolute = AbsolutePath(path), top = AbsolutePath(root);
  const std::string& text = absolute ? *absolute : path;
  const size_t above = PartsOf(top ? *top : root).size();
  const Place place(text, PartsOf(text).size() - above);
  const std::optional<int64_t> last = place.number(1);
  if (!last) return std::nullopt;
  constexpr std::string_view kRank = "rank_";
  if (const auto rank = NaturalAfter(kRank, place.part(4))) {
    return GraphDirectory{path, *rank, *last, place.number(2)};
  }
  if (text.find("/rank_") != std::string::npos) return std::nullopt;
  // Kernels that were launched one by one: {step}/{time}/{device}.
  if (IsTime(place.part(2))) {
    return GraphDirectory{path, *last, place.step(3).value_or(0), std::nullopt};
  }
  std::optional<int64_t> rank = place.number(4);
  if (!rank) rank = place.number(3);
  if (!rank) return std::nullopt;
  const auto step = IsTime(place.part(5)) ? place.step(6) : std::nullopt;
  return GraphDirectory{path, *rank, step.value_or(*last), place.number(2)};
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

class Search {
 public:
  using Visit = std::function<void(GraphDirectory place, std::vector<std::string> names)>;

  // With `one` it ends at the first.
  Search(const std::string& root, bool one, const Visit& visit)
      : root_(root), one_(one), visit_(visit) {}

  void Collect(const std::string& directory, int depth) {
    auto names = ListDirectory(directory);
    if (!names || IsRecording(*names)) return;
    std::vector<std::string> children;
    const bool has_kernels = HoldsKernels(directory, *names);
    for (const std::string& name : *names) {
      // Beside kernels, whose files are very many, only names without a dot may be directories.
      if (!has_kernels || name.find('.') == std::string::npos) children.push_back(name);
    }
    if (has_kernels) {
      if (auto place = PlaceOf(directory, root_)) {
        found_ = true;
        visit_(std::move(*place), *std::move(names));
      }
    }
    if (depth == kMaxDepth) return;
    for (const std::string& name : children) {
      if (one_ && found_) return;
      const std::string child = JoinPath(directory, name);
      const auto facts = Inspect(child);  // links are not followed: they may lead in circles
      if (facts && facts->kind == PathKind::kDirectory) Collect(child, depth + 1);
    }
  }

  [[nodiscard]] bool found() const { return found_; }

 private:
  const std::string& root_;
  const bool one_;
  const Visit& visit_;
  bool found_ = false;
};

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

void VisitGraphDirectories(
    const std::string& root,
    const std::function<void(GraphDirectory place, std::vector<std::string> names)>& visit) {
  if (KindOf(root) == PathKind::kDirectory) Search(root, /*one=*/false, visit).Collect(root, 0);
}

std::vector<GraphDirectory> ListGraphDirectories(const std::string& root) {
  std::vector<GraphDirectory> found;
  VisitGraphDirectories(root, [&](GraphDirectory place, const std::vector<std::string>&) {
    found.push_back(std::move(place));
  });
  std::ranges::sort(found, [](const GraphDirectory& a, const GraphDirectory& b) {
    return std::tie(a.rank, a.step, a.path) < std::tie(b.rank, b.step, b.path);
  });
  return found;
}

bool IsGraphDump(const std::string& path) {
  if (KindOf(path) != PathKind::kDirectory) return path.find("/*") != std::string::npos;
  const Search::Visit nothing = [](const GraphDirectory&, const std::vector<std::string>&) {};
  Search search(path, /*one=*/true, nothing);
  search.Collect(path, 0);
  return search.found();
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
