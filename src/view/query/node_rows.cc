#include "view/query/node_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "view/store/place_data.h"

namespace plumbline::view {
namespace {

constexpr std::string_view kFields[] = {
    "id",    "parent", "partner",     "name",     "type",  "children", "size",     "depth",
    "index", "order",  "level",       "overflow", "worst", "errors",   "warnings", "unmatched",
    "ms",    "error",  "input_error", "flags",    "hits",  "is_hit",   "change"};

}  // namespace

std::string_view NodeChangeName(NodeChange change) {
  static constexpr std::string_view kNames[kNodeChanges] = {"same", "better", "worse", "new"};
  return kNames[static_cast<size_t>(change)];
}

NodeChange ChangeBetween(uint8_t now, uint8_t before) {
  const int change =
      SeverityOf(static_cast<NodeLevel>(now)) - SeverityOf(static_cast<NodeLevel>(before));
  if (change == 0) return NodeChange::kSame;
  return change < 0 ? NodeChange::kBetter : NodeChange::kWorse;
}

NodeChange ChangeOf(const ResultStore& store, uint32_t node, const ResultStore& base) {
  const StorePlace& place = store.places()[store.PlaceOf(node)];
  const auto other = std::ranges::find_if(base.places(), [&](const StorePlace& candidate) {
    return candidate.step == place.step && candidate.rank == place.rank;
  });
  if (other == base.places().end()) return NodeChange::kNew;
  const auto found = base.Find(static_cast<size_t>(other - base.places().begin()),
                               store.IsGolden(node), store.Name(node));
  if (!found) return NodeChange::kNew;
  return ChangeBetween(store.nodes().level[node], base.nodes().level[*found]);
}

Result<Question::Page> Question::ReadPage() const {
  constexpr int64_t kUsual = 100, kMost = 10'000;
  PL_TRY_ASSIGN(const int64_t offset, parameters.Number("offset", 0, 0, kNoNode));
  PL_TRY_ASSIGN(const int64_t limit, parameters.Number("limit", kUsual, 0, kMost));
  return Page{static_cast<size_t>(offset), static_cast<size_t>(limit)};
}

Result<uint32_t> Question::ReadNode() const {
  PL_TRY_ASSIGN(const int64_t node, parameters.Number("node", -1, 0, kNoNode));
  if (node >= 0 && node < int64_t{store.size()}) return static_cast<uint32_t>(node);
  if (node < 0) {
    return Error(ErrorCode::kInvalidArgument, "node: expected the id of a node, got nothing");
  }
  return Error(ErrorCode::kNotFound,
               fmt::format("node {}: there is no such node; the result was made again. Reload the "
                           "page",
                           node));
}

Result<int64_t> Question::ReadPlace() const {
  return parameters.Number("place", -1, -1, static_cast<int64_t>(store.places().size()) - 1);
}

Result<uint32_t> Question::ReadSides() const {
  const std::string_view side = parameters.Text("side");
  if (side.empty()) return kSideTarget | kSideGolden;
  if (side == "target") return uint32_t{kSideTarget};
  if (side == "golden") return uint32_t{kSideGolden};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("side: expected target or golden, got '{}'", side.substr(0, 40)));
}

void NodeRows::AddFields(JsonAnswer& out, const std::vector<std::string_view>& more) {
  out.Key("fields").Open('[');
  for (const std::string_view field : kFields) out.Text(field);
  for (const std::string_view field : more) out.Text(field);
  out.Close(']');
}

void NodeRows::Open(uint32_t node, int64_t index, JsonAnswer& out) const {
  const NodeColumns& at = store_.nodes();
  out.Open('[')
      .Integer(node)
      .Integer(IdOrNone(at.parent[node]))
      .Integer(IdOrNone(at.partner[node]));
  out.Text(store_.Name(node)).Text(StoredTypeName(static_cast<StoredType>(at.type[node])));
  out.Integer(at.children[node]).Integer(at.size[node]).Integer(at.depth[node]).Integer(index);
  out.Integer(at.order[node]).Text(NodeLevelName(static_cast<NodeLevel>(at.level[node])));
  out.Text(StoredOverflowName(static_cast<StoredOverflow>(at.overflow[node])));
  out.Text(NodeLevelName(static_cast<NodeLevel>(at.worst[node]))).Integer(at.errors[node]);
  out.Integer(at.warnings[node]).Integer(at.unmatched[node]).Integer(at.micro_step[node]);
  out.Error(at.error[node]).Error(at.input_error[node]).Integer(at.flags[node]);
  out.Integer(hits_ == nullptr ? -1 : int64_t{hits_->CountIn(node, at.size[node])});
  out.Truth(hits_ != nullptr && hits_->Has(node));
  out.Text(base_ == nullptr ? std::string_view() : NodeChangeName(ChangeOf(store_, node, *base_)));
}

size_t MostBytes(size_t limit) {
  constexpr size_t kOfRow = 200, kUsual = 19'500;  // and the fields
  return std::max(kUsual, limit * kOfRow);
}

std::vector<uint32_t> PathOf(const ResultStore& store, uint32_t node) {
  std::vector<uint32_t> path;
  // Parents come before their children, so that this ends.
  for (uint32_t at = node; at != kNoNode; at = store.nodes().parent[at]) {
    if (!path.empty() && at >= path.back()) break;
    path.push_back(at);
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace plumbline::view
