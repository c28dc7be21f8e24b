#include "graphs/source_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <regex>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/file/file.h"
#include "base/file/text_file.h"
#include "base/text/csv.h"
#include "base/text/text_parts.h"
#include "formats/acl/graph_pb.h"
#include "formats/array/npy.h"
#include "formats/table/statistic_csv.h"
#include "load/graph_dump.h"
#include "load/graph_index.h"
#include "load/name_mapping.h"
#include "record/call_name.h"
#include "record/run_files.h"
#include "report/result_names.h"

namespace plumbline::graphs {

namespace {

constexpr std::string_view kBuffer = ".pb";
constexpr std::string_view kGradients = "Gradients";

bool IsWordCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Whether a name may begin or end between two characters of `text`.
bool IsBoundary(std::string_view text, size_t at) {
  return at == 0 || at == text.size() || !IsWordCharacter(text[at - 1]) ||
         !IsWordCharacter(text[at]);
}

std::vector<size_t> BoundariesOf(std::string_view text) {
  std::vector<size_t> places;
  for (size_t at = 0; at <= text.size(); ++at) {
    if (IsBoundary(text, at)) places.push_back(at);
  }
  return places;
}

}  // namespace

std::string_view NameMatchName(NameMatch match) {
  switch (match) {
    case NameMatch::kNone:
      return "none";
    case NameMatch::kExact:
      return "exact";
    case NameMatch::kPart:
      return "part";
    case NameMatch::kAmbiguous:
      return "ambiguous";
  }
  return "";
}

Result<std::vector<std::string>> SourceLines::AddFile(const std::string& path) {
  std::vector<std::string> notes;
  const size_t before = kernels_.size();
  if (path.ends_with(kBuffer)) {
    PL_TRY_ASSIGN(const graph_pb::Graph graph, graph_pb::Read(path));
    for (const graph_pb::Node& node : graph.nodes) {
      Add(node.full_name, *texts_.emplace_back(std::make_unique<std::string>(node.source)));
    }
  } else {
    PL_TRY_ASSIGN(std::string text, ReadFile(path));
    texts_.push_back(std::make_unique<std::string>(std::move(text)));
    const Result<graph_ir::Graph> graph = graph_ir::Parse(*texts_.back());
    if (!graph) return graph.error().In(path);
    AddText(*graph);
    if (graph->is_cut) notes.push_back(fmt::format("{}: the text of the graph is cut", path));
  }
  if (kernels_.size() == before) {
    notes.push_back(
        fmt::format("{}: no node has a full name (expected a graph saved after it was "
                    "built: anf_after_graph_build, graph_build, trace_code_graph)",
                    path));
  }
  return notes;
}

void SourceLines::AddText(const graph_ir::Graph& graph) {
  const auto is_gradient = [](const graph_ir::Node& node) {
    return node.full_name.starts_with(kGradients);
  };
  std::map<std::string_view, std::string_view> forward;  // sources by unique_id
  for (const graph_ir::Node& node : graph.nodes) {
    const bool counts = !node.unique_id.empty() && !node.full_name.empty() && !is_gradient(node);
    if (counts) forward[node.unique_id] = node.source;
  }
  for (const graph_ir::Node& node : graph.nodes) {
    std::string_view source = node.source;
    const auto id = node.forward_unique_id.empty() ? node.unique_id : node.forward_unique_id;
    const auto known = forward.find(id);
    if (is_gradient(node) && known != forward.end()) source = known->second;
    Add(node.full_name, source);
  }
}

void SourceLines::Add(std::string_view full_name, std::string_view source) {
  if (full_name.empty()) return;
  std::string mangled = MangledKernel(full_name);
  Numbers& same = by_name_[mangled];
  const auto is_known = [&](size_t number) {
    const Kernel& kernel = kernels_[number];
    return kernel.full_name == full_name &&
           graph_ir::SourceLines(kernel.source) == graph_ir::SourceLines(source);
  };
  if (std::ranges::any_of(same, is_known)) return;
  same.push_back(kernels_.size());
  const size_t slash = full_name.rfind('/');
  if (slash != std::string_view::npos) {
    by_end_[MangledKernel(full_name.substr(slash + 1))].push_back(kernels_.size());
  }
  kernels_.push_back({std::string(full_name), source});
}

SourceLines::Found SourceLines::Find(std::string_view name) const {
  const std::string text = MangledKernel(name);
  Found found;
  Numbers numbers;
  if (const auto at = by_name_.find(text); at != by_name_.end()) {
    found.match = NameMatch::kExact;
    numbers = at->second;
  } else {
    numbers = EndingIn(text);
    if (numbers.empty()) numbers = LongestInside(text);
    if (!numbers.empty()) found.match = NameMatch::kPart;
  }
  if (numbers.size() > 1) found.match = NameMatch::kAmbiguous;
  for (const size_t number : numbers) found.kernels.push_back(&kernels_[number]);
  return found;
}

SourceLines::Numbers SourceLines::EndingIn(std::string_view name) const {
  Numbers found;
  for (const size_t from : BoundariesOf(name)) {
    const auto at = by_end_.find(name.substr(from));
    if (at == by_end_.end()) continue;
    for (const size_t number : at->second) {
      const std::string full = MangledKernel(kernels_[number].full_name);
      const bool fits = full.ends_with(name) && IsBoundary(full, full.size() - name.size());
      if (fits && std::ranges::count(found, number) == 0) found.push_back(number);
    }
  }
  std::ranges::sort(found);
  return found;
}

SourceLines::Numbers SourceLines::LongestInside(std::string_view name) const {
  const std::vector<size_t> places = BoundariesOf(name);
  const Numbers* found = nullptr;
  size_t longest = 0;
  for (const size_t from : places) {
    for (const size_t to : places) {
      if (to <= from + longest) continue;
      const auto at = by_name_.find(name.substr(from, to - from));
      if (at == by_name_.end()) continue;
      if (kernels_[at->second.front()].full_name.find('/') == std::string::npos) continue;
      longest = to - from;
      found = &at->second;
    }
  }
  return found == nullptr ? Numbers() : *found;
}

namespace {

class Trace {
 public:
  static Result<Trace> Of(const SourceQuery& query) {
    Trace trace;
    trace.text_ = LowerCase(query.text);
    if (!query.is_regex) return trace;
    // The standard library reports a bad expression by an exception; it ends here.
    try {
      trace.expression_.emplace(query.text, std::regex::ECMAScript | std::regex::icase);
    } catch (const std::regex_error&) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\": is no regular expression", query.text));
    }
    return trace;
  }

  [[nodiscard]] bool Matches(const std::string& source) const {
    if (!expression_) return LowerCase(source).find(text_) != std::string::npos;
    // The standard library's search recurses once per character.
    constexpr size_t kLongestLine = 4096;
    return std::ranges::any_of(SplitAt(source, '\n'), [&](std::string_view line) {
      return line.size() <= kLongestLine &&
             std::regex_search(line.begin(), line.end(), *expression_);
    });
  }

 private:
  std::string text_;
  std::optional<std::regex> expression_;
};

bool Wanted(const std::optional<std::vector<int64_t>>& numbers, int64_t number) {
  return !numbers || std::ranges::count(*numbers, number) > 0;
}

// Places of kernels in their graphs, by rank and name.
using Places = std::map<std::pair<int64_t, std::string>, size_t>;

}  // namespace

Result<std::vector<SourceTensor>> FindSourceTensors(const std::string& root,
                                                    const SourceQuery& query) {
  PL_TRY_ASSIGN(const Trace trace, Trace::Of(query));
  PL_TRY_ASSIGN(const std::vector<load::CompiledGraph> files, load::ListCompiledGraphs(root));
  Places places;
  for (const load::CompiledGraph& file : files) {
    if (!Wanted(query.ranks, file.rank)) continue;
    PL_TRY_ASSIGN(const graph_pb::Graph graph, graph_pb::Read(file.path));
    for (const graph_pb::Node& node : graph.nodes) {
      const bool is_kernel = !node.full_name.empty() && trace.Matches(node.source);
      if (is_kernel) places.try_emplace({file.rank, node.full_name}, places.size());
    }
  }
  std::vector<SourceTensor> found;
  if (places.empty()) return found;
  PL_TRY_ASSIGN(const load::GraphIndex index, load::GraphIndex::Read(root, false));
  std::vector<std::pair<std::tuple<size_t, int64_t, bool, int64_t>, const load::IndexedTensor*>>
      order;
  for (const load::IndexedTensor& tensor : index.tensors()) {
    const load::GraphDirectory& place = index.DirectoryOf(tensor);
    const auto at = places.find({place.rank, std::string(tensor.kernel)});
    if (at == places.end() || !Wanted(query.steps, place.step)) continue;
    order.push_back({{at->second, place.step, tensor.is_output, tensor.slot}, &tensor});
  }
  std::ranges::stable_sort(order, {}, [](const auto& each) { return each.first; });
  for (const auto& [key, tensor] : order) {
    const load::GraphDirectory& place = index.DirectoryOf(*tensor);
    found.push_back({std::string(tensor->kernel), place.rank, place.step, tensor->is_output,
                     index.PathOf(*tensor)});
  }
  return found;
}

namespace {

constexpr std::string_view kCsv = ".csv";
constexpr std::string_view kPrefix = "code_mapping";
constexpr std::string_view kTableName = "statistic_code_mapping.csv";
constexpr std::string_view kFilePath = "File Path";
constexpr std::string_view kNewColumns[] = {"Code Stack", "Scope Name", "Match"};

struct Inputs {
  std::vector<std::string> arrays, tables;  // sorted by path
};

// Symbolic links to directories are not followed.
Status AddBelow(const std::string& directory, Inputs& inputs) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string path = JoinPath(directory, name);
    if (name.ends_with(npy::kEnding)) {
      inputs.arrays.push_back(path);
    } else if (name == run_files::kStatisticCsv) {
      inputs.tables.push_back(path);
    } else {
      const Result<PathFacts> facts = Inspect(path);
      if (facts && facts->kind == PathKind::kDirectory) PL_TRY(AddBelow(path, inputs));
    }
  }
  return {};
}

Result<Inputs> FindInputs(const std::string& data) {
  PL_TRY_ASSIGN(const std::string path, RealPath(data));
  Inputs inputs;
  if (KindOf(path) == PathKind::kDirectory) {
    PL_TRY(AddBelow(path, inputs));
  } else if (path.ends_with(npy::kEnding)) {
    inputs.arrays.push_back(path);
  } else if (BaseName(path) == run_files::kStatisticCsv) {
    inputs.tables.push_back(path);
  }
  if (!inputs.arrays.empty() || !inputs.tables.empty()) return inputs;
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: holds no tensors (expected .npy files or statistic.csv)", data));
}

class Mapper {
 public:
  Mapper(const SourceLines& lines, CodeMappingReport& report) : lines_(lines), report_(report) {}

  Status MapArrays(const std::vector<std::string>& paths, const std::string& directory) {
    PL_TRY(MakeDirectories(directory));
    const report::FreeName name = report::FreePath(directory, kPrefix, kCsv);
    PL_TRY_ASSIGN(TextFile file, TextFile::Create(name.text));
    csv::Row header{std::string(kFilePath)};
    header.insert(header.end(), std::begin(kNewColumns), std::end(kNewColumns));
    csv::AppendRow(header, file.text());
    for (const std::string& path : paths) {
      PL_TRY_ASSIGN(const std::string tensor, TensorName(path));
      const auto parts = load::ParseKernelFile(tensor);
      csv::Row row{path};
      Append(parts ? parts->op_name : std::string_view(), row);
      csv::AppendRow(row, file.text());
      PL_TRY(file.Flush());
    }
    report_.files.push_back(name.text);
    return file.Close();
  }

  Status MapTable(const std::string& path) {
    PL_TRY_ASSIGN(std::vector<csv::Row> rows, csv::ReadRows(path));
    const auto bad = [&](std::string_view problem) {
      return Error(ErrorCode::kCorrupt, fmt::format("{}: {}", path, problem));
    };
    const auto columns = statistic_csv::FixedColumns();
    const bool has_header = !rows.empty() && rows[0].size() > statistic_csv::kOpName &&
                            rows[0][statistic_csv::kOpName] == columns[statistic_csv::kOpName];
    if (!has_header) return bad("no header (expected Op Type,Op Name,Task ID,...)");
    std::string text;
    if (rows[0].back().empty()) rows[0].pop_back();
    const size_t width = rows[0].size();
    rows[0].insert(rows[0].end(), std::begin(kNewColumns), std::end(kNewColumns));
    csv::AppendRow(rows[0], text);
    for (size_t i = 1; i < rows.size(); ++i) {
      csv::Row& row = rows[i];
      if (row.empty()) continue;
      if (row.size() == width + 1 && row.back().empty()) row.pop_back();
      if (row.size() != width) {
        return bad(fmt::format("line {}: {} cells; the file may be cut (expected {})", i + 1,
                               row.size(), width));
      }
      const std::string name = row[statistic_csv::kOpName];
      Append(name, row);
      csv::AppendRow(row, text);
    }
    report_.files.push_back(JoinPath(DirectoryOf(path), kTableName));
    return WriteFileAtomically(report_.files.back(), text, /*durable=*/false);
  }

 private:
  // The name of a tensor's file, or the one that was too long for it.
  Result<std::string> TensorName(const std::string& path) {
    const std::string name(BaseName(path));
    const std::string directory(DirectoryOf(path));
    if (mapped_directory_ != directory) {
      PL_TRY_ASSIGN(mapping_, load::NameMapping::Read(directory));
      mapped_directory_ = directory;
    }
    std::string full = mapping_.NameOf(name);
    if (full != name || !IsDigits(name.substr(0, name.size() - npy::kEnding.size()))) return full;
    report_.notes.push_back(fmt::format("{}: {} does not name this file", path,
                                        JoinPath(directory, run_files::kMappingCsv)));
    return name;
  }

  void Append(std::string_view name, csv::Row& row) {
    const SourceLines::Found found = lines_.Find(name);
    std::vector<std::string_view> sources, names;
    for (const SourceLines::Kernel* kernel : found.kernels) {
      names.push_back(kernel->full_name);
      const auto source = graph_ir::SourceLines(kernel->source);
      sources.insert(sources.end(), source.begin(), source.end());
    }
    row.push_back(fmt::format("{}", fmt::join(sources, "\n")));
    row.push_back(fmt::format("{}", fmt::join(names, "\n")));
    row.emplace_back(NameMatchName(found.match));
    ++report_.tensors;
    if (found.match != NameMatch::kNone) ++report_.mapped;
    if (found.match == NameMatch::kAmbiguous) ++report_.ambiguous;
  }

  const SourceLines& lines_;
  CodeMappingReport& report_;
  std::string mapped_directory_;  // whose mapping.csv is in mapping_
  load::NameMapping mapping_;
};

}  // namespace

Result<CodeMappingReport> MapCode(const CodeMappingOptions& options) {
  CodeMappingReport report;
  SourceLines lines;
  for (const std::string& path : options.graphs) {
    PL_TRY_ASSIGN(std::vector<std::string> notes, lines.AddFile(path));
    std::ranges::move(notes, std::back_inserter(report.notes));
  }
  if (lines.size() == 0) {
    return Error(ErrorCode::kInvalidArgument,
                 report.notes.empty() ? "no graph was named" : report.notes.back());
  }
  PL_TRY_ASSIGN(const Inputs inputs, FindInputs(options.data));
  Mapper mapper(lines, report);
  if (!inputs.arrays.empty()) {
    PL_TRY(mapper.MapArrays(inputs.arrays, options.output));
    return report;
  }
  for (const std::string& path : inputs.tables) PL_TRY(mapper.MapTable(path));
  return report;
}

}  // namespace plumbline::graphs
