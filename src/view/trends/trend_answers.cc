#include "view/trends/trend_answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/text/text_parts.h"
#include "view/query/json_answer.h"
#include "view/trends/trend_alerts.h"
#include "view/trends/trend_database.h"

namespace plumbline::view {

struct TrendDb::Impl {
  explicit Impl(TrendReader opened) : reader(std::move(opened)) {}
  std::mutex mutex;
  TrendReader reader;
};

TrendDb::TrendDb(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TrendDb::TrendDb(TrendDb&&) noexcept = default;
TrendDb::~TrendDb() = default;

Result<TrendDb> TrendDb::Open(const std::string& path) {
  PL_TRY_ASSIGN(TrendReader reader, TrendReader::Open(path));
  return TrendDb(std::make_unique<Impl>(std::move(reader)));
}

namespace {

constexpr std::array<std::string_view, 4> kTrendQuestions = {"meta", "heat", "line", "alerts"};
constexpr int64_t kMostTargets = 10'000;  // of a page of them
constexpr int64_t kMostHeat = 2000;       // cells one way
constexpr size_t kMostHeatCells = 400'000;
constexpr size_t kMostSeries = 100;
constexpr int64_t kMostPoints = 100'000;
constexpr size_t kMostAlerts = 100'000;  // that are kept to be sorted
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

// One question with the databases locked.
struct Asked {
  TrendReader& reader;
  TrendReader* against;  // null: none
  const Parameters& parameters;
  CancelFlag cancel;
};

Result<uint64_t> NaturalOf(const Asked& asked, std::string_view name, int64_t missing,
                           int64_t highest) {
  PL_TRY_ASSIGN(const int64_t number, asked.parameters.Number(name, missing, 0, highest));
  return static_cast<uint64_t>(number);
}

std::vector<std::string> WordsOf(const Asked& asked, std::string_view name) {
  std::vector<std::string> words;
  for (const std::string_view word : SplitAt(asked.parameters.Text(name), ',')) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

Result<std::vector<int64_t>> IntegersOf(const Asked& asked, std::string_view name) {
  std::vector<int64_t> numbers;
  for (const std::string& word : WordsOf(asked, name)) {
    const std::optional<int64_t> number = ParseInteger(word);
    if (!number) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: expected whole numbers by comma, got '{}'", name, word.substr(0, 40)));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

Result<TrendColumn> ColumnOf(const Asked& asked) {
  return asked.reader.Column(asked.parameters.Text("metric"), asked.parameters.Text("stat"));
}

TargetFilter FilterOf(const Asked& asked, int64_t metric) {
  return {metric, WordsOf(asked, "tags"), std::string(asked.parameters.Text("q"))};
}

// The column of the same names in the other database.
Result<std::optional<TrendColumn>> OtherColumn(const Asked& asked) {
  if (asked.against == nullptr) return std::optional<TrendColumn>();
  PL_TRY_ASSIGN(const TrendColumn column, asked.against->Column(asked.parameters.Text("metric"),
                                                                asked.parameters.Text("stat")));
  return std::optional(column);
}

void AddTarget(const TrendTarget& target, JsonAnswer& out) {
  out.Open('[').Integer(target.id).Text(target.name).Integer(target.vpp_stage);
  out.Integer(target.micro_step).Close(']');
}

// That as a value.
auto Shown(const TrendTarget& target, JsonAnswer& out) {
  return [&] { AddTarget(target, out); };
}

// ---- meta ----

void AddTags(const std::vector<TrendTag>& tags, JsonAnswer& out) {
  std::map<std::string, std::vector<std::string>> by_category;
  for (const TrendTag& tag : tags) by_category[tag.category].push_back(tag.name);
  out.Key("tags").Open('{');
  for (const auto& [category, names] : by_category) out.Members(category, names);
  out.Close('}');
}

Status AddTargets(const Asked& asked, int64_t metric, JsonAnswer& out) {
  PL_TRY_ASSIGN(const uint64_t offset, NaturalOf(asked, "offset", 0, kLargest));
  PL_TRY_ASSIGN(const uint64_t limit, NaturalOf(asked, "limit", 100, kMostTargets));
  PL_TRY_ASSIGN(const TargetPage page,
                asked.reader.Targets(FilterOf(asked, metric), offset, limit));
  out.Key("targets").Open('{').Members("total", page.total, "offset", offset).Key("rows");
  out.List(page.targets, [&](const TrendTarget& target) { AddTarget(target, out); }).Close('}');
  return {};
}

Status AnswerMeta(const Asked& asked, JsonAnswer& out) {
  const TrendContents& contents = asked.reader.contents();
  out.Key("metrics").List(contents.metrics, [&](const TrendMetric& metric) {
    out.Object("name", metric.name, "statistics", metric.statistics);
  });
  out.Members("ranks", contents.ranks, "steps", contents.steps, "exact_steps",
              contents.has_exact_steps);
  const std::string_view name = asked.parameters.Text("metric");
  const auto metric = std::ranges::find_if(
      contents.metrics, [&](const TrendMetric& each) { return name.empty() || each.name == name; });
  if (metric == contents.metrics.end()) {
    if (!name.empty()) return asked.reader.Column(name, "").error();
    out.Key("metric").Null();
    return {};
  }
  out.Key("metric").Text(metric->name);
  PL_TRY_ASSIGN(const std::vector<TrendTag> tags, asked.reader.Tags(metric->id));
  AddTags(tags, out);
  return AddTargets(asked, metric->id, out);
}

// ---- heat ----

// One axis of a heat map: what stands at its places.
struct HeatAxis {
  std::string_view kind;
  uint64_t total = 0, offset = 0;
  std::vector<int64_t> numbers;      // ranks or steps
  std::vector<TrendTarget> targets;  // modules
  [[nodiscard]] size_t size() const { return targets.empty() ? numbers.size() : targets.size(); }
};

Result<HeatAxis> NumberAxis(const Asked& asked, std::string_view kind, char name) {
  const TrendContents& contents = asked.reader.contents();
  const std::vector<int64_t>& all = kind == "rank" ? contents.ranks : contents.steps;
  HeatAxis axis;
  axis.kind = kind;
  axis.total = all.size();
  PL_TRY_ASSIGN(axis.offset, NaturalOf(asked, fmt::format("{}_offset", name), 0, kLargest));
  PL_TRY_ASSIGN(const uint64_t limit,
                NaturalOf(asked, fmt::format("{}_limit", name), 200, kMostHeat));
  const uint64_t begin = std::min<uint64_t>(axis.offset, all.size());
  const uint64_t end = begin + std::min<uint64_t>(limit, all.size() - begin);
  axis.numbers.assign(all.begin() + static_cast<std::ptrdiff_t>(begin),
                      all.begin() + static_cast<std::ptrdiff_t>(end));
  return axis;
}

Result<HeatAxis> ModuleAxis(const Asked& asked, int64_t metric) {
  HeatAxis axis;
  axis.kind = "module";
  PL_TRY_ASSIGN(axis.offset, NaturalOf(asked, "y_offset", 0, kLargest));
  PL_TRY_ASSIGN(const uint64_t limit, NaturalOf(asked, "y_limit", 200, kMostHeat));
  PL_TRY_ASSIGN(TargetPage page, asked.reader.Targets(FilterOf(asked, metric), axis.offset, limit));
  axis.total = page.total;
  axis.targets = std::move(page.targets);
  return axis;
}

// Values of some targets at places of rank and step, of one database or of its difference to
// another.
class ValueSource {
 public:
  ValueSource(const Asked& asked, TrendColumn column, std::optional<TrendColumn> other)
      : asked_(asked), column_(std::move(column)), other_column_(std::move(other)) {}

  // `targets` ascending by id.
  Status Select(const std::vector<TrendTarget>& targets) {
    ids_.clear();
    others_.clear();
    for (const TrendTarget& target : targets) ids_.push_back(target.id);
    if (!other_column_) return {};
    for (size_t i = 0; i < targets.size(); ++i) {
      PL_TRY_ASSIGN(const auto same, asked_.against->SameTarget(targets[i]));
      if (same) others_.emplace_back(same->id, i);
    }
    std::ranges::sort(others_);
    return {};
  }

  [[nodiscard]] size_t matched() const { return others_.size(); }

  Result<std::vector<TrendNumber>> Own(int64_t rank, int64_t step) const {
    return asked_.reader.Values(column_, rank, step, ids_);
  }
  // Of the other database, at the places of this one's targets.
  Result<std::vector<TrendNumber>> Other(int64_t rank, int64_t step) const {
    std::vector<int64_t> ids;
    for (const auto& [id, place] : others_) ids.push_back(id);
    PL_TRY_ASSIGN(const auto found, asked_.against->Values(*other_column_, rank, step, ids));
    std::vector<TrendNumber> values(ids_.size());
    for (size_t i = 0; i < found.size(); ++i) values[others_[i].second] = found[i];
    return values;
  }
  // This one's, minus the other's where there is another.
  Result<std::vector<TrendNumber>> At(int64_t rank, int64_t step) const {
    PL_TRY_ASSIGN(std::vector<TrendNumber> values, Own(rank, step));
    if (!other_column_) return values;
    PL_TRY_ASSIGN(const std::vector<TrendNumber> others, Other(rank, step));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = values[i] && others[i] ? TrendNumber(*values[i] - *others[i]) : std::nullopt;
    }
    return values;
  }

 private:
  const Asked& asked_;
  TrendColumn column_;
  std::optional<TrendColumn> other_column_;
  std::vector<int64_t> ids_;
  std::vector<std::pair<int64_t, size_t>> others_;  // id there, place here
};

struct HeatMap {
  HeatAxis x, y;
  std::vector<TrendNumber> cells;  // by rows of y
  std::vector<std::string> notes;
};

Result<TrendTarget> TargetOf(const Asked& asked, int64_t id) {
  PL_TRY_ASSIGN(const auto target, asked.reader.Target(id));
  if (target) return *target;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("value: {} has no module {}", asked.reader.path(), id));
}

// At one step or of one rank: the other one over modules.
Status FillOverModules(const Asked& asked, const ValueSource& source, int64_t value, HeatMap& map) {
  const bool is_of_step = map.x.kind == "rank";
  for (size_t x = 0; x < map.x.size(); ++x) {
    if (IsSet(asked.cancel)) return CancelledError();
    const int64_t rank = is_of_step ? map.x.numbers[x] : value;
    const int64_t step = is_of_step ? value : map.x.numbers[x];
    PL_TRY_ASSIGN(const std::vector<TrendNumber> column, source.At(rank, step));
    for (size_t y = 0; y < column.size(); ++y) map.cells[y * map.x.size() + x] = column[y];
  }
  return {};
}

// Of one module: steps over ranks.
Status FillOfModule(const Asked& asked, const ValueSource& source, HeatMap& map) {
  for (size_t y = 0; y < map.y.size(); ++y) {
    if (IsSet(asked.cancel)) return CancelledError();
    for (size_t x = 0; x < map.x.size(); ++x) {
      PL_TRY_ASSIGN(const auto value, source.At(map.y.numbers[y], map.x.numbers[x]));
      map.cells[y * map.x.size() + x] = value.front();
    }
  }
  return {};
}

Status NeedRoom(const HeatMap& map) {
  if (map.x.size() * map.y.size() <= kMostHeatCells) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("x_limit, y_limit: {} by {} cells are more than {}", map.x.size(),
                           map.y.size(), kMostHeatCells));
}

Result<HeatMap> MakeHeat(const Asked& asked) {
  PL_TRY_ASSIGN(const TrendColumn column, ColumnOf(asked));
  PL_TRY_ASSIGN(const std::optional<TrendColumn> other, OtherColumn(asked));
  const std::string_view dimension = asked.parameters.Text("dimension");
  PL_TRY_ASSIGN(const int64_t value, asked.parameters.Number("value", 0, -kLargest, kLargest));
  HeatMap map;
  ValueSource source(asked, column, other);
  if (dimension == "module") {
    PL_TRY_ASSIGN(const TrendTarget target, TargetOf(asked, value));
    PL_TRY_ASSIGN(map.x, NumberAxis(asked, "step", 'x'));
    PL_TRY_ASSIGN(map.y, NumberAxis(asked, "rank", 'y'));
    PL_TRY(source.Select({target}));
  } else if (dimension == "step" || dimension == "rank") {
    PL_TRY_ASSIGN(map.x, NumberAxis(asked, dimension == "step" ? "rank" : "step", 'x'));
    PL_TRY_ASSIGN(map.y, ModuleAxis(asked, column.metric));
    PL_TRY(source.Select(map.y.targets));
  } else {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("dimension: expected step, rank or module, got '{}'", dimension.substr(0, 40)));
  }
  PL_TRY(NeedRoom(map));
  map.cells.resize(map.x.size() * map.y.size());
  if (other) {
    const size_t all = dimension == "module" ? 1 : map.y.size();
    if (source.matched() < all) {
      map.notes.push_back(fmt::format("{} of {} modules are not in {}", all - source.matched(), all,
                                      asked.against->path()));
    }
  }
  PL_TRY(dimension == "module" ? FillOfModule(asked, source, map)
                               : FillOverModules(asked, source, value, map));
  return map;
}

void AddAxis(std::string_view name, const HeatAxis& axis, JsonAnswer& out) {
  out.Key(name).Open('{').Members("kind", axis.kind, "total", axis.total, "offset", axis.offset);
  out.Key("labels").Open('[');
  for (const int64_t number : axis.numbers) out.Integer(number);
  for (const TrendTarget& target : axis.targets) AddTarget(target, out);
  out.Close(']').Close('}');
}

// What colours are chosen by.
void AddSpread(const std::vector<TrendNumber>& cells, JsonAnswer& out) {
  double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0;
  double count = 0;
  for (const TrendNumber& cell : cells) {
    if (!cell || !std::isfinite(*cell)) continue;
    low = std::min(low, *cell);
    high = std::max(high, *cell);
    sum += *cell;
    ++count;
  }
  if (count == 0) {
    for (const char* name : {"min", "max", "mean", "deviation"}) out.Key(name).Null();
    return;
  }
  double squares = 0;
  for (const TrendNumber& cell : cells) {
    if (cell && std::isfinite(*cell)) squares += (*cell - sum / count) * (*cell - sum / count);
  }
  out.Members("min", low, "max", high, "mean", sum / count, "deviation",
              std::sqrt(squares / count));
}

Status AnswerHeat(const Asked& asked, JsonAnswer& out) {
  PL_TRY_ASSIGN(const HeatMap map, MakeHeat(asked));
  AddAxis("x", map.x, out);
  AddAxis("y", map.y, out);
  out.Key("cells").Open('[');
  for (size_t y = 0; y < map.y.size(); ++y) {
    out.Put(std::span(map.cells).subspan(y * map.x.size(), map.x.size()));
  }
  out.Close(']');
  AddSpread(map.cells, out);
  out.Members("notes", map.notes);
  return {};
}

// ---- line ----

struct LineRequest {
  bool is_along_step = true;
  uint64_t x_total = 0;
  std::vector<int64_t> x;       // steps, or ranks
  std::vector<int64_t> others;  // ranks, or steps
  std::vector<TrendTarget> targets;
  uint64_t series_total = 0;
};

Status SelectTargets(const Asked& asked, int64_t metric, LineRequest& request) {
  PL_TRY_ASSIGN(const std::vector<int64_t> ids, IntegersOf(asked, "targets"));
  if (ids.empty()) {
    PL_TRY_ASSIGN(TargetPage page, asked.reader.Targets(FilterOf(asked, metric), 0, kMostSeries));
    request.targets = std::move(page.targets);
    request.series_total = page.total;
    return {};
  }
  for (const int64_t id : ids) {
    PL_TRY_ASSIGN(const TrendTarget target, TargetOf(asked, id));
    request.targets.push_back(target);
  }
  std::ranges::sort(request.targets, {}, &TrendTarget::id);
  const auto is_same = [](const TrendTarget& a, const TrendTarget& b) { return a.id == b.id; };
  request.targets.erase(std::unique(request.targets.begin(), request.targets.end(), is_same),
                        request.targets.end());
  request.series_total = request.targets.size();
  return {};
}

Result<LineRequest> LineOf(const Asked& asked, int64_t metric) {
  LineRequest request;
  const std::string_view along = asked.parameters.Text("along");
  if (!along.empty() && along != "step" && along != "rank") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("along: expected step or rank, got '{}'", along.substr(0, 40)));
  }
  request.is_along_step = along != "rank";
  const TrendContents& contents = asked.reader.contents();
  const std::vector<int64_t>& all = request.is_along_step ? contents.steps : contents.ranks;
  PL_TRY_ASSIGN(const uint64_t offset, NaturalOf(asked, "offset", 0, kLargest));
  PL_TRY_ASSIGN(const uint64_t limit, NaturalOf(asked, "limit", 2000, kMostPoints));
  request.x_total = all.size();
  for (size_t i = offset; i < all.size() && i - offset < limit; ++i) request.x.push_back(all[i]);
  PL_TRY_ASSIGN(request.others, IntegersOf(asked, request.is_along_step ? "ranks" : "steps"));
  if (request.others.empty()) {
    request.others = request.is_along_step ? contents.ranks : contents.steps;
  }
  PL_TRY(SelectTargets(asked, metric, request));
  request.series_total *= request.others.size();
  const size_t targets = std::max<size_t>(request.targets.size(), 1);
  if (request.targets.size() > kMostSeries) request.targets.resize(kMostSeries);
  request.others.resize(
      std::min(request.others.size(), std::max<size_t>(kMostSeries / targets, 1)));
  return request;
}

// values[target][x], of one rank or step and one database.
using SeriesValues = std::vector<std::vector<TrendNumber>>;

Result<SeriesValues> ReadSeries(const Asked& asked, const LineRequest& request,
                                const ValueSource& source, int64_t other, bool of_against) {
  SeriesValues values(request.targets.size(), std::vector<TrendNumber>(request.x.size()));
  for (size_t i = 0; i < request.x.size(); ++i) {
    if (IsSet(asked.cancel)) return CancelledError();
    const int64_t rank = request.is_along_step ? other : request.x[i];
    const int64_t step = request.is_along_step ? request.x[i] : other;
    PL_TRY_ASSIGN(const auto column,
                  of_against ? source.Other(rank, step) : source.Own(rank, step));
    for (size_t k = 0; k < column.size(); ++k) values[k][i] = column[k];
  }
  return values;
}

void AddSeries(const LineRequest& request, int64_t other, std::string_view side,
               const SeriesValues& values, JsonAnswer& out) {
  for (size_t k = 0; k < request.targets.size(); ++k) {
    out.Object("target", Shown(request.targets[k], out), request.is_along_step ? "rank" : "step",
               other, "side", side, "values", values[k]);
  }
}

Status AnswerLine(const Asked& asked, JsonAnswer& out) {
  PL_TRY_ASSIGN(const TrendColumn column, ColumnOf(asked));
  PL_TRY_ASSIGN(const std::optional<TrendColumn> other, OtherColumn(asked));
  PL_TRY_ASSIGN(const LineRequest request, LineOf(asked, column.metric));
  ValueSource source(asked, column, other);
  PL_TRY(source.Select(request.targets));
  out.Members("along", request.is_along_step ? "step" : "rank", "x", request.x, "total",
              request.x_total);
  out.Key("series").Open('[');
  for (const int64_t at : request.others) {
    PL_TRY_ASSIGN(const SeriesValues own, ReadSeries(asked, request, source, at, false));
    AddSeries(request, at, "target", own, out);
    if (!other) continue;
    PL_TRY_ASSIGN(const SeriesValues others, ReadSeries(asked, request, source, at, true));
    AddSeries(request, at, "against", others, out);
  }
  out.Close(']').Members("series_total", request.series_total);
  std::vector<std::string> notes;
  const size_t shown = request.targets.size() * request.others.size();
  if (shown < request.series_total) {
    notes.push_back(fmt::format("{} of {} series are shown", shown, request.series_total));
  }
  out.Members("notes", notes);
  return {};
}

// ---- alerts ----

struct PlacedAlert {
  int64_t step, rank, target;
  TrendAlert alert;
};

// Targets that the filter leaves; nothing: all of the metric.
Result<std::optional<std::unordered_set<int64_t>>> FilteredIds(const Asked& asked, int64_t metric) {
  const TargetFilter filter = FilterOf(asked, metric);
  if (filter.tags.empty() && filter.text.empty()) {
    return std::optional<std::unordered_set<int64_t>>();
  }
  PL_TRY_ASSIGN(const TargetPage page,
                asked.reader.Targets(filter, 0, std::numeric_limits<int32_t>::max()));
  std::unordered_set<int64_t> ids;
  for (const TrendTarget& target : page.targets) ids.insert(target.id);
  return std::optional(std::move(ids));
}

struct FoundAlerts {
  uint64_t total = 0;
  std::vector<PlacedAlert> kept;
};

Result<FoundAlerts> FindAlerts(const Asked& asked, const TrendColumn& column, size_t window) {
  PL_TRY_ASSIGN(const auto ids, FilteredIds(asked, column.metric));
  FoundAlerts found;
  std::unordered_map<int64_t, TrendWatch> watches;
  int64_t rank = 0;
  PL_TRY(asked.reader.VisitRows(column, [&](const TrendReader::Row& row) {
    if (row.rank != rank) watches.clear();
    rank = row.rank;
    if (!row.value || (ids && !ids->contains(row.target))) return !IsSet(asked.cancel);
    TrendWatch& watch = watches.try_emplace(row.target, window).first->second;
    const std::optional<TrendAlert> alert = watch.Add(*row.value);
    if (alert) ++found.total;
    if (alert && found.kept.size() < kMostAlerts) {
      found.kept.push_back({row.step, row.rank, row.target, *alert});
    }
    return !IsSet(asked.cancel);
  }));
  if (IsSet(asked.cancel)) return CancelledError();
  std::ranges::stable_sort(found.kept, {}, &PlacedAlert::step);
  return found;
}

Status AddAlert(const Asked& asked, const PlacedAlert& placed, JsonAnswer& out) {
  PL_TRY_ASSIGN(const TrendTarget target, TargetOf(asked, placed.target));
  const TrendAlert& alert = placed.alert;
  out.Object("target", Shown(target, out), "rank", placed.rank, "step", placed.step, "kind",
             TrendAlertName(alert.kind), "value", alert.value, "z", alert.z, "ratio", alert.ratio);
  return {};
}

Status AnswerAlerts(const Asked& asked, JsonAnswer& out) {
  PL_TRY_ASSIGN(const TrendColumn column, ColumnOf(asked));
  PL_TRY_ASSIGN(const int64_t window, asked.parameters.Number("window", 20, 5, 10'000));
  PL_TRY_ASSIGN(const uint64_t offset, NaturalOf(asked, "offset", 0, kLargest));
  PL_TRY_ASSIGN(const uint64_t limit, NaturalOf(asked, "limit", 100, kMostTargets));
  PL_TRY_ASSIGN(const FoundAlerts found, FindAlerts(asked, column, static_cast<size_t>(window)));
  out.Members("rule", TrendRule(static_cast<size_t>(window)), "total", found.total);
  out.Key("alerts").Open('[');
  for (size_t i = offset; i < found.kept.size() && i - offset < limit; ++i) {
    PL_TRY(AddAlert(asked, found.kept[i], out));
  }
  out.Close(']');
  return {};
}

using AnswerTrend = Status (*)(const Asked&, JsonAnswer&);
constexpr std::array<AnswerTrend, kTrendQuestions.size()> kTrendAnswers = {
    &AnswerMeta, &AnswerHeat, &AnswerLine, &AnswerAlerts};

}  // namespace

Result<std::string> TrendAnswer(const TrendDb& database, std::string_view question,
                                const Parameters& parameters, const TrendContext& context) {
  const auto found = std::ranges::find(kTrendQuestions, question);
  if (found == kTrendQuestions.end()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("question: expected one of {}, got '{}'",
                             fmt::join(kTrendQuestions, ", "), question.substr(0, 40)));
  }
  TrendDb::Impl& impl = database.impl();
  TrendDb::Impl* other = context.against == nullptr ? nullptr : &context.against->impl();
  // Against itself there is one lock to take.
  std::unique_lock first(impl.mutex, std::defer_lock);
  std::unique_lock<std::mutex> second;
  if (other != nullptr && other != &impl) {
    second = std::unique_lock(other->mutex, std::defer_lock);
    std::lock(first, second);
    PL_TRY(other->reader.Refresh());
  } else {
    first.lock();
  }
  PL_TRY(impl.reader.Refresh());
  JsonAnswer out;
  out.Open('{');
  PL_TRY(kTrendAnswers[static_cast<size_t>(found - kTrendQuestions.begin())](
      {impl.reader, other == nullptr ? nullptr : &other->reader, parameters, context.cancel}, out));
  out.Close('}');
  return out.Take();
}

}  // namespace plumbline::view
