#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/text/json_members.h"
#include "base/text/text_parts.h"
#include "plumbline/compare.h"
#include "view/query/question_table.h"
#include "view/store/call_details.h"
#include "view/store/name_index.h"

namespace plumbline::view {
namespace {

// Lists that one question may ask for.
constexpr size_t kMostLists = 1000;

void AddPlace(const ResultStore& store, size_t index, JsonAnswer& out) {
  const StorePlace& place = store.places()[index];
  out.Open('{').Members("step", place.step, "rank", place.rank, "target_root",
                        IdOrNone(place.target), "golden_root", IdOrNone(place.golden), "nodes",
                        place.target_count, "golden_nodes", place.golden_count);
  for (const std::string_view key : {"micro_steps", "counts", "overflows", "answer", "first"}) {
    const json::Value* const fact = store.PlaceFacts(index).Find(key);
    out.Key(key).Raw(fact == nullptr ? "null" : fact->Text());
  }
  out.Close('}');
}

// What the facts say of the first wrong call, with the node's id.
void AddFirstCall(const ResultStore& store, JsonAnswer& out) {
  const json::Value* const first = store.facts().Find("first");
  if (first == nullptr || !first->is_object()) {
    out.Null();
    return;
  }
  json::Value shown = *first;
  shown.Put("id", json::Value(IdOrNone(store.FirstCall(-1).value_or(kNoNode))));
  out.Raw(shown.Text());
}

Result<std::vector<uint32_t>> ReadNodes(const Question& question) {
  std::vector<uint32_t> nodes;
  for (const std::string_view text : SplitAt(question.parameters.Text("node"), ',')) {
    Parameters one;
    one.Set("node", std::string(text));
    PL_TRY_ASSIGN(const uint32_t node, (Question{question.store, one, nullptr}.ReadNode()));
    nodes.push_back(node);
    if (nodes.size() <= kMostLists) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("node: more than {} nodes at once", kMostLists));
  }
  return nodes;
}

// Hits of the parameter `q`; null without one, or for a faulty one, which `find` explains.
std::shared_ptr<const QueryHits> HitsOfQuestion(const Question& question) {
  const std::string query(question.parameters.Text("q"));
  if (query.empty()) return nullptr;
  const ParsedQuery parsed = ParseQuery(query);
  return parsed.fault ? nullptr : HitsOf(question.store, query, parsed.terms);
}

// The position of a node among its parent's children; -1 for roots.
int64_t IndexOf(const ResultStore& store, uint32_t node) {
  const uint32_t parent = store.nodes().parent[node];
  if (parent == kNoNode) return -1;
  int64_t index = -1;
  ForEachChild(store, parent, [&](uint32_t child, size_t position) {
    if (child == node) index = static_cast<int64_t>(position);
    return child < node;
  });
  return index;
}

// The node that is most like an ancestor among those whose names begin with `prefix`.
std::optional<uint32_t> HighestBelow(const ResultStore& store, const StorePlace& place,
                                     bool is_golden, const std::string& prefix) {
  constexpr size_t kMostLooked = 4096;
  const uint32_t begin = is_golden ? place.golden : place.target;
  const uint32_t count = is_golden ? place.golden_count : place.target_count;
  const NodeColumns& nodes = store.nodes();
  std::optional<uint32_t> best;
  size_t name = store.names().LowerBound(prefix);
  for (size_t looked = 0; looked < kMostLooked && name < store.names().size(); ++looked, ++name) {
    if (!store.names().At(name).starts_with(prefix)) break;
    const auto by_name = store.by_name();
    const auto name_of = [&](uint32_t node) { return nodes.name[node]; };
    const auto id = static_cast<uint32_t>(name);
    const auto last = std::ranges::upper_bound(by_name, id, {}, name_of);
    for (auto at = std::ranges::lower_bound(by_name, id, {}, name_of); at != last; ++at) {
      const uint32_t node = *at;
      if (node - begin >= count) continue;
      const bool is_module = nodes.type[node] == static_cast<uint8_t>(StoredType::kModule);
      if (is_module && (!best || nodes.depth[node] < nodes.depth[*best])) best = node;
    }
  }
  return best;
}

struct FoundNode {
  uint32_t node = 0;
  bool is_exact = false;
};

// The node with the name, or the nearest ancestor that exists: by shortening it part by part.
Result<FoundNode> FindByName(const Question& question) {
  const ResultStore& store = question.store;
  PL_TRY_ASSIGN(const int64_t index, question.ReadPlace());
  PL_TRY_ASSIGN(const uint32_t sides, question.ReadSides());
  if (store.places().empty()) return Error(ErrorCode::kNotFound, "the result has no nodes");
  const auto at = static_cast<size_t>(std::max<int64_t>(index, 0));
  const StorePlace& place = store.places()[at];
  const bool is_golden =
      place.target_count == 0 || (sides == kSideGolden && place.golden_count > 0);
  std::string name(question.parameters.Text("name"));
  if (const auto node = store.Find(at, is_golden, name)) return FoundNode{*node, true};
  for (size_t dot = name.rfind('.'); dot != std::string::npos; dot = name.rfind('.')) {
    name.resize(dot);
    const bool is_whole_kind = name.find('.') == std::string::npos;
    if (is_whole_kind) break;  // "Module" alone says nothing
    if (const auto node = HighestBelow(store, place, is_golden, name + '.')) {
      return FoundNode{*node, false};
    }
  }
  return FoundNode{is_golden ? place.golden : place.target, false};
}

void AddShape(std::string_view shape, JsonAnswer& out) {
  std::optional<std::vector<int64_t>> sizes;
  if (shape.size() >= 2 && (shape.front() == '[' || shape.front() == '(')) {
    sizes.emplace();
    for (std::string_view part : SplitAt(shape.substr(1, shape.size() - 2), ',')) {
      while (part.starts_with(' ')) part.remove_prefix(1);
      if (part.empty()) continue;
      const std::optional<int64_t> size = ParseInteger(part);
      if (!size) {
        out.Null();
        return;
      }
      sizes->push_back(*size);
    }
  }
  out.Put(sizes);
}

void AddSide(const std::optional<ValueSide>& side, JsonAnswer& out) {
  if (!side) {
    out.Null();
    return;
  }
  const auto& [max, min, mean, norm] = side->statistics;
  out.Object(
      "type", side->type, "dtype", side->dtype, "shape", [&] { AddShape(side->shape, out); }, "max",
      max, "min", min, "mean", mean, "norm", norm, "value", side->value, "md5", side->md5,
      "requires_grad", side->requires_grad, "data_name", side->data_name);
}

void AddValue(const StoredValue& value, JsonAnswer& out) {
  const auto number = [](double held) {
    return std::isnan(held) ? std::nullopt : std::optional(held);
  };
  const auto metrics = [&] {
    out.Open('{');
    for (const auto& [name, held] : value.metrics) out.Members(name, held);
    out.Close('}');
  };
  out.Object(
      "name", value.name, "role", ValueRoleName(value.role), "target",
      [&] { AddSide(value.target, out); }, "golden", [&] { AddSide(value.golden, out); }, "verdict",
      value.verdict, "reason", value.reason, "reason_text", value.reason_text, "error",
      number(value.error), "explained", number(value.explained), "metrics", metrics, "notes",
      value.notes);
}

bool ComparesStatistics(const ResultStore& store) {
  return json::TextAt(store.facts(), "mode") == CompareModeName(CompareMode::kStatistics) &&
         json::TextAt(store.facts(), "source") == "plumbline";
}

// Positions of a list that are shown: those of one micro step, or all.
struct ShownChildren {
  std::vector<std::pair<uint32_t, size_t>> page;  // node and position
  size_t total = 0;
};

ShownChildren ChildrenOf(const ResultStore& store, uint32_t node, int64_t micro_step,
                         const Question::Page& page) {
  ShownChildren shown;
  if (micro_step < 0) shown.total = store.nodes().children[node];
  size_t seen = 0;
  ForEachChild(store, node, [&](uint32_t child, size_t position) {
    if (micro_step >= 0 && store.nodes().micro_step[child] != micro_step) return true;
    if (seen >= page.offset && seen < page.offset + page.limit) {
      shown.page.emplace_back(child, position);
    }
    ++seen;
    return micro_step >= 0 || seen < page.offset + page.limit;
  });
  if (micro_step >= 0) shown.total = seen;
  return shown;
}

Result<int64_t> ReadMicroStep(const Question& question) {
  return question.parameters.Number("ms", -1, -1, INT32_MAX);
}

}  // namespace

Result<std::string> AnswerMeta(const Question& question) {
  const ResultStore& store = question.store;
  JsonAnswer out;
  out.Open('{').Members("etag", store.etag());
  std::set<int64_t> steps, ranks;
  uint64_t micro_steps = 1;
  for (size_t i = 0; i < store.places().size(); ++i) {
    steps.insert(store.places()[i].step);
    ranks.insert(store.places()[i].rank);
    micro_steps = std::max(micro_steps, json::NaturalAt(store.PlaceFacts(i), "micro_steps"));
  }
  for (const std::string_view key : store.facts().Keys()) {
    if (key == "places" || key == "first") continue;
    out.Key(key).Raw(store.facts().Find(key)->Text());
  }
  AddFirstCall(store, out.Key("first"));
  out.Members("steps", steps, "ranks", ranks, "micro_steps", micro_steps).Key("places").Open('[');
  for (size_t i = 0; i < store.places().size(); ++i) AddPlace(store, i, out);
  return out.Close(']').Close('}').Take();
}

Result<std::string> AnswerChildren(const Question& question) {
  PL_TRY_ASSIGN(const std::vector<uint32_t> nodes, ReadNodes(question));
  PL_TRY_ASSIGN(const Question::Page page, question.ReadPage());
  PL_TRY_ASSIGN(const int64_t micro_step, ReadMicroStep(question));
  const NodeRows rows(question, HitsOfQuestion(question));
  JsonAnswer out;
  out.Open('{').Key("lists").Open('[');
  const size_t most = MostBytes(page.limit);
  for (const uint32_t node : nodes) {
    const ShownChildren shown = ChildrenOf(question.store, node, micro_step, page);
    out.Open('{').Members("node", node, "total", shown.total, "offset", page.offset).Key("rows");
    out.Open('{');
    NodeRows::AddFields(out);
    out.Key("rows").Open('[');
    JsonAnswer row;
    for (const auto& [child, position] : shown.page) {
      row = JsonAnswer();
      rows.Add(child, static_cast<int64_t>(position), row);
      // The first row of the first list is always there, so that a page gets on.
      const bool is_only = &node == nodes.data() && &child == &shown.page.front().first;
      if (!is_only && out.size() + row.size() > most) break;
      out.Raw(row.Take());
    }
    out.Close(']').Close('}').Close('}');
  }
  return out.Close(']').Close('}').Take();
}

Result<std::string> AnswerPath(const Question& question) {
  FoundNode found;
  if (question.parameters.Has("name")) {
    PL_TRY_ASSIGN(found, FindByName(question));
  } else {
    PL_TRY_ASSIGN(found.node, question.ReadNode());
    found.is_exact = true;
  }
  const NodeRows rows(question, HitsOfQuestion(question));
  JsonAnswer out;
  const auto add = [&](uint32_t node) { rows.Add(node, IndexOf(question.store, node), out); };
  out.Open('{').Members("exact", found.is_exact).Key("rows");
  AddTable(PathOf(question.store, found.node), SIZE_MAX, add, out);
  return out.Close('}').Take();
}

Result<std::string> AnswerNode(const Question& question) {
  const ResultStore& store = question.store;
  PL_TRY_ASSIGN(const uint32_t node, question.ReadNode());
  PL_TRY_ASSIGN(NodeDetail detail, store.Detail(node));
  if (ComparesStatistics(store)) std::ranges::for_each(detail.values, AddDifferences);
  const bool is_golden = store.IsGolden(node);
  const uint32_t partner = store.nodes().partner[node];
  const NodeRows rows(question);
  JsonAnswer out;
  const auto row_of = [&](uint32_t of) {
    return [&out, &rows, of] {
      if (of == kNoNode) return void(out.Null());
      AddTable(
          std::array{of}, 0, [&](uint32_t shown) { rows.Add(shown, -1, out); }, out);
    };
  };
  const auto path = [&] {
    out.List(PathOf(store, node), [&](uint32_t above) { out.Text(store.Name(above)); });
  };
  const auto stack_of = [&](uint32_t of) {
    return of == kNoNode ? std::vector<std::string_view>() : store.Stack(of);
  };
  const auto values = [&] {
    out.List(detail.values, [&](const StoredValue& value) { AddValue(value, out); });
  };
  out.Object("row", row_of(node), "partner_row", row_of(partner), "path", path, "stack",
             stack_of(is_golden ? partner : node), "golden_stack",
             stack_of(is_golden ? node : partner), "pairing", detail.pairing, "verdict",
             detail.verdict, "reason", detail.reason, "reason_text", detail.reason_text, "merge",
             detail.merge, "values", values);
  return out.Take();
}

Result<std::string> AnswerFlow(const Question& question) {
  PL_TRY_ASSIGN(const uint32_t node, question.ReadNode());
  PL_TRY_ASSIGN(const Question::Page page, question.ReadPage());
  const ShownChildren shown = ChildrenOf(question.store, node, -1, page);
  const NodeRows rows(question, HitsOfQuestion(question));
  JsonAnswer out;
  const auto add = [&](const std::pair<uint32_t, size_t>& child) {
    rows.Add(child.first, static_cast<int64_t>(child.second), out);
  };
  out.Open('{').Members("total", shown.total).Key("rows");
  AddTable(shown.page, MostBytes(page.limit), add, out);
  return out.Close('}').Take();
}

}  // namespace plumbline::view
