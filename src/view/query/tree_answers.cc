#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/text/text_parts.h"
#include "plumbline/compare.h"
#include "view/query/question_table.h"
#include "view/store/call_details.h"
#include "view/store/name_index.h"

namespace plumbline::view {
namespace {

// Lists that one question may ask for.
constexpr size_t kMostLists = 1000;

void AddPlace(const ResultStore& store, size_t index, const json::Value* facts, JsonAnswer& out) {
  const StorePlace& place = store.places()[index];
  const auto root = [](uint32_t node) { return node == kNoNode ? -1 : int64_t{node}; };
  out.Open('{').Key("step").Integer(place.step).Key("rank").Integer(place.rank);
  out.Key("target_root").Integer(root(place.target)).Key("golden_root").Integer(root(place.golden));
  out.Key("nodes").Integer(place.target_count).Key("golden_nodes").Integer(place.golden_count);
  for (const std::string_view key : {"micro_steps", "counts", "overflows", "answer", "first"}) {
    const json::Value* const fact = facts == nullptr ? nullptr : facts->Find(key);
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
  shown.Put("id", json::Value(int64_t{-1}));
  const json::Value* const name = first->Find("name");
  const json::Value* const place = first->Find("place");
  if (name != nullptr && name->AsText() != nullptr && place != nullptr && place->AsNatural()) {
    for (const bool is_golden : {true, false}) {
      const auto node = store.Find(*place->AsNatural(), is_golden, *name->AsText());
      if (node) shown.Put("id", json::Value(int64_t{*node}));
    }
  }
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
  std::string_view inner = shape;
  if (inner.size() < 2 || (inner.front() != '[' && inner.front() != '(')) {
    out.Null();
    return;
  }
  inner = inner.substr(1, inner.size() - 2);
  std::vector<int64_t> sizes;
  for (std::string_view part : SplitAt(inner, ',')) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    if (part.empty()) continue;
    int64_t size = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (error != std::errc() || end != part.data() + part.size()) {
      out.Null();
      return;
    }
    sizes.push_back(size);
  }
  out.Open('[');
  for (const int64_t size : sizes) out.Integer(size);
  out.Close(']');
}

void AddScalar(const StoredScalar& scalar, JsonAnswer& out) {
  if (const auto* truth = std::get_if<bool>(&scalar)) {
    out.Truth(*truth);
  } else if (const auto* integer = std::get_if<int64_t>(&scalar)) {
    out.Integer(*integer);
  } else if (const auto* real = std::get_if<double>(&scalar)) {
    out.Number(*real);
  } else if (const auto* text = std::get_if<std::string_view>(&scalar)) {
    out.Text(*text);
  } else {
    out.Null();
  }
}

void AddSide(const std::optional<ValueSide>& side, JsonAnswer& out) {
  if (!side) {
    out.Null();
    return;
  }
  static constexpr std::string_view kStatisticNames[] = {"max", "min", "mean", "norm"};
  out.Open('{').Key("type").Text(side->type).Key("dtype").Text(side->dtype);
  AddShape(side->shape, out.Key("shape"));
  for (size_t i = 0; i < 4; ++i) AddScalar(side->statistics[i], out.Key(kStatisticNames[i]));
  AddScalar(side->value, out.Key("value"));
  out.Key("md5").Text(side->md5);
  out.Key("requires_grad");
  if (side->requires_grad) {
    out.Truth(*side->requires_grad);
  } else {
    out.Null();
  }
  out.Key("data_name").Text(side->data_name).Close('}');
}

void AddNumberOrNull(double number, JsonAnswer& out) {
  if (number == number) {
    out.Number(number);
  } else {
    out.Null();
  }
}

void AddValue(const StoredValue& value, JsonAnswer& out) {
  out.Open('{').Key("name").Text(value.name).Key("role").Text(ValueRoleName(value.role));
  AddSide(value.target, out.Key("target"));
  AddSide(value.golden, out.Key("golden"));
  out.Key("verdict").Text(value.verdict).Key("reason").Text(value.reason);
  out.Key("reason_text").Text(value.reason_text);
  AddNumberOrNull(value.error, out.Key("error"));
  AddNumberOrNull(value.explained, out.Key("explained"));
  out.Key("metrics").Open('{');
  for (const auto& [name, number] : value.metrics) out.Key(name).Number(number);
  out.Close('}').Key("notes").Texts(value.notes).Close('}');
}

bool ComparesStatistics(const ResultStore& store) {
  const json::Value* const mode = store.facts().Find("mode");
  const json::Value* const source = store.facts().Find("source");
  const auto is = [](const json::Value* value, std::string_view text) {
    return value != nullptr && value->AsText() != nullptr && *value->AsText() == text;
  };
  return is(mode, CompareModeName(CompareMode::kStatistics)) && is(source, "plumbline");
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
  out.Open('{').Key("etag").Text(store.etag());
  const json::Value* const facts = store.facts().Find("places");
  const json::Value::List* const list = facts == nullptr ? nullptr : facts->AsList();
  std::set<int64_t> steps, ranks;
  int64_t micro_steps = 1;
  for (size_t i = 0; i < store.places().size(); ++i) {
    steps.insert(store.places()[i].step);
    ranks.insert(store.places()[i].rank);
    const json::Value* const count =
        list == nullptr || i >= list->size() ? nullptr : (*list)[i].Find("micro_steps");
    if (count != nullptr) micro_steps = std::max(micro_steps, count->AsInteger().value_or(1));
  }
  for (const std::string_view key : store.facts().Keys()) {
    if (key == "places" || key == "first") continue;
    out.Key(key).Raw(store.facts().Find(key)->Text());
  }
  AddFirstCall(store, out.Key("first"));
  const auto add_numbers = [&](std::string_view key, const std::set<int64_t>& numbers) {
    out.Key(key).Open('[');
    for (const int64_t number : numbers) out.Integer(number);
    out.Close(']');
  };
  add_numbers("steps", steps);
  add_numbers("ranks", ranks);
  out.Key("micro_steps").Integer(micro_steps).Key("places").Open('[');
  for (size_t i = 0; i < store.places().size(); ++i) {
    AddPlace(store, i, list == nullptr || i >= list->size() ? nullptr : &(*list)[i], out);
  }
  out.Close(']').Close('}');
  return out.Take();
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
    out.Open('{').Key("node").Integer(node).Key("total").Integer(static_cast<int64_t>(shown.total));
    out.Key("offset").Integer(static_cast<int64_t>(page.offset)).Key("rows").Open('{');
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
  out.Close(']').Close('}');
  return out.Take();
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
  out.Open('{').Key("exact").Truth(found.is_exact).Key("rows").Open('{');
  NodeRows::AddFields(out);
  out.Key("rows").Open('[');
  for (const uint32_t node : PathOf(question.store, found.node)) {
    rows.Add(node, IndexOf(question.store, node), out);
  }
  out.Close(']').Close('}').Close('}');
  return out.Take();
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
  out.Open('{').Key("row");
  rows.AddTable({node}, out);
  out.Key("partner_row");
  if (partner == kNoNode) {
    out.Null();
  } else {
    rows.AddTable({partner}, out);
  }
  out.Key("path").Open('[');
  for (const uint32_t above : PathOf(store, node)) out.Text(store.Name(above));
  out.Close(']');
  const auto stack_of = [&](uint32_t of) {
    return of == kNoNode ? std::vector<std::string_view>() : store.Stack(of);
  };
  out.Key("stack").Texts(stack_of(is_golden ? partner : node));
  out.Key("golden_stack").Texts(stack_of(is_golden ? node : partner));
  out.Key("pairing").Text(detail.pairing).Key("verdict").Text(detail.verdict);
  out.Key("reason").Text(detail.reason).Key("reason_text").Text(detail.reason_text);
  out.Key("merge").Texts(detail.merge).Key("values").Open('[');
  for (const StoredValue& value : detail.values) AddValue(value, out);
  out.Close(']').Close('}');
  return out.Take();
}

Result<std::string> AnswerFlow(const Question& question) {
  PL_TRY_ASSIGN(const uint32_t node, question.ReadNode());
  PL_TRY_ASSIGN(const Question::Page page, question.ReadPage());
  const ShownChildren shown = ChildrenOf(question.store, node, -1, page);
  const NodeRows rows(question, HitsOfQuestion(question));
  JsonAnswer out;
  out.Open('{').Key("total").Integer(static_cast<int64_t>(shown.total)).Key("rows").Open('{');
  NodeRows::AddFields(out);
  out.Key("rows").Open('[');
  for (const auto& [child, position] : shown.page) {
    if (out.size() > MostBytes(page.limit)) break;
    rows.Add(child, static_cast<int64_t>(position), out);
  }
  out.Close(']').Close('}').Close('}');
  return out.Take();
}

}  // namespace plumbline::view
