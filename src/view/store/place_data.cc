#include "view/store/place_data.h"

#include <algorithm>

#include "base/text/text_parts.h"
#include "tree/call_twin.h"

namespace plumbline::view {
namespace {

NodeLevel LevelAt(const OwnColumns& side, size_t i) {
  return static_cast<NodeLevel>(side.level[i]);
}

// Subtree sizes, numbers of children, depths, orders. Parents stand before their children.
void CompleteShape(OwnColumns& side) {
  const size_t count = side.name.size();
  side.size.assign(count, 1);
  side.children.assign(count, 0);
  side.depth.assign(count, 0);
  side.order.resize(count);
  for (size_t i = count; i-- > 1;) {
    side.size[side.parent[i]] += side.size[i];
    ++side.children[side.parent[i]];
  }
  for (size_t i = 1; i < count; ++i) side.depth[i] = side.depth[side.parent[i]] + 1;
  for (size_t i = 0; i < count; ++i) {
    // Done before it: all before it in pre-order but its ancestors, and all below it.
    side.order[i] = static_cast<uint32_t>(i) - side.depth[i] + side.size[i] - 1;
  }
}

// The root and groups of APIs are no calls: without counterpart they say nothing.
bool IsCall(const OwnColumns& side, size_t i) {
  const auto type = static_cast<StoredType>(side.type[i]);
  return type != StoredType::kGroup && type != StoredType::kRoot;
}

void MarkUnmatched(OwnColumns& side) {
  for (size_t i = 0; i < side.name.size(); ++i) {
    if (side.partner[i] == kNoNode && IsCall(side, i)) {
      side.level[i] = static_cast<uint8_t>(NodeLevel::kUnmatched);
    }
  }
}

// Adds to every node what is below it.
void RollUp(OwnColumns& side) {
  const size_t count = side.name.size();
  for (auto* column : {&side.errors, &side.warnings, &side.unmatched}) column->assign(count, 0);
  side.worst.assign(count, static_cast<uint8_t>(NodeLevel::kNone));
  for (size_t i = count; i-- > 1;) {
    const uint32_t parent = side.parent[i];
    const NodeLevel own = LevelAt(side, i);
    const bool counts = IsCall(side, i);
    side.errors[parent] += side.errors[i] + (counts && own == NodeLevel::kError ? 1 : 0);
    side.warnings[parent] += side.warnings[i] + (counts && own == NodeLevel::kWarning ? 1 : 0);
    side.unmatched[parent] += side.unmatched[i] + (own == NodeLevel::kUnmatched ? 1 : 0);
    for (const NodeLevel level : {own, static_cast<NodeLevel>(side.worst[i])}) {
      if (SeverityOf(level) > SeverityOf(static_cast<NodeLevel>(side.worst[parent]))) {
        side.worst[parent] = static_cast<uint8_t>(level);
      }
    }
  }
}

// Golden nodes show what their counterparts were found to be.
void MirrorLevels(OwnColumns& target, OwnColumns& golden) {
  for (size_t i = 0; i < golden.name.size(); ++i) {
    const uint32_t other = golden.partner[i];
    if (other == kNoNode) continue;
    golden.level[i] = target.level[other];
    golden.error[i] = target.error[other];
    golden.input_error[i] = target.input_error[other];
  }
}

void MirrorRollUp(const OwnColumns& target, OwnColumns& golden) {
  for (size_t i = 0; i < golden.name.size(); ++i) {
    const uint32_t other = golden.partner[i];
    if (other == kNoNode) continue;
    golden.worst[i] = target.worst[other];
    golden.errors[i] = target.errors[other];
    golden.warnings[i] = target.warnings[other];
  }
}

}  // namespace

Direction DirectionOf(std::string_view name) {
  if (name.ends_with(".forward") || name.find(".forward.") != std::string_view::npos) {
    return Direction::kForwardCall;
  }
  if (name.ends_with(".backward") || name.find(".backward.") != std::string_view::npos ||
      name.find(".parameters_grad") != std::string_view::npos) {
    return Direction::kBackwardCall;
  }
  return Direction::kNone;
}

std::string_view OperationOf(std::string_view name) {
  for (const std::string_view mark : {".forward", ".backward", ".parameters_grad"}) {
    const size_t at = name.rfind(mark);
    if (at != std::string_view::npos) name = name.substr(0, at);
  }
  for (;;) {
    const size_t dot = name.rfind('.');
    const std::string_view last = dot == std::string_view::npos ? name : name.substr(dot + 1);
    if (dot == std::string_view::npos || !IsDigits(last)) return last;
    name = name.substr(0, dot);
  }
}

StoredType StoredTypeOf(bool is_root, vis::NodeType type) {
  if (is_root) return StoredType::kRoot;
  if (type == vis::NodeType::kApi) return StoredType::kApi;
  if (type == vis::NodeType::kFused) return StoredType::kFused;
  return type == vis::NodeType::kCollection ? StoredType::kGroup : StoredType::kModule;
}

NodeLevel NodeLevelOf(std::optional<vis::Level> level) {
  constexpr NodeLevel kLevels[] = {NodeLevel::kPass, NodeLevel::kWarning, NodeLevel::kError};
  return level ? kLevels[static_cast<size_t>(*level)] : NodeLevel::kNone;
}

StoredOverflow StoredOverflowOf(std::string_view name) {
  for (const StoredOverflow overflow :
       {StoredOverflow::kMedium, StoredOverflow::kHigh, StoredOverflow::kCritical}) {
    if (name == StoredOverflowName(overflow)) return overflow;
  }
  return StoredOverflow::kNone;
}

int SeverityOf(NodeLevel level) {
  static constexpr int kSeverities[kNodeLevels] = {0, 1, 3, 4, 2};
  return kSeverities[static_cast<size_t>(level)];
}

uint32_t PlaceData::AddBlock(Result<PackedBlock> block) {
  const Result<uint32_t> number = block ? sink(*block) : Result<uint32_t>(block.error());
  if (number) return *number;
  if (status) status = number.error();
  return 0;
}

void PlaceData::Complete() {
  for (OwnColumns* side : {&target, &golden}) CompleteShape(*side);
  if (!target.name.empty() && !golden.name.empty()) {
    golden.partner.assign(golden.name.size(), kNoNode);
    for (size_t i = 0; i < target.name.size(); ++i) {
      uint32_t& other = target.partner[i];
      // A counterpart of two nodes is that of the first.
      if (other >= golden.name.size() || golden.partner[other] != kNoNode) other = kNoNode;
      if (other != kNoNode) golden.partner[other] = static_cast<uint32_t>(i);
    }
    for (OwnColumns* side : {&target, &golden}) MarkUnmatched(*side);
    MirrorLevels(target, golden);
  } else {
    for (OwnColumns* side : {&target, &golden}) std::ranges::fill(side->partner, kNoNode);
  }
  for (OwnColumns* side : {&target, &golden}) RollUp(*side);
  MirrorRollUp(target, golden);
}

}  // namespace plumbline::view
