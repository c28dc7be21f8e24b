#include "watch/points/graph_trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text_parts.h"
#include "formats/acl/graph_pb.h"
#include "load/graph_dump.h"
#include "record/call_name.h"

namespace plumbline::watch {
namespace {

// "# In file /a/net.py:12/    x = self.fc(x)/" -> "File /a/net.py, line 12, in : x = self.fc(x)".
std::string FrameOf(std::string_view line) {
  constexpr std::string_view kMark = "In file ";
  const size_t mark = line.find(kMark);
  if (mark == std::string_view::npos) return {};
  line = line.substr(mark + kMark.size());
  for (size_t colon = line.find(':'); colon != std::string_view::npos;
       colon = line.find(':', colon + 1)) {
    const size_t end = std::min(line.find_first_not_of("0123456789", colon + 1), line.size());
    if (end == colon + 1) continue;
    const size_t slash = line.find('/', end);
    std::string_view code = slash == std::string_view::npos ? "" : line.substr(slash + 1);
    if (code.ends_with('/')) code.remove_suffix(1);
    return fmt::format("File {}, line {}, in : {}", line.substr(0, colon),
                       line.substr(colon + 1, end - colon - 1), Trimmed(code));
  }
  return {};
}

}  // namespace

GraphTrace GraphTrace::Read(const std::string& root) {
  GraphTrace trace;
  const auto files = load::ListCompiledGraphs(root);
  if (!files) return trace;
  for (const load::CompiledGraph& file : *files) {
    const auto graph = graph_pb::Read(file.path);
    if (!graph) {
      trace.notes_.push_back(graph.error().message());
      continue;
    }
    std::map<std::string_view, std::string_view> full_names;
    for (const graph_pb::Node& node : graph->nodes) full_names[node.name] = node.full_name;
    for (const graph_pb::Node& node : graph->nodes) {
      TracedNode out;
      out.rank = file.rank;
      out.graph = file.graph;
      out.graph_name = graph->name;
      out.root_graph = graph->root_name;
      out.name = node.full_name;
      out.op = node.op_type;
      for (const std::string_view line : SplitAt(node.source, '\n')) {
        std::string frame = FrameOf(line);
        if (!frame.empty()) out.stack.push_back(std::move(frame));
      }
      for (const std::string& input : node.inputs) {
        const auto found = full_names.find(input);
        out.inputs.emplace_back(found == full_names.end() ? input : found->second);
      }
      trace.places_.try_emplace({file.rank, out.name}, trace.nodes_.size());
      trace.places_.try_emplace({file.rank, MangledKernel(out.name)}, trace.nodes_.size());
      trace.nodes_.push_back(std::move(out));
    }
  }
  return trace;
}

const TracedNode* GraphTrace::Find(int64_t rank, std::string_view name) const {
  const auto found = places_.find({rank, std::string(name)});
  return found == places_.end() ? nullptr : &nodes_[found->second];
}

}  // namespace plumbline::watch
