// What of a comparison a page of limited size holds.

#ifndef PLUMBLINE_REPORT_PAGE_PLAN_H_
#define PLUMBLINE_REPORT_PAGE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plumbline/compare.h"
#include "tree/read_tree.h"

namespace plumbline::report {

// Bits of a node, as docs/design/viewer.md has them.
namespace node_flag {
inline constexpr uint8_t kFirst = 1, kSource = 2, kCarrier = 4, kCommunicates = 8, kRecomputed = 16,
                         kRepaired = 32;
}  // namespace node_flag

// The nodes of one tree that a page holds: with a node all those above it.
struct PageSide {
  std::vector<const tree::Node*> nodes;  // pre-order; the first is the root
  std::vector<int32_t> places;           // in `nodes`, by Node::order; -1: left out
  std::vector<uint32_t> hidden;          // by place: children left out
  uint64_t total = 0;

  [[nodiscard]] int32_t PlaceOf(const tree::Node* node) const {
    return node == nullptr ? -1 : places[node->order];
  }
};

struct PagePlan {
  PageSide target, golden;
  std::vector<uint32_t> calls;       // with a node that is held, in recorded order
  std::vector<uint32_t> importance;  // the same, those first whose values must be there
  std::vector<uint8_t> flags;        // node_flag, by number of the call: what its rows tell
};

// The first wrong call comes before all others; then calls that are wrong without a wrong input,
// what is above both, other wrong calls, what could not be judged, the rest from the root down.
// `most_bytes`: what the packed nodes may take, about.
PagePlan PlanPage(const Comparison& comparison, const tree::ComparedTrees& trees,
                  size_t most_bytes);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_PAGE_PLAN_H_
