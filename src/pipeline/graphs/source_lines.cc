#include "pipeline/graphs/source_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/text_parts.h"
#include "formats/graph_pb.h"
#include "record/graph_name.h"

namespace plumbline::pipeline {
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

}  // namespace plumbline::pipeline
