#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "view/query/question_table.h"
#include "view/store/name_index.h"
#include "view/store/place_data.h"

namespace plumbline::view {
namespace {

std::string_view LevelText(const ResultStore& store, uint32_t node) {
  return NodeLevelName(static_cast<NodeLevel>(store.nodes().level[node]));
}

// Whether what one end gives away is what the other gets.
bool AreJoined(StoredRole one, StoredRole other) {
  const bool both_ways = one == StoredRole::kSendReceive || other == StoredRole::kSendReceive;
  return both_ways || one != other;
}

// Links of the target's calls in one step, in order of time.
std::vector<uint32_t> LinksInStep(const ResultStore& store, int64_t step) {
  std::vector<std::tuple<uint64_t, uint32_t, uint32_t>> found;  // layer, order, link
  for (uint32_t i = 0; i < store.link_count(); ++i) {
    const StoredLink link = store.Link(i);
    if (link.ends.empty()) continue;
    const uint32_t node = link.ends.front().node;
    const StorePlace& place = store.places()[store.PlaceOf(node)];
    const bool is_shown = !store.IsGolden(node) || place.target_count == 0;
    if (place.step == step && is_shown)
      found.emplace_back(link.layer, store.nodes().order[node], i);
  }
  std::ranges::sort(found);
  std::vector<uint32_t> links;
  for (const auto& row : found) links.push_back(std::get<2>(row));
  return links;
}

// --- one value over all steps ---

constexpr std::array<std::string_view, 4> kSeriesNames = {"max", "min", "mean", "norm"};

// One step of a value: both sides and how far they are apart.
struct StepValue {
  std::array<StoredScalar, 4> target{}, golden{};
  double error = std::numeric_limits<double>::quiet_NaN();
};

void AddSeries(const std::map<int64_t, StepValue>& steps,
               std::array<StoredScalar, 4> StepValue::*side, JsonAnswer& out) {
  out.Open('{');
  for (size_t i = 0; i < kSeriesNames.size(); ++i) {
    out.Key(kSeriesNames[i]).Open('[');
    for (const auto& [step, value] : steps) {
      const auto add = [&]<class T>(const T& held) {
        if constexpr (std::is_arithmetic_v<T>) {
          out.Number(static_cast<double>(held));
        } else {
          out.Null();
        }
      };
      std::visit(add, (value.*side)[i]);
    }
    out.Close(']');
  }
  out.Close('}');
}

// --- against another result ---

struct BaselineCounts {
  std::array<int64_t, kNodeChanges> counts{};
  std::vector<uint32_t> changed;  // worse, then better, then new ones
};

// The level of every name on one side of a place; the later of several nodes of one name.
std::map<std::pair<int64_t, int64_t>, size_t> PlacesByNumber(const ResultStore& store) {
  std::map<std::pair<int64_t, int64_t>, size_t> places;
  for (size_t i = 0; i < store.places().size(); ++i) {
    places.emplace(std::pair(store.places()[i].step, store.places()[i].rank), i);
  }
  return places;
}

// For each name of `store` the number of the same name in `base`; kNoNode: it has none.
std::vector<uint32_t> SameNames(const ResultStore& store, const ResultStore& base) {
  std::vector<std::string> names;
  names.reserve(base.names().size());
  base.names().ForEach([&](uint32_t, std::string_view name) { names.emplace_back(name); });
  std::vector<uint32_t> same(store.names().size(), kNoNode);
  size_t at = 0;
  store.names().ForEach([&](uint32_t number, std::string_view name) {
    while (at < names.size() && names[at] < name) ++at;
    if (at < names.size() && names[at] == name) same[number] = static_cast<uint32_t>(at);
  });
  return same;
}

std::shared_ptr<const BaselineCounts> CompareWith(const ResultStore& store,
                                                  const ResultStore& base) {
  const std::string key = fmt::format("baseline {}", base.etag());
  if (auto kept = store.kept().Find<BaselineCounts>(key)) return kept;
  auto found = std::make_shared<BaselineCounts>();
  const std::vector<uint32_t> same = SameNames(store, base);
  const auto places = PlacesByNumber(base);
  std::array<std::vector<uint32_t>, kNodeChanges> lists;
  std::vector<uint8_t> levels;
  for (const StorePlace& place : store.places()) {
    constexpr uint8_t kAbsent = 0xFF;
    levels.assign(base.names().size(), kAbsent);
    const auto other = places.find({place.step, place.rank});
    if (other != places.end()) {
      const StorePlace& there = base.places()[other->second];
      for (uint32_t i = 0; i < there.target_count; ++i) {
        levels[base.nodes().name[there.target + i]] = base.nodes().level[there.target + i];
      }
    }
    for (uint32_t i = 0; i < place.target_count; ++i) {
      const uint32_t node = place.target + i;
      const uint32_t name = same[store.nodes().name[node]];
      NodeChange change = NodeChange::kNew;
      if (name != kNoNode && levels[name] != kAbsent) {
        change = ChangeBetween(store.nodes().level[node], levels[name]);
      }
      ++found->counts[static_cast<size_t>(change)];
      if (change != NodeChange::kSame) lists[static_cast<size_t>(change)].push_back(node);
    }
  }
  for (const NodeChange change : {NodeChange::kWorse, NodeChange::kBetter, NodeChange::kNew}) {
    const std::vector<uint32_t>& list = lists[static_cast<size_t>(change)];
    found->changed.insert(found->changed.end(), list.begin(), list.end());
  }
  store.kept().Keep(key, found);
  return found;
}

}  // namespace

Result<std::string> AnswerCommunication(const Question& question) {
  const ResultStore& store = question.store;
  PL_TRY_ASSIGN(const uint32_t node, question.ReadNode());
  JsonAnswer out;
  out.Open('{').Key("peers").Open('[');
  for (const uint32_t number : store.LinksOf(node)) {
    const StoredLink link = store.Link(number);
    for (const StoredEnd& own : link.ends) {
      if (own.node != node) continue;
      for (const StoredEnd& end : link.ends) {
        if (&end == &own || !AreJoined(own.role, end.role)) continue;
        const size_t place = store.PlaceOf(end.node);
        out.Object("place", place, "rank", store.places()[place].rank, "id", end.node, "name",
                   store.Name(end.node), "type", StoredRoleName(own.role), "level",
                   LevelText(store, end.node), "mismatch",
                   end.mismatch.empty() ? own.mismatch : end.mismatch);
      }
    }
  }
  return out.Close(']').Close('}').Take();
}

Result<std::string> AnswerTimeline(const Question& question) {
  const ResultStore& store = question.store;
  PL_TRY_ASSIGN(const Question::Page page, question.ReadPage());
  PL_TRY_ASSIGN(const int64_t step, question.parameters.Number(
                                        "step", store.places().empty() ? 0 : store.places()[0].step,
                                        INT64_MIN, INT64_MAX));
  const std::vector<uint32_t> links = LinksInStep(store, step);
  JsonAnswer out;
  out.Open('{').Key("ranks").Open('[');
  for (const StorePlace& place : store.places()) {
    if (place.step == step) out.Integer(place.rank);
  }
  out.Close(']').Key("calls").List(page.Of(links), [&](uint32_t number) {
    const StoredLink link = store.Link(number);
    const auto ends = [&] {
      out.List(link.ends, [&](const StoredEnd& at) {
        out.Object("rank", store.places()[store.PlaceOf(at.node)].rank, "id", at.node, "order",
                   store.nodes().order[at.node], "level", LevelText(store, at.node), "mismatch",
                   at.mismatch);
      });
    };
    out.Object("key", link.key, "kind", link.is_message ? "message" : "collective", "ends", ends);
  });
  return out.Members("total", links.size()).Close('}').Take();
}

Result<std::string> AnswerOverSteps(const Question& question) {
  const ResultStore& store = question.store;
  PL_TRY_ASSIGN(const uint32_t node, question.ReadNode());
  const std::string_view wanted = question.parameters.Text("value");
  const bool is_golden = store.IsGolden(node);
  const int64_t rank = store.places()[store.PlaceOf(node)].rank;
  const std::string name = store.Name(node);
  std::map<int64_t, StepValue> steps;
  std::vector<NodeDetail> details;  // keep the texts
  for (size_t i = 0; i < store.places().size(); ++i) {
    const StorePlace& place = store.places()[i];
    if (place.rank != rank) continue;
    StepValue& step = steps[place.step];
    const auto there = store.Find(i, is_golden, name);
    if (!there) continue;
    PL_TRY_ASSIGN(NodeDetail detail, store.Detail(*there));
    const auto value = std::ranges::find(detail.values, wanted, &StoredValue::name);
    if (value == detail.values.end()) continue;
    if (value->target) step.target = value->target->statistics;
    if (value->golden) step.golden = value->golden->statistics;
    step.error = value->error;
    details.push_back(std::move(detail));
  }
  JsonAnswer out;
  out.Open('{').Key("steps").List(steps, [&](const auto& step) { out.Integer(step.first); });
  AddSeries(steps, &StepValue::target, out.Key("target"));
  AddSeries(steps, &StepValue::golden, out.Key("golden"));
  out.Key("error").List(steps, [&](const auto& step) {
    const double error = step.second.error;
    out.Put(std::isnan(error) ? std::nullopt : std::optional(error));
  });
  return out.Close('}').Take();
}

Result<std::string> AnswerBaseline(const Question& question) {
  if (question.base == nullptr) {
    return Error(ErrorCode::kInvalidArgument, "base: expected the id of an open result");
  }
  PL_TRY_ASSIGN(const Question::Page page, question.ReadPage());
  const auto found = CompareWith(question.store, *question.base);
  const NodeRows rows(question);
  JsonAnswer out;
  out.Open('{');
  for (const NodeChange change :
       {NodeChange::kBetter, NodeChange::kWorse, NodeChange::kSame, NodeChange::kNew}) {
    out.Key(NodeChangeName(change)).Integer(found->counts[static_cast<size_t>(change)]);
  }
  out.Members("total", found->changed.size()).Key("rows");
  const auto add = [&](uint32_t node) { rows.Add(node, -1, out); };
  AddTable(page.Of(found->changed), MostBytes(page.limit), add, out);
  return out.Close('}').Take();
}

}  // namespace plumbline::view
