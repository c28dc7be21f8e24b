#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "view/query/question_table.h"
#include "view/store/place_data.h"

namespace plumbline::view {
namespace {

enum class FindOrder : uint8_t { kExecution, kName, kError };

Result<FindOrder> ReadOrder(const Question& question) {
  const std::string_view order = question.parameters.Text("order");
  if (order.empty() || order == "execution") return FindOrder::kExecution;
  if (order == "name") return FindOrder::kName;
  if (order == "error") return FindOrder::kError;
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("order: expected execution, name or error, got '{}'", order.substr(0, 40)));
}

// A page of found nodes, and where the next one begins; 0: there is none.
struct FoundPage {
  std::vector<uint32_t> nodes;
  std::vector<size_t> next;  // behind each node
  bool is_last = false;
};

FoundPage PageInList(std::span<const uint32_t> list, const QueryHits& hits, size_t from,
                     size_t limit) {
  FoundPage page;
  for (size_t i = from; i < list.size(); ++i) {
    if (!hits.Has(list[i])) continue;
    if (page.nodes.size() == limit) return page;
    page.nodes.push_back(list[i]);
    page.next.push_back(i + 1);
  }
  page.is_last = true;
  return page;
}

// The largest errors first; nodes without one last, by id.
FoundPage PageByError(const ResultStore& store, const QueryHits& hits, size_t from, size_t limit) {
  std::vector<uint32_t> nodes;
  nodes.reserve(hits.total());
  for (size_t word = 0; word < hits.bits().size(); ++word) {
    for (uint64_t bits = hits.bits()[word]; bits != 0; bits &= bits - 1) {
      nodes.push_back(static_cast<uint32_t>(word * 64) +
                      static_cast<uint32_t>(std::countr_zero(bits)));
    }
  }
  const auto is_before = [&](uint32_t a, uint32_t b) {
    const float x = store.nodes().error[a], y = store.nodes().error[b];
    if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
    return x != y && !std::isnan(x) ? x > y : a < b;
  };
  FoundPage page;
  from = std::min(from, nodes.size());
  const size_t end = from + std::min(limit, nodes.size() - from);
  const auto at = [&](size_t i) { return nodes.begin() + static_cast<std::ptrdiff_t>(i); };
  if (end < nodes.size()) std::nth_element(nodes.begin(), at(end), nodes.end(), is_before);
  std::partial_sort(nodes.begin(), at(end), at(end), is_before);
  for (size_t i = from; i < end; ++i) {
    page.nodes.push_back(nodes[i]);
    page.next.push_back(i + 1);
  }
  page.is_last = end == nodes.size();
  return page;
}

Result<size_t> ReadCursor(const Question& question) {
  PL_TRY_ASSIGN(const int64_t cursor, question.parameters.Number("cursor", 0, 0, kNoNode));
  return static_cast<size_t>(cursor);
}

std::string FaultAnswer(const QueryFault& fault) {
  JsonAnswer out;
  out.Open('{').Key("total").Integer(0).Key("rows").Open('{');
  NodeRows::AddFields(out);
  out.Key("rows").Open('[').Close(']').Close('}').Key("cursor").Text("").Key("error").Open('{');
  out.Key("at").Integer(static_cast<int64_t>(fault.at)).Key("message").Text(fault.message);
  out.Close('}').Close('}');
  return out.Take();
}

// --- where it went wrong first ---

enum class FirstKind : uint8_t { kFirst, kSource, kCarrier, kMismatch };
std::string_view FirstKindName(FirstKind kind) {
  static constexpr std::string_view kNames[] = {"first", "source", "carrier", "mismatch"};
  return kNames[static_cast<size_t>(kind)];
}

struct FirstRow {
  uint32_t node = 0;
  FirstKind kind = FirstKind::kFirst;
};

// All of a result or of one place, in the order of the answer.
struct FirstRows {
  std::vector<FirstRow> rows;
  std::string_view ordered_by;
};

const json::Value* PlaceFacts(const ResultStore& store, size_t place) {
  const json::Value* const places = store.facts().Find("places");
  const json::Value::List* const list = places == nullptr ? nullptr : places->AsList();
  return list == nullptr || place >= list->size() ? nullptr : &(*list)[place];
}

std::string TextOf(const json::Value* object, std::string_view key) {
  const json::Value* const member = object == nullptr ? nullptr : object->Find(key);
  const std::string* const text = member == nullptr ? nullptr : member->AsText();
  return text == nullptr ? std::string() : *text;
}

// The call that is named of one place or, below zero, of all.
std::optional<uint32_t> NamedCall(const ResultStore& store, int64_t place) {
  const json::Value* facts = store.facts().Find("first");
  std::string key = "name";
  size_t at = 0;
  if (place < 0) {
    const json::Value* const index =
        facts == nullptr || !facts->is_object() ? nullptr : facts->Find("place");
    if (index == nullptr || !index->AsNatural()) return std::nullopt;
    at = *index->AsNatural();
  } else {
    at = static_cast<size_t>(place);
    facts = PlaceFacts(store, at);
    key = "first";
  }
  const std::string name = TextOf(facts, key);
  if (name.empty()) return std::nullopt;
  if (const auto node = store.Find(at, false, name)) return node;
  return store.Find(at, true, name);
}

bool IsLevel(const ResultStore& store, uint32_t node, NodeLevel level) {
  return store.nodes().level[node] == static_cast<uint8_t>(level);
}

// What a node of a comparison is to the search; nothing: nothing of interest.
std::optional<FirstKind> KindInComparison(const ResultStore& store, uint32_t node) {
  const uint16_t flags = store.nodes().flags[node];
  const bool is_bad =
      IsLevel(store, node, NodeLevel::kWarning) || IsLevel(store, node, NodeLevel::kError);
  if (!is_bad) return std::nullopt;
  if ((flags & node_flag::kSource) != 0) return FirstKind::kSource;
  if ((flags & node_flag::kCarrier) != 0) return FirstKind::kCarrier;
  return std::nullopt;
}

std::optional<FirstKind> KindInRecording(const ResultStore& store, uint32_t node) {
  switch (static_cast<StoredOverflow>(store.nodes().overflow[node])) {
    case StoredOverflow::kCritical:
      return FirstKind::kSource;
    case StoredOverflow::kHigh:
    case StoredOverflow::kMedium:
      return FirstKind::kCarrier;
    case StoredOverflow::kNone:
      break;
  }
  return std::nullopt;
}

template <class KindOf>
std::vector<FirstRow> Collect(const ResultStore& store, int64_t place, bool with_golden,
                              const KindOf& kind_of) {
  std::vector<FirstRow> rows;
  const auto take = [&](uint32_t begin, uint32_t count) {
    for (uint32_t node = begin; node < begin + count; ++node) {
      const auto kind = kind_of(node);
      if (kind) rows.push_back({node, *kind});
    }
  };
  for (size_t i = 0; i < store.places().size(); ++i) {
    if (place >= 0 && i != static_cast<size_t>(place)) continue;
    const StorePlace& at = store.places()[i];
    if (at.target_count > 0) take(at.target, at.target_count);
    if (with_golden && at.golden_count > 0) take(at.golden, at.golden_count);
  }
  return rows;
}

// Sources before carriers; then by step, micro step and order of execution, ranks side by side.
void Sort(const ResultStore& store, std::vector<FirstRow>& rows) {
  const auto key = [&](const FirstRow& row) {
    const NodeColumns& nodes = store.nodes();
    return std::tuple(row.kind, store.places()[store.PlaceOf(row.node)].step,
                      nodes.micro_step[row.node], nodes.order[row.node], row.node);
  };
  std::ranges::sort(rows, {}, key);
}

std::shared_ptr<const FirstRows> FirstRowsOf(const ResultStore& store, int64_t place) {
  const std::string cache_key = fmt::format("first {}", place);
  if (auto kept = store.kept().Find<FirstRows>(cache_key)) return kept;
  auto found = std::make_shared<FirstRows>();
  found->ordered_by = "sources before carriers, by step, micro step and order of execution";
  const bool is_alone = TextOf(&store.facts(), "kind") == "build";
  found->rows = Collect(store, place, false, [&](uint32_t node) {
    return is_alone ? KindInRecording(store, node) : KindInComparison(store, node);
  });
  const std::optional<uint32_t> named = NamedCall(store, place);
  if (!is_alone && !named && found->rows.empty()) {
    found->ordered_by = "order of execution";
    found->rows = Collect(store, place, true, [&](uint32_t node) {
      return IsLevel(store, node, NodeLevel::kUnmatched) ? std::optional(FirstKind::kMismatch)
                                                         : std::nullopt;
    });
  }
  Sort(store, found->rows);
  if (named) {
    std::erase_if(found->rows, [&](const FirstRow& row) { return row.node == *named; });
    found->rows.insert(found->rows.begin(), {*named, FirstKind::kFirst});
  }
  store.kept().Keep(cache_key, found);
  return found;
}

// "output.0: exceeds-noise (...): relative error 0.33, explained 1e-06" of the worst value.
std::string WhyOfValues(const NodeDetail& detail, bool of_inputs) {
  const StoredValue* worst = nullptr;
  const auto is_bad = [](const StoredValue& value) {
    return value.verdict == "broken" || value.verdict == "suspicious";
  };
  for (const StoredValue& value : detail.values) {
    const bool is_input = value.role == ValueRole::kInput || value.role == ValueRole::kParameter;
    if (is_input != of_inputs || !is_bad(value)) continue;
    if (worst == nullptr || value.error > worst->error) worst = &value;
  }
  if (worst == nullptr) return {};
  std::string why = fmt::format("{}: {}", worst->name, worst->reason);
  if (!worst->reason_text.empty()) why += fmt::format(" ({})", worst->reason_text);
  if (std::isfinite(worst->error)) {
    why += fmt::format(", relative error {:.3g}, explained {:.3g}", worst->error, worst->explained);
  }
  return why;
}

std::string WhyOf(const ResultStore& store, const FirstRow& row, int64_t place) {
  if (row.kind == FirstKind::kFirst) {
    const std::string what = place < 0 ? TextOf(store.facts().Find("first"), "what") : "";
    if (!what.empty()) return what;
  }
  if (row.kind == FirstKind::kMismatch) {
    return store.IsGolden(row.node) ? "only the golden recording has it"
                                    : "only the target recording has it";
  }
  const auto overflow = static_cast<StoredOverflow>(store.nodes().overflow[row.node]);
  if (TextOf(&store.facts(), "kind") == "build") {
    return overflow == StoredOverflow::kCritical ? "NaN or infinity comes out, and none went in"
           : overflow == StoredOverflow::kHigh   ? "NaN or infinity goes in and comes out"
                                                 : "NaN or infinity goes in, and none comes out";
  }
  const auto detail = store.Detail(row.node);
  if (!detail) return detail.error().message();
  std::string why = WhyOfValues(*detail, row.kind == FirstKind::kCarrier);
  if (why.empty()) why = WhyOfValues(*detail, row.kind != FirstKind::kCarrier);
  if (why.empty() && !detail->reason.empty()) {
    why = detail->reason_text.empty() ? std::string(detail->reason)
                                      : std::string(detail->reason_text);
  }
  return why;
}

}  // namespace

Result<std::string> AnswerFind(const Question& question) {
  PL_TRY_ASSIGN(const Question::Page asked, question.ReadPage());
  PL_TRY_ASSIGN(const size_t cursor, ReadCursor(question));
  PL_TRY_ASSIGN(const FindOrder order, ReadOrder(question));
  QueryScope scope;
  PL_TRY_ASSIGN(scope.place, question.ReadPlace());
  PL_TRY_ASSIGN(scope.sides, question.ReadSides());
  const std::string query(question.parameters.Text("q"));
  const ParsedQuery parsed = ParseQuery(query);
  if (parsed.fault) return FaultAnswer(*parsed.fault);
  const ResultStore& store = question.store;
  const auto hits = HitsOf(store, query, parsed.terms, scope);
  const FoundPage page =
      order == FindOrder::kError
          ? PageByError(store, *hits, cursor, asked.limit)
          : PageInList(order == FindOrder::kName ? store.by_name() : store.by_order(), *hits,
                       cursor, asked.limit);
  const NodeRows rows(question, hits);
  JsonAnswer out;
  out.Open('{').Key("total").Integer(hits->total()).Key("rows").Open('{');
  NodeRows::AddFields(out);
  out.Key("rows").Open('[');
  size_t shown = 0;
  for (; shown < page.nodes.size(); ++shown) {
    if (shown > 0 && out.size() > MostBytes(asked.limit)) break;
    rows.Add(page.nodes[shown], -1, out);
  }
  const bool is_end = page.is_last && shown == page.nodes.size();
  out.Close(']').Close('}').Key("cursor");
  out.Text(is_end || shown == 0 ? "" : fmt::to_string(page.next[shown - 1]));
  out.Key("error").Null().Close('}');
  return out.Take();
}

Result<std::string> AnswerFirst(const Question& question) {
  PL_TRY_ASSIGN(const int64_t place, question.ReadPlace());
  PL_TRY_ASSIGN(const Question::Page page, question.ReadPage());
  const ResultStore& store = question.store;
  const auto found = FirstRowsOf(store, place);
  const NodeRows rows(question);
  JsonAnswer out;
  out.Open('{').Key("rows").Open('{');
  NodeRows::AddFields(out, {"kind", "why"});
  out.Key("rows").Open('[');
  const size_t end = std::min(found->rows.size(), page.offset + page.limit);
  for (size_t i = page.offset; i < end; ++i) {
    if (i > page.offset && out.size() > MostBytes(page.limit)) break;
    const FirstRow& row = found->rows[i];
    rows.Open(row.node, -1, out);
    out.Text(FirstKindName(row.kind)).Text(WhyOf(store, row, place)).Close(']');
  }
  out.Close(']').Close('}').Key("total").Integer(static_cast<int64_t>(found->rows.size()));
  out.Key("ordered_by").Text(found->ordered_by).Close('}');
  return out.Take();
}

}  // namespace plumbline::view
