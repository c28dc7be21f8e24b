#include "view/store/fill_place.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/process/parallel.h"
#include "record/overflow_level.h"
#include "tree/compare_trees.h"
#include "view/build_graph.h"
#include "view/node_stacks.h"
#include "view/store/call_details.h"
#include "view/store/place_data.h"

namespace plumbline::view {
namespace {

constexpr uint32_t kNoCall = 0xFFFFFFFF;
constexpr size_t kShare = 1024;  // nodes or calls that one thread looks at

StoredOverflow OverflowOf(const SeenSide& seen, std::string_view name) {
  if (seen.overflow.empty()) return StoredOverflow::kNone;
  const auto found = seen.overflow.find(std::string(name));
  return found == seen.overflow.end() ? StoredOverflow::kNone
                                      : StoredOverflowOf(OverflowLevelName(found->second));
}

// The nodes of a graph in pre-order; Node::order becomes the position.
std::vector<Node*> PreOrder(ModelGraph& graph) {
  std::vector<Node*> order, open = {&graph.root()};
  order.reserve(graph.nodes.size());
  while (!open.empty()) {
    Node* const node = open.back();
    open.pop_back();
    node->order = order.size();
    order.push_back(node);
    open.insert(open.end(), node->children.rbegin(), node->children.rend());
  }
  return order;
}

using Frames = std::vector<std::string>;

const Frames* OwnFrames(const Run& run, std::string_view name) {
  const Shared<Frames>& frames = run.StackOf(name);
  return frames.empty() ? nullptr : &*frames;
}

// Those of a node; of a backward call without any those of its forward call. Null: not recorded.
const Frames* FramesOfNode(const Run& run, std::string_view name) {
  if (const Frames* const frames = OwnFrames(run, name)) return frames;
  const auto source = SourceOfFrames(name);
  return source ? OwnFrames(run, *source) : nullptr;
}

// The calls of each node: mostly one. Numbers of calls, those of one node in a chain.
class CallsOfNodes {
 public:
  explicit CallsOfNodes(size_t nodes, size_t calls)
      : first_(nodes, kNoCall), next_(calls, kNoCall) {}

  void Add(size_t node, size_t call) {
    uint32_t* at = &first_[node];
    while (*at != kNoCall) at = &next_[*at];
    *at = static_cast<uint32_t>(call);
  }
  template <class Visit>
  void ForEach(size_t node, const Visit& visit) const {
    for (uint32_t call = first_[node]; call != kNoCall; call = next_[call]) visit(call);
  }
  [[nodiscard]] bool Has(size_t node) const { return first_[node] != kNoCall; }

 private:
  std::vector<uint32_t> first_, next_;
};

class PlaceFiller {
 public:
  PlaceFiller(PlaceSide& target, PlaceSide& golden, const Comparison* comparison,
              PlaceBuilder& place)
      : sides_{&target, &golden}, comparison_(comparison), place_(place) {}

  match::TextPairs Fill(const match::TextPairs& by_hand) {
    match::TextPairs linked;
    if (Has(true)) {
      ModelGraph& golden = sides_[1]->graph;
      if (comparison_ != nullptr) {
        tree::LinkTrees(*comparison_, sides_[0]->graph, golden);
        linked = LinkByHand(by_hand);
        tree::LevelTree(*comparison_, sides_[0]->graph);
      } else {
        tree::LinkTrees(sides_[0]->graph, golden);
        linked = LinkByHand(by_hand);
      }
    }
    for (const bool is_golden : {false, true}) {
      if (Has(is_golden)) nodes_[Index(is_golden)] = PreOrder(sides_[Index(is_golden)]->graph);
    }
    for (const bool is_golden : {false, true}) FindCalls(is_golden);
    place_.ReserveNames(CharsOfNames());
    for (const bool is_golden : {false, true}) {
      AddNodes(is_golden);
      // As large as the calls themselves, and not needed for the details.
      sides_[Index(is_golden)]->graph.DropNodes();
      nodes_[Index(is_golden)] = {};
    }
    place_.AddDetails([&](bool is_golden, uint32_t node, NodeDetail& detail) {
      return DetailOf(is_golden, node, detail);
    });
    return linked;
  }

 private:
  // The comparison pairs calls that have values.
  match::TextPairs LinkByHand(const match::TextPairs& by_hand) {
    match::TextPairs linked;
    for (const auto& [target_name, golden_name] : by_hand) {
      Node* const ours = sides_[0]->graph.Find(target_name);
      Node* const theirs = sides_[1]->graph.Find(golden_name);
      if (ours == nullptr || theirs == nullptr) continue;
      if (ours->partner == nullptr && theirs->partner == nullptr) {
        ours->partner = theirs;
        theirs->partner = ours;
      }
      if (ours->partner != theirs) continue;
      by_hand_.insert({ours, theirs});
      linked.emplace_back(target_name, golden_name);
    }
    return linked;
  }

  static size_t Index(bool is_golden) { return is_golden ? 1 : 0; }
  [[nodiscard]] bool Has(bool is_golden) const { return sides_[Index(is_golden)]->run != nullptr; }

  // Those of pairs are mostly equal.
  [[nodiscard]] size_t CharsOfNames() const {
    size_t count = 0;
    for (const Node* const node : nodes_[0]) count += node->name.size();
    for (const Node* const node : nodes_[1]) {
      if (node->partner == nullptr || node->partner->name != node->name) count += node->name.size();
    }
    return count;
  }

  // Calls that a node of the target has are shown there, with both sides.
  void FindCalls(bool is_golden) {
    const PlaceSide& side = *sides_[Index(is_golden)];
    const size_t calls = comparison_ != nullptr ? comparison_->calls.size() : side.calls.size();
    calls_.emplace_back(nodes_[Index(is_golden)].size(), calls);
    if (!Has(is_golden)) return;
    std::vector<const Node*> found(calls);
    ParallelBlocks(calls, kShare, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) found[i] = side.graph.Find(NameOf(i, is_golden));
    });
    for (size_t i = 0; i < calls; ++i) {
      if (found[i] != nullptr) calls_.back().Add(found[i]->order, i);
    }
  }

  // The name under which a call is shown on a side; empty: not there.
  [[nodiscard]] std::string_view NameOf(size_t i, bool is_golden) const {
    if (comparison_ == nullptr) return sides_[Index(is_golden)]->calls[i].name;
    const ComparedCall& call = comparison_->calls[i];
    if (!is_golden) return call.target_name;
    return call.target_name.empty() ? call.golden_name.view() : std::string_view();
  }

  uint32_t StackOf(const Frames* frames) {
    if (frames == nullptr) return 0;
    const auto [known, is_new] = stacks_.emplace(frames, 0);
    if (is_new) {
      known->second =
          place_.AddStack(std::vector<std::string_view>(frames->begin(), frames->end()));
    }
    return known->second;
  }

  // What can be found out of many nodes at once is, some of them at a time.
  void AddNodes(bool is_golden) {
    const PlaceSide& side = *sides_[Index(is_golden)];
    for (const CommCall& call : CallsThatCommunicate(side)) communicates_.insert(call.name);
    const std::span<Node* const> nodes = nodes_[Index(is_golden)];
    constexpr size_t kAtOnce = size_t{1} << 16;
    for (size_t first = 0; first < nodes.size(); first += kAtOnce) {
      const auto some = nodes.subspan(first, std::min(kAtOnce, nodes.size() - first));
      std::vector<NodeRecord> records(some.size());
      std::vector<const Frames*> frames(some.size());
      ParallelBlocks(some.size(), kShare, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          records[i] = RecordOf(*some[i], is_golden);
          if (IsCall(records[i])) frames[i] = FramesOfNode(*side.run, some[i]->name);
        }
      });
      for (size_t i = 0; i < some.size(); ++i) {
        records[i].stack = StackOf(frames[i]);
        if (const auto* const lines = MergeLines(is_golden, some[i]->name)) {
          records[i].flags |= node_flag::kMerged;
          merged_[Index(is_golden)].emplace(static_cast<uint32_t>(first + i), lines);
        }
        place_.AddNode(is_golden, records[i]);
      }
    }
    communicates_.clear();
  }

  static std::span<const CommCall> CallsThatCommunicate(const PlaceSide& side) {
    if (side.seen == nullptr) return {};
    return side.seen->communication.scan.calls;
  }
  static bool IsCall(const NodeRecord& record) {
    return record.type != StoredType::kGroup && record.type != StoredType::kRoot;
  }

  // How ranks were merged into a call; null: they were not.
  [[nodiscard]] const std::vector<std::string>* MergeLines(bool is_golden,
                                                           const std::string& name) const {
    const auto* const seen = sides_[Index(is_golden)]->seen;
    if (seen == nullptr) return nullptr;
    const auto found = seen->merge_lines.find(name);
    return found == seen->merge_lines.end() ? nullptr : &found->second;
  }

  // All but the stack.
  [[nodiscard]] NodeRecord RecordOf(const Node& node, bool is_golden) const {
    NodeRecord record;
    record.name = node.name;
    if (node.parent != nullptr) record.parent = static_cast<uint32_t>(node.parent->order);
    if (!is_golden && node.partner != nullptr) {
      record.partner = static_cast<uint32_t>(node.partner->order);
    }
    record.type = StoredTypeOf(node.parent == nullptr, node.type);
    record.level = NodeLevelOf(node.level);
    record.micro_step = static_cast<int32_t>(node.micro_step);
    if (communicates_.contains(node.name)) record.flags |= node_flag::kCommunicates;
    if (node.is_recomputed) record.flags |= node_flag::kRecomputed;
    if (node.is_repaired) record.flags |= node_flag::kRepaired;
    if (by_hand_.contains(&node)) record.flags |= node_flag::kByHand;
    const PlaceSide& side = *sides_[Index(is_golden)];
    if (side.seen != nullptr) record.overflow = OverflowOf(*side.seen, node.name);
    if (!is_golden && comparison_ != nullptr) AddFindings(node, record);
    return record;
  }

  void AddFindings(const Node& node, NodeRecord& record) const {
    bool are_outputs_bad = false, are_inputs_bad = false;
    calls_[0].ForEach(node.order, [&](uint32_t i) {
      const CallErrors errors = ErrorsOf(*comparison_, comparison_->calls[i]);
      Raise(errors.of_outputs, record.error);
      Raise(errors.of_inputs, record.input_error);
      are_outputs_bad |= errors.are_outputs_bad;
      are_inputs_bad |= errors.are_inputs_bad;
    });
    if (are_inputs_bad) record.flags |= node_flag::kCarrier;
    if (are_outputs_bad && !are_inputs_bad) record.flags |= node_flag::kSource;
    const auto& first = comparison_->first_wrong_call;
    if (first && first->name == node.name) record.flags |= node_flag::kFirst;
  }

  static void Raise(double error, float& largest) {
    if (!std::isnan(error) && !(error <= static_cast<double>(largest))) {
      largest = static_cast<float>(error);
    }
  }

  bool DetailOf(bool is_golden, uint32_t node, NodeDetail& detail) const {
    const CallsOfNodes& calls = calls_[Index(is_golden)];
    const auto merged = merged_[Index(is_golden)].find(node);
    const bool is_merged = merged != merged_[Index(is_golden)].end();
    if (is_merged) detail.merge.assign(merged->second->begin(), merged->second->end());
    if (!calls.Has(node)) return is_merged;
    calls.ForEach(node, [&](uint32_t i) {
      if (comparison_ != nullptr) {
        AddCall(*comparison_, comparison_->calls[i], detail);
      } else {
        AddCall(sides_[Index(is_golden)]->calls[i], detail);
      }
    });
    return true;
  }

  PlaceSide* const sides_[2];
  const Comparison* const comparison_;
  PlaceBuilder& place_;
  std::vector<Node*> nodes_[2];
  std::unordered_map<uint32_t, const std::vector<std::string>*> merged_[2];  // nodes with lines
  std::vector<CallsOfNodes> calls_;
  std::unordered_set<std::string_view> communicates_;  // calls of the side that is added
  std::unordered_set<const Node*> by_hand_;
  std::unordered_map<const void*, uint32_t> stacks_;  // by the recorder's list of frames
};

}  // namespace

void SeenSide::Take(const Call& call, bool grades_overflow) {
  TakeCommunication(call, communication);
  if (auto lines = MergeLinesOf(call); !lines.empty()) {
    merge_lines.insert_or_assign(call.name, std::move(lines));
  }
  if (!grades_overflow) return;
  const auto grade = GradeOfCall(call);
  if (grade) overflow.insert_or_assign(call.name, grade->level);
}

match::TextPairs FillPlace(PlaceSide& target, PlaceSide& golden, const Comparison* comparison,
                           const match::TextPairs& by_hand, PlaceBuilder& place) {
  return PlaceFiller(target, golden, comparison, place).Fill(by_hand);
}

}  // namespace plumbline::view
