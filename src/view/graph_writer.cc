#include "view/graph_writer.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/process/parallel.h"
#include "base/text/json.h"
#include "record/overflow_level.h"

namespace plumbline::view {
namespace {

// The inputs or the outputs of a node as a JSON object.
std::string ValuesJson(const Node& node, bool of_outputs) {
  std::string out = "{";
  for (size_t i = 0; node.texts != nullptr && i < node.texts->values.size(); ++i) {
    const NodeValues::Parameter parameter = node.texts->values[i];
    if (parameter.is_output != of_outputs) continue;
    if (out.size() > 1) out += ", ";
    json::AppendString(parameter.name, out);
    out += ": {";
    out += parameter.fields;
    if (i < node.texts->metrics.size()) out += node.texts->metrics[i];
    out += '}';
  }
  return out + "}";
}

std::string MergeJson(const Node& node) {
  if (node.texts == nullptr || node.texts->merge.empty()) return {};
  return vis::ListJson({node.texts->merge.begin(), node.texts->merge.end()});
}

// The texts of one node that are made for the file.
struct NodeTexts {
  std::string inputs, outputs, merge;
};

vis::Node RowOf(const Node& node, const NodeTexts& texts) {
  vis::Node row{.order = node.order,
                .name = node.name,
                .parent = node.parent == nullptr ? std::string_view() : node.parent->name.view(),
                .type = node.type,
                .level = node.level,
                .micro_step = node.micro_step,
                .is_top = node.parent != nullptr && node.parent->parent == nullptr,
                .stack = node.stack,
                .inputs = texts.inputs,
                .outputs = texts.outputs,
                .merge = texts.merge};
  row.children.reserve(node.children.size());
  for (const Node* const child : node.children) row.children.push_back(child->name);
  if (node.partner != nullptr) row.link = PathTo(*node.partner);
  if (node.overflow) row.overflow_level = OverflowLevelName(*node.overflow);
  return row;
}

using Block = std::span<const Node* const>;

std::vector<NodeTexts> TextsOf(Block nodes) {
  std::vector<NodeTexts> texts;
  texts.reserve(nodes.size());
  for (const Node* const node : nodes) {
    texts.push_back({ValuesJson(*node, false), ValuesJson(*node, true), MergeJson(*node)});
  }
  return texts;
}

template <class Writer>
Status WriteBlock(Block nodes, const std::vector<NodeTexts>& texts, Writer& writer) {
  for (size_t i = 0; i < nodes.size(); ++i) PL_TRY(writer.Add(RowOf(*nodes[i], texts[i])));
  return {};
}

// While some nodes are written, the texts of the next ones are made.
template <class Writer>
Status WriteNodes(const std::vector<const Node*>& nodes, Writer& writer) {
  constexpr size_t kBlock = 256;
  const auto block_at = [&](size_t begin) -> Block {
    if (begin >= nodes.size()) return {};
    return Block(nodes).subspan(begin, std::min(kBlock, nodes.size() - begin));
  };
  std::vector<NodeTexts> texts = TextsOf(block_at(0));
  for (size_t begin = 0; begin < nodes.size(); begin += kBlock) {
    std::vector<NodeTexts> next;
    Status written;
    RunBoth([&] { written = WriteBlock(block_at(begin), texts, writer); },
            [&] { next = TextsOf(block_at(begin + kBlock)); });
    PL_TRY(std::move(written));
    texts = std::move(next);
  }
  return {};
}

Status WriteGraph(const vis::GraphPlace& place, RecordedGraph& recorded, vis_db::Writer& writer) {
  PL_TRY(writer.BeginGraph(place, recorded.dump_data_dir, recorded.graph.stacks));
  const std::vector<Node*> order = NodesInOrder(recorded.graph);
  return WriteNodes({order.begin(), order.end()}, writer);
}

Status WriteGraph(const vis::GraphPlace& place, RecordedGraph& recorded, vis_json::Writer& writer) {
  PL_TRY(writer.BeginGraph(place, recorded.dump_data_dir, recorded.graph.stacks));
  std::vector<const Node*> nodes;  // in order of mention, groups of APIs last
  nodes.reserve(recorded.graph.nodes.size());
  for (const Node& node : recorded.graph.nodes) nodes.push_back(&node);
  PL_TRY(WriteNodes(nodes, writer));
  writer.EndGraph();
  return {};
}

template <class Writer>
Status WriteBoth(vis::GraphPlace place, RecordedGraph& target, std::optional<RecordedGraph>& golden,
                 Writer& writer) {
  PL_TRY(WriteGraph(place, target, writer));
  if (!golden) return {};
  place.is_golden = true;
  return WriteGraph(place, *golden, writer);
}

}  // namespace

Status WriteGraphs(const vis::GraphPlace& place, RecordedGraph& target,
                   std::optional<RecordedGraph>& golden, vis_db::Writer& writer) {
  return WriteBoth(place, target, golden, writer);
}

Status WriteGraphs(const vis::GraphPlace& place, RecordedGraph& target,
                   std::optional<RecordedGraph>& golden, vis_json::Writer& writer) {
  return WriteBoth(place, target, golden, writer);
}

}  // namespace plumbline::view
