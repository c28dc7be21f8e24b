#include "load/torchair_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/file/file.h"
#include "base/text/text_parts.h"

namespace plumbline::load {
namespace {

constexpr std::string_view kGraphPrefix = "dynamo_original_graph_";
constexpr std::string_view kFxAttribute = "_fx_tensor_name";
constexpr size_t kGraphDepth = 5;
constexpr size_t kDataDepth = 16;  // a loop of links ends here
constexpr size_t kMaxTokenDigits = 11;

bool IsGraphText(std::string_view name) {
  return name.starts_with(kGraphPrefix) && name.ends_with(".txt") &&
         name.find_first_of("0123456789") != std::string_view::npos;
}

int64_t FirstNumber(std::string_view name) {
  const size_t start = std::min(name.find_first_of("0123456789"), name.size());
  const size_t end = std::min(name.find_first_not_of("0123456789", start), name.size());
  return ParseNatural(name.substr(start, end - start)).value_or(0);
}

struct Listing {
  std::vector<std::string> files, directories;  // names
};

Result<Listing> ListingOf(const std::string& directory) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  Listing listing;
  for (const std::string& name : names) {
    const PathKind kind = KindOf(JoinPath(directory, name));
    if (kind == PathKind::kFile) listing.files.push_back(name);
    if (kind == PathKind::kDirectory) listing.directories.push_back(name);
  }
  return listing;
}

// What is told of each directory: its path, the names that lead to it, what it holds. False: not
// further down.
using Visit =
    std::function<bool(const std::string&, const std::vector<std::string>&, const Listing&)>;

Status WalkDirectories(const std::string& directory, std::vector<std::string>& names,
                       size_t max_depth, const Visit& visit) {
  PL_TRY_ASSIGN(const Listing listing, ListingOf(directory));
  if (!visit(directory, names, listing) || names.size() >= max_depth) return {};
  for (const std::string& name : listing.directories) {
    names.push_back(name);
    PL_TRY(WalkDirectories(JoinPath(directory, name), names, max_depth, visit));
    names.pop_back();
  }
  return {};
}

std::optional<int64_t> RankOf(std::string_view name) {
  const size_t at = name.rfind("rank");
  if (!name.starts_with("worldsize") || at == std::string_view::npos) return std::nullopt;
  return ParseNatural(name.substr(at + 4));
}

int64_t NumberOr0(const std::vector<std::string>& names, size_t from_end) {
  if (names.size() < from_end) return 0;
  return ParseNatural(names[names.size() - from_end]).value_or(0);
}

std::string JoinAtDots(const std::vector<std::string_view>& parts, size_t first, size_t last) {
  return fmt::format("{}", fmt::join(parts.begin() + static_cast<std::ptrdiff_t>(first),
                                     parts.begin() + static_cast<std::ptrdiff_t>(last), "."));
}

// {type}.{name}.{task}.{stream}.{time}; the larger of two files of one operator stays.
bool AddGeFile(const std::string& directory, const std::string& name, GeOperators& operators) {
  const std::vector<std::string_view> parts = SplitAt(name, '.');
  if (parts.size() < 5) return false;
  const std::optional<int64_t> time = ParseNatural(parts.back());
  if (!time) return false;
  GeFile file{JoinPath(directory, name), std::string(parts.front()), 0, *time};
  file.size_bytes = FileSize(file.path).value_or(0);
  GeFile& kept = operators[JoinAtDots(parts, 1, parts.size() - 3)];
  if (kept.path.empty() || file.size_bytes > kept.size_bytes) kept = std::move(file);
  return true;
}

// {op}.INPUT.{i}.{time}.npy
bool AddFxFile(const std::string& directory, const std::string& name, FxOperators& operators) {
  const std::vector<std::string_view> parts = SplitAt(name, '.');
  if (parts.size() < 5) return false;
  const std::string_view io = parts[parts.size() - 4];
  const std::optional<int64_t> index = ParseNatural(parts[parts.size() - 3]);
  if (!index || (io != "INPUT" && io != "OUTPUT")) return false;
  FxOperator& one = operators[JoinAtDots(parts, 0, parts.size() - 4)];
  return (io == "INPUT" ? one.inputs : one.outputs)
      .emplace(*index, JoinPath(directory, name))
      .second;
}

void AddFxDirectory(const std::string& directory, const Listing& listing, FxOperators& operators,
                    size_t& left_out) {
  for (const std::string& name : listing.files) {
    if (!name.ends_with(".npy")) continue;
    if (!AddFxFile(directory, name, operators)) ++left_out;
  }
}

// The graphs of one token: the files in its directory, then each directory in it.
Status AddToken(const std::string& directory, int64_t token, size_t first_graph, FxDump& dump) {
  PL_TRY_ASSIGN(const Listing listing, ListingOf(directory));
  size_t graph = first_graph;
  const auto add = [&](const std::string& place, const Listing& held) {
    FxOperators operators;
    AddFxDirectory(place, held, operators, dump.left_out);
    if (operators.empty()) return;
    if (dump.graphs.size() <= graph) dump.graphs.resize(graph + 1);
    dump.graphs[graph++].insert_or_assign(token, std::move(operators));
  };
  add(directory, listing);
  for (const std::string& name : listing.directories) {
    const std::string place = JoinPath(directory, name);
    PL_TRY_ASSIGN(const Listing held, ListingOf(place));
    add(place, held);
  }
  return {};
}

bool AreTokens(const std::vector<std::string>& names) {
  return !names.empty() && std::ranges::all_of(names, [](const std::string& name) {
    return name.size() <= kMaxTokenDigits && IsDigits(name);
  });
}

Error Corrupt(const std::string& path, std::string_view what) {
  return Error(ErrorCode::kCorrupt, fmt::format("{}: {}", path, what));
}

// Reads the lines of a graph text; keeps what pairs operators.
class GraphReader {
 public:
  // False where a bracket closes that was never opened.
  bool Take(std::string_view line) {
    if (line.ends_with(" {")) {
      Open(line.substr(0, line.size() - 2));
      return true;
    }
    const size_t colon = line.find(": ");
    if (colon != std::string_view::npos) {
      Set(line.substr(0, colon), Unquoted(line.substr(colon + 2)));
      return true;
    }
    if (line != "}") return true;
    if (open_.empty()) return false;
    Close();
    return true;
  }
  [[nodiscard]] bool complete() const { return open_.empty(); }
  OperatorGraph graph;

 private:
  static std::string_view Unquoted(std::string_view text) {
    const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    return quoted ? text.substr(1, text.size() - 2) : text;
  }
  [[nodiscard]] bool InAttribute() const {
    return open_.size() >= 3 && open_[0] == "op" && open_[1] == "output_desc" && open_[2] == "attr";
  }
  void Open(std::string_view key) {
    open_.emplace_back(key);
    if (open_.size() == 1) name_.clear(), current_ = {};
    if (InAttribute() && open_.size() == 3) attribute_.clear(), value_.clear();
  }
  void Set(std::string_view key, std::string_view value) {
    if (open_.size() == 1 && open_[0] == "op") {
      if (key == "name") name_ = value;
      if (key == "input") current_.inputs.emplace_back(value.substr(0, value.rfind(':')));
    }
    if (!InAttribute()) return;
    if (open_.size() == 3 && key == "key") attribute_ = value;
    if (open_.size() == 4 && open_[3] == "value" && key == "s") value_ = value;
  }
  void Close() {
    if (InAttribute() && open_.size() == 3 && attribute_ == kFxAttribute) AddFxTensor();
    const bool is_operator = open_.size() == 1 && open_[0] == "op" && !name_.empty();
    if (is_operator) graph.insert_or_assign(name_, std::move(current_));
    open_.pop_back();
  }
  void AddFxTensor() {
    const std::vector<std::string_view> parts = SplitAt(value_, '.');
    const bool has_place = parts.size() > 2 && parts[parts.size() - 2] == "OUTPUT";
    current_.fx_tensors.push_back(has_place ? JoinAtDots(parts, 0, parts.size() - 2) : value_);
  }

  std::vector<std::string> open_;
  std::string name_, attribute_, value_;
  GraphOperator current_;
};

std::string_view Trimmed(std::string_view line) {
  const size_t start = line.find_first_not_of(" \t\r");
  if (start == std::string_view::npos) return {};
  return line.substr(start, line.find_last_not_of(" \t\r") - start + 1);
}

}  // namespace

bool LooksLikeTorchair(const std::string& path) {
  if (KindOf(path) != PathKind::kDirectory) return false;
  const auto names = ListDirectory(path);
  return names && std::ranges::any_of(*names, [&](const std::string& name) {
           return IsGraphText(name) ||
                  (RankOf(name) && KindOf(JoinPath(path, name)) == PathKind::kDirectory);
         });
}

Result<std::map<int64_t, std::string>> ListTorchairRanks(const std::string& directory) {
  PL_TRY_ASSIGN(const Listing listing, ListingOf(directory));
  std::map<int64_t, std::string> ranks;
  for (const std::string& name : listing.directories) {
    if (const auto rank = RankOf(name)) ranks[*rank] = JoinPath(directory, name);
  }
  return ranks;
}

Result<std::vector<std::string>> FindGraphTexts(const std::string& directory,
                                                std::optional<int64_t> rank) {
  const std::string mark = rank ? fmt::format("rank_{}_", *rank) : std::string();
  std::vector<std::pair<int64_t, std::string>> found;
  std::vector<std::string> names;
  PL_TRY(WalkDirectories(directory, names, kGraphDepth,
                         [&](const std::string& place, const auto&, const Listing& listing) {
                           for (const std::string& name : listing.files) {
                             if (!IsGraphText(name) || name.find(mark) == name.npos) continue;
                             found.emplace_back(FirstNumber(name), JoinPath(place, name));
                           }
                           return true;
                         }));
  std::ranges::sort(found);
  std::vector<std::string> paths;
  for (auto& graph : found) paths.push_back(std::move(graph.second));
  return paths;
}

Result<OperatorGraph> ReadGraphText(const std::string& path) {
  PL_TRY_ASSIGN(const auto file, MappedFile::Open(path));
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  GraphReader reader;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    if (!reader.Take(Trimmed(text.substr(start, end - start)))) {
      return Corrupt(path, "a bracket closes that none opened; no graph of torchair");
    }
    start = end + 1;
  }
  if (!reader.complete()) {
    return Corrupt(path, "ends inside brackets; the file may be cut");
  }
  if (reader.graph.empty()) return Corrupt(path, "holds no operator; no graph of torchair");
  return std::move(reader.graph);
}

Result<GeDump> ReadGeDump(const std::string& directory) {
  GeDump dump;
  // .../{device}/{graph name}/{graph}/{token}; what is missing counts as 0.
  std::map<std::pair<int64_t, int64_t>, std::map<int64_t, GeOperators>> graphs;
  std::vector<std::string> names;
  PL_TRY(WalkDirectories(
      directory, names, kDataDepth,
      [&](const std::string& place, const std::vector<std::string>& path, const Listing& listing) {
        if (!listing.directories.empty()) return true;
        GeOperators operators;
        for (const std::string& name : listing.files) {
          if (name.ends_with(".txt") || name.ends_with(".npy") || name.ends_with(".bin")) continue;
          if (!AddGeFile(place, name, operators)) ++dump.left_out;
        }
        if (operators.empty()) return true;
        auto& graph = graphs[{NumberOr0(path, 4), NumberOr0(path, 2)}];
        graph[NumberOr0(path, 1)].merge(operators);
        dump.left_out += operators.size();  // of one name in two directories of a token
        return true;
      }));
  if (graphs.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no dump of an operator below it (expected files "
                             "TYPE.NAME.TASK.STREAM.TIME)",
                             directory));
  }
  for (auto& graph : graphs) dump.graphs.push_back(std::move(graph.second));
  return dump;
}

Result<FxDump> ReadFxDump(const std::string& directory, bool of_rank) {
  FxDump dump;
  std::vector<std::string> groups, names;
  PL_TRY(WalkDirectories(directory, names, kDataDepth,
                         [&](const std::string& place, const auto&, const Listing& listing) {
                           if (!AreTokens(listing.directories)) return true;
                           groups.push_back(place);
                           return false;
                         }));
  for (const std::string& group : groups) {
    PL_TRY_ASSIGN(const Listing listing, ListingOf(group));
    const size_t first_graph = dump.graphs.size();
    for (const std::string& name : listing.directories) {
      const int64_t token = ParseNatural(name).value_or(0) - (of_rank ? 0 : 1);
      PL_TRY(AddToken(JoinPath(group, name), token, first_graph, dump));
    }
  }
  if (groups.empty()) PL_TRY(AddToken(directory, 0, 0, dump));
  if (dump.graphs.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: neither a graph text nor a tensor below it (expected "
                             "dynamo_original_graph_*.txt, or OP.OUTPUT.N.TIME.npy)",
                             directory));
  }
  return dump;
}

}  // namespace plumbline::load
