#include "report/page_plan.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "measure/compared_row.h"

namespace plumbline::report {
namespace {

using tree::ModelGraph;
using tree::Node;

// How urgently a page needs a call.
enum Tier : uint8_t { kFirst, kSource, kAbove, kWrong, kNotJudged, kRest, kTiers };

// A node and its call, packed, without the name; names share most of their text. Measured on
// recordings of transformers at level mix.
constexpr size_t kNodeBytes = 18, kNameShare = 10;

struct CallFacts {
  Tier tier = kRest;
  uint8_t flags = 0;
};

CallFacts FactsOf(const Comparison& comparison, const ComparedCall& call) {
  bool are_inputs_bad = false, are_outputs_bad = false;
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    (measure::IsInput(row) ? are_inputs_bad : are_outputs_bad) |= measure::IsBad(row.verdict);
  }
  CallFacts facts;
  if (are_inputs_bad) {
    facts = {kWrong, node_flag::kCarrier};
  } else if (are_outputs_bad || tree::LevelOf(comparison, call) == vis::Level::kError) {
    facts = {kSource, node_flag::kSource};
  } else if (!call.paired() || call.verdict == Verdict::kNotComparable) {
    facts.tier = kNotJudged;
  }
  if (call.name().starts_with("Distributed.")) facts.flags |= node_flag::kCommunicates;
  const auto& first = comparison.first_wrong_call;
  if (first && (call.target_name == first->name || call.golden_name == first->name)) {
    facts = {kFirst, static_cast<uint8_t>(facts.flags | node_flag::kFirst)};
  }
  return facts;
}

class PlanMaker {
 public:
  PlanMaker(const Comparison& comparison, const tree::ComparedTrees& trees, size_t most_bytes)
      : comparison_(comparison),
        trees_(trees),
        most_bytes_(most_bytes),
        held_{std::vector<bool>(trees.target.nodes.size()),
              std::vector<bool>(trees.golden.nodes.size())} {}

  PagePlan Make() {
    GradeCalls();
    SortCalls();
    Hold(trees_.target.root());
    Hold(trees_.golden.root());
    for (const uint32_t call : order_) {
      const bool is_full = bytes_ > most_bytes_ && tiers_[call] > kFirst;
      if (is_full || tiers_[call] == kRest) break;
      const tree::CallNodes& nodes = trees_.calls[call];
      for (const Node* node : {nodes.target, nodes.golden}) {
        if (node != nullptr) Hold(*node);
      }
    }
    HoldFromTheRoot();
    PagePlan plan;
    plan.target = SideOf(trees_.target, held_[0]);
    plan.golden = SideOf(trees_.golden, held_[1]);
    ChooseCalls(plan);
    plan.flags = std::move(flags_);
    return plan;
  }

 private:
  void GradeCalls() {
    std::vector<bool> above(trees_.target.nodes.size());
    for (size_t i = 0; i < comparison_.calls.size(); ++i) {
      const CallFacts facts = FactsOf(comparison_, comparison_.calls[i]);
      tiers_.push_back(facts.tier);
      flags_.push_back(facts.flags);
      if (facts.tier > kSource) continue;
      const Node* node = trees_.calls[i].target;
      for (; node != nullptr && !above[node->order]; node = node->parent) above[node->order] = true;
    }
    for (size_t i = 0; i < tiers_.size(); ++i) {
      const Node* const node = trees_.calls[i].target;
      if (node != nullptr && above[node->order]) tiers_[i] = std::min<uint8_t>(tiers_[i], kAbove);
    }
  }

  void SortCalls() {
    order_.resize(tiers_.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<uint32_t>(i);
    std::ranges::stable_sort(order_, {}, [&](uint32_t call) { return tiers_[call]; });
  }

  [[nodiscard]] bool IsOfTarget(const Node& node) const {
    const Node* top = &node;
    while (top->parent != nullptr) top = top->parent;
    return top == &trees_.target.root();
  }

  void HoldWithAncestors(const Node& node, bool of_target) {
    std::vector<bool>& held = held_[of_target ? 0 : 1];
    for (const Node* at = &node; at != nullptr && !held[at->order]; at = at->parent) {
      held[at->order] = true;
      const bool shares_name =
          !of_target && at->partner != nullptr && at->partner->name == at->name;
      bytes_ += kNodeBytes + (shares_name ? 0 : at->name.size() / kNameShare);
    }
  }
  void Hold(const Node& node) {
    const bool of_target = IsOfTarget(node);
    HoldWithAncestors(node, of_target);
    if (node.partner != nullptr) HoldWithAncestors(*node.partner, !of_target);
  }

  // The rest, level by level, as far as there is room.
  void HoldFromTheRoot() {
    std::vector<const Node*> level = {&trees_.target.root(), &trees_.golden.root()}, next;
    for (; !level.empty(); level.swap(next)) {
      next.clear();
      for (const Node* const node : level) {
        if (bytes_ > most_bytes_) return;
        Hold(*node);
        next.insert(next.end(), node->children.begin(), node->children.end());
      }
    }
  }

  static PageSide SideOf(const ModelGraph& graph, const std::vector<bool>& held) {
    PageSide side;
    side.total = graph.nodes.size();
    side.places.assign(graph.nodes.size(), -1);
    std::vector<const Node*> open = {&graph.root()};
    while (!open.empty()) {
      const Node* const node = open.back();
      open.pop_back();
      side.places[node->order] = static_cast<int32_t>(side.nodes.size());
      side.nodes.push_back(node);
      side.hidden.push_back(0);
      for (size_t i = node->children.size(); i-- > 0;) {
        const Node* const child = node->children[i];
        if (held[child->order]) {
          open.push_back(child);
        } else {
          ++side.hidden.back();
        }
      }
    }
    return side;
  }

  void ChooseCalls(PagePlan& plan) const {
    std::vector<bool> is_held(comparison_.calls.size());
    for (uint32_t i = 0; i < comparison_.calls.size(); ++i) {
      const tree::CallNodes& nodes = trees_.calls[i];
      is_held[i] = plan.target.PlaceOf(nodes.target) >= 0 || plan.golden.PlaceOf(nodes.golden) >= 0;
      if (is_held[i]) plan.calls.push_back(i);
    }
    for (const uint32_t call : order_) {
      if (is_held[call]) plan.importance.push_back(call);
    }
  }

  const Comparison& comparison_;
  const tree::ComparedTrees& trees_;
  const size_t most_bytes_;
  size_t bytes_ = 0;
  std::array<std::vector<bool>, 2> held_;  // by Node::order; the target's, the golden ones
  std::vector<uint8_t> tiers_, flags_;     // by call
  std::vector<uint32_t> order_;            // calls
};

}  // namespace

PagePlan PlanPage(const Comparison& comparison, const tree::ComparedTrees& trees,
                  size_t most_bytes) {
  return PlanMaker(comparison, trees, most_bytes).Make();
}

}  // namespace plumbline::report
