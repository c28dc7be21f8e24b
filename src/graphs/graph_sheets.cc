#include "graphs/graph_sheets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/file/file.h"
#include "base/file/text_file.h"
#include "base/text/csv.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "config/graph_dump/kernel_entries.h"
#include "formats/acl/graph_pb.h"
#include "formats/array/npy.h"
#include "formats/json/json_feed.h"
#include "formats/table/xlsx.h"
#include "load/graph_dump.h"
#include "load/graph_index.h"
#include "match/expand.h"
#include "report/result_names.h"

namespace plumbline::graphs {

namespace {

constexpr std::string_view kSampleNum = "sample_num", kTensors = "tensors";
using Shapes = std::map<std::string, Shape>;  // of files before they were cut

bool ReadShapes(json::Reader& in, Shapes& shapes) {
  std::string_view key;
  if (!in.EnterObject()) return false;
  while (in.NextMember(key)) {
    Shape& shape = shapes[std::string(key)];
    if (!in.EnterArray()) return false;
    json::Number number;
    while (in.NextElement() && in.ReadNumber(number)) {
      const auto* size = std::get_if<int64_t>(&number);
      if (size == nullptr) return false;
      shape.push_back(*size);
    }
  }
  return !in.failed();
}

Result<Shapes> ReadSamples(const std::string& path) {
  Shapes shapes;
  if (KindOf(path) != PathKind::kFile) return shapes;
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  json::Reader in(text);
  std::string_view key;
  bool fine = in.EnterObject();
  while (fine && in.NextMember(key)) {
    fine = key == kTensors ? ReadShapes(in, shapes) : in.SkipValue();
  }
  if (fine && in.ReadEnd()) return shapes;
  return Error(ErrorCode::kCorrupt, fmt::format("{}: no table of samples", path));
}

Result<std::string> SamplesText(const Shapes& shapes, uint64_t sample_num) {
  json::Document out;
  out.Open('{');
  out.Number(kSampleNum, sample_num);
  out.Key(kTensors);
  out.Open('{');
  for (const auto& [file, shape] : shapes) {
    out.Key(file);
    out.Raw(fmt::format("[{}]", fmt::join(shape, ",")));
  }
  out.Close('}');
  out.Close('}');
  return out.Finish();
}

Status Cut(const std::string& path, uint64_t sample_num) {
  const Result<npy::NpyFile> file = npy::NpyFile::Open(path);
  if (!file) return file.error().In(path);
  PL_TRY_ASSIGN(const Tensor tensor, Tensor::Copy(file->view()));
  const TensorView view = tensor.view();
  const Shape sizes = {static_cast<int64_t>(sample_num)};
  PL_TRY_ASSIGN(const std::string header, npy::MakeGraphHeader(view.dtype, sizes));
  PL_TRY_ASSIGN(AtomicFile out, AtomicFile::Create(path));
  PL_TRY(out.Write(header));
  PL_TRY(out.Write(std::span(view.data, sample_num * InfoOf(view.dtype).size_bytes)));
  return out.Commit(/*durable=*/false);
}

}  // namespace

Result<uint64_t> SampleTensors(const std::string& directory, const std::vector<std::string>& files,
                               uint64_t sample_num) {
  const std::string table = JoinPath(directory, load::kSampleJson);
  PL_TRY_ASSIGN(Shapes shapes, ReadSamples(table));
  std::vector<std::string> large;
  for (const std::string& name : files) {
    const Result<npy::NpyFile> file = npy::NpyFile::Open(JoinPath(directory, name));
    if (!file || static_cast<uint64_t>(file->view().element_count()) <= sample_num) continue;
    const TensorView view = file->view();
    shapes.try_emplace(name, view.sizes.begin(), view.sizes.end());
    large.push_back(name);
  }
  if (large.empty()) return 0;
  PL_TRY_ASSIGN(const std::string text, SamplesText(shapes, sample_num));
  PL_TRY(WriteFileAtomically(table, text + "\n", /*durable=*/true));
  for (const std::string& name : large) PL_TRY(Cut(JoinPath(directory, name), sample_num));
  return large.size();
}

namespace {

using graph_pb::Graph;
using graph_pb::Node;
using graph_pb::TensorType;

constexpr std::string_view kUnknown = "-";
constexpr std::string_view kExtension = ".xlsx";

constexpr std::array<std::string_view, 2> kInfo = {"argument", "value"};
constexpr std::array<std::string_view, 5> kConstant = {"name", "value", "downstream", "rank_id",
                                                       "graph_name"};
constexpr std::array<std::string_view, 6> kParameter = {
    "name", "output_dtype", "output_shape", "downstream", "rank_id", "graph_name"};
constexpr std::array<std::string_view, 14> kOperator = {
    "operator", "input", "input_dtype", "input_shape", "output_dtype", "output_shape", "downstream",
    "name",     "attrs", "scope",       "full_name",   "rank_id",      "graph_name",   "stack"};
constexpr std::array<std::string_view, 2> kStatistics = {"operator", "count"};
constexpr std::array<std::string_view, 5> kSource = {"stack", "operator", "full_name", "rank_id",
                                                     "graph_name"};

// The number behind "-op" at the end of the full name, otherwise the name.
std::string_view OpIdOf(const Node& node) {
  constexpr std::string_view kMark = "-op";
  const size_t at = node.full_name.rfind(kMark);
  if (at == std::string::npos) return node.name;
  const std::string_view id = std::string_view(node.full_name).substr(at + kMark.size());
  return IsDigits(id) ? id : std::string_view(node.name);
}

std::string LabelOf(const Node& node) {
  return fmt::format("{}_{}", node.op_type, node.op_type == "Load" ? node.name : OpIdOf(node));
}

std::string ShapeText(const std::optional<Shape>& shape) {
  return shape ? match::TupleText(*shape) : std::string(kUnknown);
}

std::string DTypeText(const TensorType& type) {
  return type.dtype.empty() ? std::string(kUnknown) : type.dtype;
}

std::string Lines(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string DTypesOf(std::span<const TensorType> types) {
  std::vector<std::string> lines;
  for (const TensorType& type : types) lines.push_back(DTypeText(type));
  return Lines(lines);
}

std::string ShapesOf(std::span<const TensorType> types) {
  std::vector<std::string> lines;
  for (const TensorType& type : types) lines.push_back(ShapeText(type.shape));
  return Lines(lines);
}

// "# - a.py:3  code" of "#-In file a.py:3, 4~9/code/"; other lines as they are.
std::string StackLine(std::string_view line) {
  constexpr std::string_view kPlace = "In file ";
  constexpr std::string_view kNumbers = "0123456789~, ";
  const size_t begin = line.find(kPlace);
  if (begin == std::string_view::npos) return std::string(line);
  const bool has_more = line.substr(0, begin).find('-') != std::string_view::npos;
  const std::string_view place = line.substr(begin + kPlace.size());
  for (size_t at = place.find_first_of(":("); at != std::string_view::npos;
       at = place.find_first_of(":(", at + 1)) {
    size_t end = place.find_first_not_of(kNumbers, at + 1);
    if (end == std::string_view::npos || end == at + 1) continue;
    const std::string_view numbers = place.substr(at + 1, end - at - 1);
    if (place[end] == ')') ++end;
    if (end >= place.size() || place[end] != '/') continue;
    std::string_view code = place.substr(end + 1);
    code.remove_prefix(std::min(code.find_first_not_of(' '), code.size()));
    while (code.ends_with('/') || code.ends_with('\r')) code.remove_suffix(1);
    return fmt::format("# {} {}:{}  {}", has_more ? '-' : ' ', place.substr(0, at), numbers, code);
  }
  return std::string(line);
}

std::string StackOf(const Node& node) {
  std::vector<std::string> lines;
  for (const std::string_view line : SplitAt(node.source, '\n')) {
    if (!line.empty()) lines.push_back(StackLine(line));
  }
  return Lines(lines);
}

std::string AttributesOf(const Node& node) {
  std::vector<std::string> parts;
  for (const graph_pb::Attribute& one : node.attributes) {
    parts.push_back(fmt::format("'{}': {}", one.name, one.value));
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

// A graph with its names looked up. Views are into the graph.
class NamedGraph {
 public:
  NamedGraph(int64_t rank, const Graph& graph) : rank_(rank), graph_(graph) {
    for (const graph_pb::Parameter& one : graph.parameters) types_[one.name] = one.outputs;
    for (const graph_pb::Constant& one : graph.constants) {
      if (one.value.tensor) types_[one.name] = {&*one.value.tensor, 1};
    }
    for (const Node& node : graph.nodes) {
      nodes_[node.name] = &node;
      types_[node.name] = node.outputs;
      for (const std::string& input : node.inputs) readers_[input].push_back(LabelOf(node));
    }
  }

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] std::string rank() const { return std::to_string(rank_); }

  [[nodiscard]] std::string DownstreamOf(const std::string& name) const {
    const auto found = readers_.find(name);
    return found == readers_.end() ? std::string() : Lines(found->second);
  }

  // Cells input, input_dtype and input_shape: a line per input in each.
  [[nodiscard]] std::array<std::string, 3> InputsOf(const Node& node) const {
    std::vector<std::string> names, dtypes, shapes;
    for (const std::string& input : node.inputs) {
      const auto producer = nodes_.find(input);
      names.push_back(producer == nodes_.end() ? input : LabelOf(*producer->second));
      const auto types = types_.find(input);
      const bool is_known = types != types_.end() && !types->second.empty();
      const bool is_tuple = is_known && types->second.size() > 1;
      const TensorType type = is_known && !is_tuple ? types->second.front() : TensorType();
      dtypes.push_back(is_tuple ? "tuple" : DTypeText(type));
      shapes.push_back(ShapeText(type.shape));
    }
    return {Lines(names), Lines(dtypes), Lines(shapes)};
  }

 private:
  int64_t rank_;
  const Graph& graph_;
  std::unordered_map<std::string_view, const Node*> nodes_;
  std::unordered_map<std::string_view, std::span<const TensorType>> types_;
  std::unordered_map<std::string_view, std::vector<std::string>> readers_;
};

Status Row(xlsx::Writer& out, std::span<const std::string> cells) {
  PL_TRY(out.BeginRow(xlsx::Fill::kNone));
  for (const std::string& cell : cells) PL_TRY(out.Text(cell));
  return {};
}

Status WriteValues(xlsx::Writer& out, std::span<const NamedGraph> graphs) {
  PL_TRY(out.BeginSheet("constant", kConstant, xlsx::Look::kTable));
  for (const NamedGraph& named : graphs) {
    for (const graph_pb::Constant& one : named.graph().constants) {
      const std::string cells[] = {one.name, one.value.text, named.DownstreamOf(one.name),
                                   named.rank(), named.graph().name};
      PL_TRY(Row(out, cells));
    }
  }
  PL_TRY(out.BeginSheet("parameter", kParameter, xlsx::Look::kTable));
  for (const NamedGraph& named : graphs) {
    for (const graph_pb::Parameter& one : named.graph().parameters) {
      const std::string cells[] = {
          one.name,     DTypesOf(one.outputs), ShapesOf(one.outputs), named.DownstreamOf(one.name),
          named.rank(), named.graph().name};
      PL_TRY(Row(out, cells));
    }
  }
  return {};
}

Status WriteOperators(xlsx::Writer& out, std::span<const NamedGraph> graphs) {
  PL_TRY(out.BeginSheet("operator", kOperator, xlsx::Look::kTable));
  for (const NamedGraph& named : graphs) {
    for (const Node& node : named.graph().nodes) {
      auto [inputs, dtypes, shapes] = named.InputsOf(node);
      std::string cells[] = {LabelOf(node),
                             std::move(inputs),
                             std::move(dtypes),
                             std::move(shapes),
                             DTypesOf(node.outputs),
                             ShapesOf(node.outputs),
                             named.DownstreamOf(node.name),
                             node.name,
                             AttributesOf(node),
                             node.full_name.substr(0, node.full_name.rfind('/') + 1),
                             node.full_name,
                             named.rank(),
                             named.graph().name,
                             StackOf(node)};
      constexpr size_t kScope = 9, kRank = 11, kStack = 13;
      if (!cells[kScope].empty()) cells[kScope].pop_back();  // the slash
      if (node.op_type == "make_tuple") {
        for (size_t i = 1; i < kRank; ++i) cells[i].clear();
        cells[kStack].clear();
      }
      PL_TRY(Row(out, cells));
    }
  }
  return {};
}

Status WriteStatistics(xlsx::Writer& out, std::span<const NamedGraph> graphs) {
  std::map<std::string_view, uint64_t> counts;
  for (const NamedGraph& named : graphs) {
    for (const Node& node : named.graph().nodes) ++counts[node.op_type];
  }
  PL_TRY(out.BeginSheet("statistics", kStatistics, xlsx::Look::kTable));
  for (const auto& [type, count] : counts) {
    PL_TRY(out.BeginRow(xlsx::Fill::kNone));
    PL_TRY(out.Text(type));
    PL_TRY(out.Number(static_cast<double>(count)));
  }
  return {};
}

Status WriteSources(xlsx::Writer& out, std::span<const NamedGraph> graphs) {
  using Place = std::pair<const NamedGraph*, const Node*>;
  std::vector<std::pair<std::string, std::vector<Place>>> groups;  // in the order of the graphs
  std::unordered_map<std::string, size_t> numbers;
  for (const NamedGraph& named : graphs) {
    for (const Node& node : named.graph().nodes) {
      std::string stack = StackOf(node);
      if (stack.empty()) continue;
      const auto [at, is_new] = numbers.try_emplace(stack, groups.size());
      if (is_new) groups.push_back({std::move(stack), {}});
      groups[at->second].second.emplace_back(&named, &node);
    }
  }
  PL_TRY(out.BeginSheet("source", kSource, xlsx::Look::kTable));
  for (auto& [stack, places] : groups) {
    std::ranges::stable_sort(places, {}, [](const Place& place) {
      return ParseNatural(OpIdOf(*place.second)).value_or(-1);
    });
    for (const auto& [named, node] : places) {
      const std::string cells[] = {stack, LabelOf(*node), node->full_name, named->rank(),
                                   named->graph().name};
      PL_TRY(Row(out, cells));
    }
  }
  return {};
}

}  // namespace

Result<std::string> WriteGraphSheets(const std::string& root, const std::string& directory) {
  PL_TRY_ASSIGN(const std::vector<load::CompiledGraph> files, load::ListCompiledGraphs(root));
  std::vector<Graph> graphs;
  graphs.reserve(files.size());  // views are into them
  std::vector<NamedGraph> named;
  for (const load::CompiledGraph& file : files) {
    PL_TRY_ASSIGN(Graph graph, graph_pb::Read(file.path));
    // Upstream leaves out nodes without a name.
    std::erase_if(graph.nodes, [](const Node& node) { return node.name.empty(); });
    named.emplace_back(file.rank, graphs.emplace_back(std::move(graph)));
  }
  PL_TRY(MakeDirectories(directory));
  const report::FreeName name =
      report::FreePath(directory, "dump", kExtension, report::StampForm::kDateAndTime);
  PL_TRY_ASSIGN(xlsx::Writer out, xlsx::Writer::CreateEmpty(name.text));
  PL_TRY(out.BeginSheet("info", kInfo, xlsx::Look::kTable));
  const std::string info[] = {"dump-dir", root};
  PL_TRY(Row(out, info));
  PL_TRY(WriteValues(out, named));
  PL_TRY(WriteOperators(out, named));
  PL_TRY(WriteStatistics(out, named));
  PL_TRY(WriteSources(out, named));
  PL_TRY(out.Close());
  return name.text;
}

namespace {

using graph_dump::EntryKind;
using graph_dump::KernelEntries;

// "Default/net/Conv2D" of "Default/net/Conv2D-op12": numbers change with how graphs are saved.
std::string_view WithoutNumber(std::string_view name) {
  constexpr std::string_view kMark = "-op";
  const size_t mark = name.rfind(kMark);
  if (mark == std::string_view::npos || !IsDigits(name.substr(mark + kMark.size()))) return name;
  return name.substr(0, mark);
}

EntrySelection SelectionOf(const KernelEntries::Entry& entry, const std::set<std::string>& names) {
  EntrySelection selection;
  selection.text = entry.text;
  for (const std::string& name : names) {
    if (!KernelEntries::Matches(entry, name)) continue;
    if (selection.kernels++ == 0) selection.first = name;
  }
  if (selection.kernels > 0 || entry.kind != EntryKind::kName) return selection;
  for (const std::string& name : names) {
    if (WithoutNumber(name) != WithoutNumber(entry.text)) continue;
    selection.nearest = name;
    break;
  }
  return selection;
}

}  // namespace

Result<KernelSelection> SelectKernels(const std::vector<std::string>& kernels,
                                      const std::string& tree) {
  PL_TRY_ASSIGN(const KernelEntries entries, KernelEntries::Parse(kernels));
  PL_TRY_ASSIGN(const auto orders, load::ReadExecutionOrders(tree));
  std::set<std::string> names;
  for (const load::ExecutionOrder& order : orders) {
    names.insert(order.kernels.begin(), order.kernels.end());
  }
  if (names.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no table of execution order (expected "
                             "rank_0/execution_order/ms_execution_order_graph_0.csv)",
                             tree));
  }
  KernelSelection selection{orders.size(), names.size(), 0, {}};
  for (const std::string& name : names) {
    if (entries.Select(name)) ++selection.selected;
  }
  for (const KernelEntries::Entry& entry : entries.entries()) {
    selection.entries.push_back(SelectionOf(entry, names));
  }
  return selection;
}

namespace {

constexpr std::array<std::string_view, 10> kColumns = {
    "Rank", "Graph", "Step", "Kernel", "Op Type", "IO", "Slot", "Data Type", "Shape", "Path"};

std::string Line(const load::GraphIndex& index, const load::IndexedTensor& tensor) {
  const load::GraphDirectory& place = index.DirectoryOf(tensor);
  const bool is_constant = place.step == load::GraphIndex::kEveryStep;
  const std::string cells[] = {
      std::to_string(place.rank),
      place.graph ? std::to_string(*place.graph) : std::string(),
      is_constant ? std::string() : std::to_string(place.step),
      std::string(tensor.kernel),
      std::string(tensor.op_type),
      tensor.is_output ? "output" : "input",
      std::to_string(tensor.slot),
      std::string(tensor.dtype),
      tensor.shape ? fmt::format("[{}]", fmt::join(*tensor.shape, ",")) : std::string(),
      index.PathOf(tensor)};
  std::string line;
  csv::AppendRow(cells, line);
  return line;
}

}  // namespace

Result<WrittenIndex> WriteGraphIndex(const std::string& root, const std::string& path) {
  PL_TRY_ASSIGN(const load::GraphIndex index, load::GraphIndex::Read(root, /*reads_headers=*/true));
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  std::string header;
  csv::AppendRow(kColumns, header);
  PL_TRY(file.Write(header));
  WrittenIndex written{index.tensors().size(), 0, index.left_out()};
  for (const load::IndexedTensor& tensor : index.tensors()) {
    if (tensor.dtype == load::kUnreadableDType) ++written.unreadable;
    PL_TRY(file.Write(Line(index, tensor)));
  }
  PL_TRY(file.Close());
  return written;
}

}  // namespace plumbline::graphs
