#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/text/json_members.h"
#include "match/comm_graph.h"
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
  out.Open('{').Members("total", 0).Key("rows");
  AddTable(
      std::vector<uint32_t>(), 0, [](uint32_t) {}, out);
  out.Members("cursor", "").Key("error").Object("at", fault.at, "message", fault.message);
  return out.Close('}').Take();
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

bool IsLevel(const ResultStore& store, uint32_t node, NodeLevel level) {
  return store.nodes().level[node] == static_cast<uint8_t>(level);
}

// When nodes ran, as far as communication tells: the links of the store are those of
// match/comm_graph.
class CommTimes {
 public:
  explicit CommTimes(const ResultStore& store) : store_(store), sides_(2 * store.places().size()) {
    for (size_t i = 0; i < store.link_count(); ++i) {
      const StoredLink link = store.Link(i);
      const bool is_bad = std::ranges::any_of(link.ends, [&](const StoredEnd& end) {
        const uint16_t flags = store.nodes().flags[end.node];
        return end.role != StoredRole::kReceive && (flags & node_flag::kCarrier) != 0;
      });
      for (const StoredEnd& end : link.ends) {
        SideOf(end.node).calls.push_back({store.nodes().order[end.node], link.layer,
                                          end.role == StoredRole::kReceive ? kGets : kGives});
        if (is_bad && end.role != StoredRole::kSend) explained_.insert(end.node);
      }
    }
    for (Side& side : sides_) {
      std::ranges::sort(side.calls);
      const auto is_same = [](const Call& a, const Call& b) { return a.order == b.order; };
      side.calls.erase(std::unique(side.calls.begin(), side.calls.end(), is_same),
                       side.calls.end());  // of a batch the earliest link
      for (const Call& call : side.calls) side.layers.push_back(call.layer);
    }
  }

  // Whether what a call gets from other ranks was wrong when it was given.
  [[nodiscard]] bool IsExplained(uint32_t node) const { return explained_.contains(node); }

  // Its layer, and within that: what comes before a call, the call, and how far it is behind the
  // one before. For those of one rank the order of execution.
  [[nodiscard]] auto KeyOf(uint32_t node) {
    const Side& side = SideOf(node);
    const uint32_t order = store_.nodes().order[node];
    const auto call = std::ranges::lower_bound(side.calls, order, {}, &Call::order);
    const auto before = static_cast<size_t>(call - side.calls.begin());
    const bool is_call = call != side.calls.end() && call->order == order;
    return std::tuple(is_call ? call->layer : LayerBetween(side.layers, before),
                      is_call ? call->stage : kBetween, store_.nodes().micro_step[node],
                      before == 0 ? order : order - side.calls[before - 1].order);
  }

 private:
  enum Stage : uint8_t { kBetween, kGives, kGets };
  struct Call {
    uint32_t order;
    uint64_t layer;
    Stage stage;
    auto operator<=>(const Call&) const = default;
  };
  struct Side {
    std::vector<Call> calls;
    std::vector<uint64_t> layers;
  };
  Side& SideOf(uint32_t node) {
    return sides_[2 * store_.PlaceOf(node) + (store_.IsGolden(node) ? 1 : 0)];
  }

  const ResultStore& store_;
  std::vector<Side> sides_;
  std::unordered_set<uint32_t> explained_;
};

// What a node of a comparison is to the search; nothing: nothing of interest.
std::optional<FirstKind> KindInComparison(const ResultStore& store, const CommTimes& times,
                                          uint32_t node) {
  const uint16_t flags = store.nodes().flags[node];
  const bool is_bad =
      IsLevel(store, node, NodeLevel::kWarning) || IsLevel(store, node, NodeLevel::kError);
  if (!is_bad) return std::nullopt;
  if ((flags & node_flag::kSource) != 0) {
    return times.IsExplained(node) ? FirstKind::kCarrier : FirstKind::kSource;
  }
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

// Sources before carriers; then by step and time.
void Sort(const ResultStore& store, CommTimes& times, FirstRows& found) {
  using Key = decltype(std::tuple_cat(std::tuple(FirstKind(), int64_t()), times.KeyOf(0)));
  std::vector<std::pair<Key, uint32_t>> order;
  for (const FirstRow& row : found.rows) {
    const int64_t step = store.places()[store.PlaceOf(row.node)].step;
    order.emplace_back(std::tuple_cat(std::tuple(row.kind, step), times.KeyOf(row.node)), row.node);
  }
  std::ranges::sort(order);
  for (size_t i = 0; i < order.size(); ++i) {
    found.rows[i] = {order[i].second, std::get<FirstKind>(order[i].first)};
  }
}

std::shared_ptr<const FirstRows> FirstRowsOf(const ResultStore& store, int64_t place) {
  const std::string cache_key = fmt::format("first {}", place);
  if (auto kept = store.kept().Find<FirstRows>(cache_key)) return kept;
  auto found = std::make_shared<FirstRows>();
  CommTimes times(store);
  found->ordered_by =
      store.link_count() > 0
          ? "sources before carriers, by step, communication between ranks and order of execution"
          : "sources before carriers, by step, micro step and order of execution";
  const bool is_alone = json::TextAt(store.facts(), "kind") == "build";
  found->rows = Collect(store, place, false, [&](uint32_t node) {
    return is_alone ? KindInRecording(store, node) : KindInComparison(store, times, node);
  });
  const std::optional<uint32_t> named = store.FirstCall(place);
  if (!is_alone && !named && found->rows.empty()) {
    found->ordered_by = store.link_count() > 0
                            ? "communication between ranks and order of execution"
                            : "order of execution";
    found->rows = Collect(store, place, true, [&](uint32_t node) {
      return IsLevel(store, node, NodeLevel::kUnmatched) ? std::optional(FirstKind::kMismatch)
                                                         : std::nullopt;
    });
  }
  Sort(store, times, *found);
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
    const json::Value* const first = place < 0 ? store.facts().Find("first") : nullptr;
    const std::string_view what =
        first == nullptr ? std::string_view() : json::TextAt(*first, "what");
    if (!what.empty()) return std::string(what);
  }
  if (row.kind == FirstKind::kMismatch) {
    return store.IsGolden(row.node) ? "only the golden recording has it"
                                    : "only the target recording has it";
  }
  const auto overflow = static_cast<StoredOverflow>(store.nodes().overflow[row.node]);
  if (json::TextAt(store.facts(), "kind") == "build") {
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
  out.Open('{').Members("total", hits->total()).Key("rows");
  const auto add = [&](uint32_t node) { rows.Add(node, -1, out); };
  const size_t shown = AddTable(page.nodes, MostBytes(asked.limit), add, out);
  const bool is_end = page.is_last && shown == page.nodes.size();
  out.Members("cursor", is_end || shown == 0 ? "" : fmt::to_string(page.next[shown - 1]), "error",
              nullptr);
  return out.Close('}').Take();
}

Result<std::string> AnswerFirst(const Question& question) {
  PL_TRY_ASSIGN(const int64_t place, question.ReadPlace());
  PL_TRY_ASSIGN(const Question::Page page, question.ReadPage());
  const ResultStore& store = question.store;
  const auto found = FirstRowsOf(store, place);
  const NodeRows rows(question);
  JsonAnswer out;
  const auto add = [&](const FirstRow& row) {
    rows.Open(row.node, -1, out);
    out.Text(FirstKindName(row.kind)).Text(WhyOf(store, row, place)).Close(']');
  };
  out.Open('{').Key("rows");
  AddTable(page.Of(found->rows), MostBytes(page.limit), add, out, {"kind", "why"});
  out.Members("total", found->rows.size(), "ordered_by", found->ordered_by);
  return out.Close('}').Take();
}

}  // namespace plumbline::view
