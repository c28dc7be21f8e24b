#include "view/graph_writer.h"

#include <vector>

#include "base/text/json.h"
#include "overflow/overflow_grade.h"

namespace plumbline::view {
namespace {

// The inputs or the outputs of a node as a JSON object.
std::string ValuesJson(const Node& node, bool of_outputs) {
  std::string out = "{";
  for (size_t i = 0; i < node.values.size(); ++i) {
    const NodeValues::Parameter parameter = node.values[i];
    if (parameter.is_output != of_outputs) continue;
    if (out.size() > 1) out += ", ";
    json::AppendString(parameter.name, out);
    out += ": {";
    out += parameter.fields;
    if (i < node.metrics.size()) out += node.metrics[i];
    out += '}';
  }
  return out + "}";
}

// Hands one node to `add`, with texts that live as long.
template <class Add>
Status WriteNode(const Node& node, const Add& add) {
  const std::string inputs = ValuesJson(node, false), outputs = ValuesJson(node, true);
  vis::Node row{.order = node.order,
                .name = node.name,
                .parent = node.parent == nullptr ? std::string_view() : node.parent->name,
                .type = node.type,
                .level = node.level,
                .micro_step = node.micro_step,
                .is_top = node.parent != nullptr && node.parent->parent == nullptr,
                .stack = node.stack,
                .inputs = inputs,
                .outputs = outputs};
  row.children.reserve(node.children.size());
  for (const Node* const child : node.children) row.children.push_back(child->name);
  if (node.partner != nullptr) row.link = PathTo(*node.partner);
  if (node.overflow) row.overflow_level = OverflowLevelName(*node.overflow);
  return add(row);
}

}  // namespace

Status WriteGraph(const vis::GraphPlace& place, RecordedGraph& recorded, vis_db::Writer& writer) {
  PL_TRY(writer.BeginGraph(place, recorded.dump_data_dir, recorded.graph.stacks));
  for (const Node* const node : NodesInOrder(recorded.graph)) {
    PL_TRY(WriteNode(*node, [&](const vis::Node& row) { return writer.Add(row); }));
  }
  return {};
}

Status WriteGraph(const vis::GraphPlace& place, RecordedGraph& recorded,
                  vis_json::Writer& writer) {
  PL_TRY(writer.BeginGraph(place, recorded.dump_data_dir, recorded.graph.stacks));
  for (const Node& node : recorded.graph.nodes) {  // in order of mention, collections last
    PL_TRY(WriteNode(node, [&](const vis::Node& row) { return writer.Add(row); }));
  }
  writer.EndGraph();
  return {};
}

}  // namespace plumbline::view
