// Where the iterations of a static-graph dump lie: the directory half of graph_dump.h.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "base/file.h"
#include "base/text_parts.h"
#include "load/detect.h"
#include "load/graph_dump.h"
#include "load/name_mapping.h"
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

// Which names of a directory are those of kernels' files, by themselves or by what mapping.csv
// says.
class KernelNames {
 public:
  explicit KernelNames(const std::string& directory) : directory_(directory) {}

  bool Has(std::string_view name) {
    if (name == run_files::kStatisticCsv || ParseKernelFile(name)) return true;
    if (!name.ends_with(kNpy)) return false;
    if (!mapping_) mapping_ = NameMapping::Read(directory_);
    if (*mapping_ && (*mapping_)->size() == 0) return false;
    // A number without a row, or with one that cannot be read, is still a kernel's: it is told.
    return IsDigits(name.substr(0, name.size() - kNpy.size())) ||
           (*mapping_ && ParseKernelFile((*mapping_)->NameOf(name)));
  }

 private:
  static constexpr std::string_view kNpy = ".npy";
  const std::string& directory_;
  std::optional<Result<NameMapping>> mapping_;  // once it was needed
};

// The directory of a rank of another recorder, which is not searched: it may hold very many files.
bool IsRecording(const std::string& directory) {
  return std::ranges::any_of(
      std::array{run_files::kDumpJson, run_files::kDebugJson, run_files::kTensorDirectory},
      [&](std::string_view name) { return Inspect(JoinPath(directory, name)).has_value(); });
}

// Lists one directory up to the first kernel, and further as it is asked.
class Listing {
 public:
  Listing(const std::string& directory, DirectoryNames names)
      : kernels_(directory), names_(std::move(names)) {}

  // Whether there is a kernel in it.
  [[nodiscard]] bool FindKernel() {
    while (!has_kernels_) {
      Result<NameBlock> block = Read();
      if (!block || block->empty()) break;
      first_.push_back(*std::move(block));
    }
    std::ranges::reverse(first_);
    return has_kernels_;
  }
  // From the first name on.
  Result<NameBlock> Next() {
    if (first_.empty()) return Read();
    NameBlock block = std::move(first_.back());
    first_.pop_back();
    return block;
  }
  // Entries that may be directories; lists what is left. Beside kernels, whose files are very many,
  // these are only names without a dot.
  std::vector<std::string> Children() {
    for (Result<NameBlock> block = Read(); block && !block->empty();) block = Read();
    if (has_kernels_) {
      std::erase_if(children_, [](const std::string& name) { return HasDot(name); });
    }
    std::ranges::sort(children_);
    return std::move(children_);
  }

 private:
  static bool HasDot(std::string_view name) { return name.find('.') != std::string_view::npos; }

  Result<NameBlock> Read() {
    if (is_done_) return NameBlock();
    Result<NameBlock> block = names_.Next();
    is_done_ = !block || block->empty();
    if (is_done_) return block;
    for (const auto& [name, is_regular] : block->names()) {
      has_kernels_ = has_kernels_ || kernels_.Has(name);
      if (!has_kernels_ || !HasDot(name)) children_.emplace_back(name);
    }
    return block;
  }

  KernelNames kernels_;
  DirectoryNames names_;
  bool has_kernels_ = false, is_done_ = false;
  std::vector<NameBlock> first_;  // read and not given yet, the next one last
  std::vector<std::string> children_;
};

class Search {
 public:
  using Visit = std::function<void(GraphDirectory place, const NextNames& next)>;

  // With `one` it ends at the first.
  Search(const std::string& root, bool one, const Visit& visit)
      : root_(root), one_(one), visit_(visit) {}

  void Collect(const std::string& directory, int depth) {
    auto names = DirectoryNames::Open(directory);
    if (!names || IsRecording(directory)) return;
    Listing listing(directory, *std::move(names));
    if (listing.FindKernel()) {
      if (auto place = PlaceOf(directory, root_)) {
        found_ = true;
        visit_(std::move(*place), [&listing] { return listing.Next(); });
      }
    }
    if (depth == kMaxDepth || (one_ && found_)) return;
    for (const std::string& name : listing.Children()) {
      const std::string child = JoinPath(directory, name);
      const auto facts = Inspect(child);  // links are not followed: they may lead in circles
      if (facts && facts->kind == PathKind::kDirectory) Collect(child, depth + 1);
      if (one_ && found_) return;
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

void VisitGraphNames(
    const std::string& root,
    const std::function<void(GraphDirectory place, const NextNames& next)>& visit) {
  if (KindOf(root) == PathKind::kDirectory) Search(root, /*one=*/false, visit).Collect(root, 0);
}

void VisitGraphDirectories(
    const std::string& root,
    const std::function<void(GraphDirectory place, std::vector<std::string> names)>& visit) {
  VisitGraphNames(root, [&](GraphDirectory place, const NextNames& next) {
    std::vector<std::string> names;
    for (Result<NameBlock> block = next(); block && !block->empty(); block = next()) {
      for (const ListedName& one : block->names()) names.emplace_back(one.name);
    }
    std::ranges::sort(names);
    visit(std::move(place), std::move(names));
  });
}

std::vector<GraphDirectory> ListGraphDirectories(const std::string& root) {
  std::vector<GraphDirectory> found;
  VisitGraphNames(root, [&](GraphDirectory place, const NextNames& /*next*/) {
    found.push_back(std::move(place));
  });
  std::ranges::sort(found, [](const GraphDirectory& a, const GraphDirectory& b) {
    return std::tie(a.rank, a.step, a.path) < std::tie(b.rank, b.step, b.path);
  });
  return found;
}

bool IsGraphDump(const std::string& path) {
  if (KindOf(path) != PathKind::kDirectory) return path.find("/*") != std::string::npos;
  const Search::Visit nothing = [](const GraphDirectory&, const NextNames&) {};
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
