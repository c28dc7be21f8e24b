#include "verdict/batch_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"

namespace plumbline::verdict {

namespace {

using Keys = std::unordered_set<ContentKey, ContentKeyHash>;

// A part with its place among all calls of its name.
struct Placed {
  uint64_t number = 0;
  uint32_t row = 0;
  DataPart part;
};

bool IsCopy(std::string_view name) {
  return measure::ClassOfCall(name) == measure::CallClass::kCopy;
}

// What forward calls of one side compute, and what is taken from that.
Keys ComputedBy(const Comparison& comparison, bool of_target) {
  Keys computed;
  for (const ComparedCall& call : comparison.calls) {
    const Text& name = measure::NameOn(call, of_target);
    if (name.empty() || KindOfCall(name) != CallKind::kForward) continue;
    const auto rows = measure::RowsOf(comparison, call);
    const bool computes = !IsCopy(name) || std::ranges::any_of(rows, [&](const ComparedRow& row) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      const auto key = item && measure::IsInput(*item) ? KeyOf(*item) : std::nullopt;
      return key && computed.contains(*key);
    });
    if (!computes) continue;
    for (const ComparedRow& row : rows) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      const auto key = item && !measure::IsInput(*item) ? KeyOf(*item) : std::nullopt;
      if (key) computed.insert(*key);
    }
  }
  return computed;
}

using Places = std::map<std::string, std::vector<Placed>>;

Places PlacesOf(const Comparison& comparison, bool of_target) {
  const Keys computed = ComputedBy(comparison, of_target);
  Places places;
  for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
    const ComparedRow& row = comparison.rows[i];
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (!item || !item->is_tensor || item->shape.empty() || item->requires_grad == true) continue;
    const Text& name = measure::NameOn(comparison.calls[row.call], of_target);
    if (KindOfCall(name) != CallKind::kForward) continue;
    if (!measure::IsInput(*item) && !IsCopy(name)) continue;
    const auto key = KeyOf(*item);
    const auto call = ParseCallName(name);
    if (!key || computed.contains(*key) || !call || !call->number) continue;
    places[PlaceOf(name, *item)].push_back({*call->number, i, {row.call, &*item}});
  }
  for (auto& [place, parts] : places) {
    std::ranges::sort(parts, {},
                      [](const Placed& each) { return std::pair(each.number, each.row); });
  }
  return places;
}

using Lengths = std::map<std::string, std::set<int64_t>>;  // by place

// How long what the forward calls of one side without counterpart read or cut off is.
Lengths LengthsAlone(const Comparison& comparison, bool of_target) {
  Lengths lengths;
  for (const ComparedCall& call : comparison.calls) {
    const Text& name = measure::NameOn(call, of_target);
    if (call.paired() || name.empty() || KindOfCall(name) != CallKind::kForward) continue;
    const bool is_copy = IsCopy(name);
    for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      if (!item || !item->is_tensor || item->shape.empty()) continue;
      if (is_copy || measure::IsInput(*item)) lengths[PlaceOf(name, *item)].insert(item->shape[0]);
    }
  }
  return lengths;
}

// Whether there may be data in parts of other sizes at all. Pairs have the same shapes: both sides
// then have calls without counterpart, which read other lengths in one place. Costs nothing where
// all calls are paired.
bool MayBeCut(const Comparison& comparison) {
  const Lengths target = LengthsAlone(comparison, true);
  if (target.empty()) return false;
  const Lengths golden = LengthsAlone(comparison, false);
  return std::ranges::any_of(target, [&](const auto& place) {
    const auto other = golden.find(place.first);
    return other != golden.end() && (place.second.size() > 1 || place.second != other->second);
  });
}

// Without what the other side reads in the same place as it is.
std::vector<DataPart> PartsBeside(const std::vector<Placed>& own,
                                  const std::vector<Placed>& other) {
  Keys known;
  for (const Placed& each : other) known.insert(*KeyOf(*each.part.item));
  std::vector<DataPart> parts;
  for (const Placed& each : own) {
    if (!known.contains(*KeyOf(*each.part.item))) parts.push_back(each.part);
  }
  return parts;
}

int64_t LengthOf(const DataPart& part) { return part.item->shape[0]; }

// Whether each call of the parts returns something that is as long as its part, or in all the same
// number of times that: a weight that is cut in two makes no shorter batch.
bool CallsFollow(const Comparison& comparison, std::span<const DataPart> parts, bool of_target,
                 std::optional<double>& times) {
  return std::ranges::all_of(parts, [&](const DataPart& part) {
    if (!measure::IsInput(*part.item)) return true;
    const auto rows = measure::RowsOf(comparison, comparison.calls[part.call]);
    return std::ranges::any_of(rows, [&](const ComparedRow& row) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      if (!item || measure::IsInput(*item) || !item->is_tensor || item->shape.empty()) return false;
      const double ratio =
          static_cast<double>(item->shape[0]) / static_cast<double>(LengthOf(part));
      if (!times) times = ratio;
      return ratio == *times;
    });
  });
}

// Lays the parts of both sides beside each other and adds what is cut otherwise to `found`.
void Compare(const Comparison& comparison, const std::vector<DataPart>& target,
             const std::vector<DataPart>& golden, std::vector<DataParts>& found) {
  size_t i = 0, j = 0;
  while (i < target.size() && j < golden.size()) {
    const size_t first_target = i, first_golden = j;
    int64_t ours = LengthOf(target[i++]), theirs = LengthOf(golden[j++]);
    while (ours != theirs) {
      if (ours < theirs ? i == target.size() : j == golden.size()) return;
      (ours < theirs ? ours : theirs) += LengthOf(ours < theirs ? target[i++] : golden[j++]);
    }
    if (i - first_target == 1 && j - first_golden == 1) continue;
    const auto some = std::span(target).subspan(first_target, i - first_target);
    const auto others = std::span(golden).subspan(first_golden, j - first_golden);
    std::optional<double> times;
    if (HoldTheSame(some, others) && CallsFollow(comparison, some, true, times) &&
        CallsFollow(comparison, others, false, times)) {
      found.push_back({{some.begin(), some.end()}, {others.begin(), others.end()}});
    }
  }
}

struct Total {
  double max = -std::numeric_limits<double>::infinity();
  double min = std::numeric_limits<double>::infinity();
  double sum = 0, squares = 0, elements = 0;
};

// Nothing where a statistic is missing or not finite.
std::optional<Total> TotalOf(std::span<const DataPart> parts) {
  Total total;
  for (const DataPart& part : parts) {
    std::array<double, 4> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) {
      const std::optional<double> number = NumberOf(part.item->statistics[i]);
      if (!number || !std::isfinite(*number)) return std::nullopt;
      numbers[i] = *number;
    }
    const double count = measure::ElementsOf(*part.item);
    total.max = std::max(total.max, numbers[0]);
    total.min = std::min(total.min, numbers[1]);
    total.sum += numbers[2] * count;
    total.squares += numbers[3] * numbers[3];
    total.elements += count;
  }
  return total;
}

}  // namespace

bool HoldTheSame(std::span<const DataPart> target, std::span<const DataPart> golden) {
  const std::optional<Total> ours = TotalOf(target), theirs = TotalOf(golden);
  if (!ours || !theirs || ours->elements != theirs->elements) return false;
  if (ours->max != theirs->max || ours->min != theirs->min) return false;
  // Means and norms are recorded as float32 numbers.
  const double rounding = measure::kNoiseFactor * UnitRoundoff(DType::kFloat32);
  const double size = std::sqrt(theirs->elements * theirs->squares);
  return std::abs(ours->sum - theirs->sum) <= rounding * size &&
         std::abs(ours->squares - theirs->squares) <= 2 * rounding * theirs->squares;
}

std::string PlaceOf(std::string_view name, const Item& item) {
  const std::optional<CallName> call = ParseCallName(name);
  const bool is_result = !measure::IsInput(item);
  const std::string_view place =
      is_result ? std::string_view("output") : measure::ShortName(item, name);
  const Shape& shape = item.shape;
  return fmt::format("{} {} {} {} {}", call ? call->path : name,
                     call ? call->class_name : std::string_view(), place,
                     item.dtype ? item.dtype->view() : std::string_view(),
                     fmt::join(shape.begin() + 1, shape.end(), ","));
}

std::optional<std::array<Recorded, 4>> StatisticsTogether(std::span<const DataPart> parts) {
  const auto trailing = [](const DataPart& part) {
    return std::span<const int64_t>(part.item->shape.begin(), part.item->shape.end()).subspan(1);
  };
  for (const DataPart& part : parts) {
    const bool fits =
        !part.item->shape.empty() && std::ranges::equal(trailing(part), trailing(parts.front()));
    if (!fits) return std::nullopt;
  }
  const std::optional<Total> total = TotalOf(parts);
  if (!total || !(total->elements > 0)) return std::nullopt;
  return std::array<Recorded, 4>{total->max, total->min, total->sum / total->elements,
                                 std::sqrt(total->squares)};
}

std::vector<DataParts> FindDataParts(const Comparison& comparison) {
  if (!MayBeCut(comparison)) return {};
  const Places target = PlacesOf(comparison, true), golden = PlacesOf(comparison, false);
  std::vector<DataParts> found;
  for (const auto& [place, parts] : target) {
    const auto other = golden.find(place);
    if (other == golden.end()) continue;
    Compare(comparison, PartsBeside(parts, other->second), PartsBeside(other->second, parts),
            found);
  }
  return found;
}

namespace {

// Calls of one API and direction on each side, in the order of their numbers.
struct Series {
  std::vector<std::pair<uint64_t, uint32_t>> target, golden;
};

double LengthOf(std::span<const DataPart> parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0, [](double sum, const DataPart& each) {
    return sum + static_cast<double>(each.item->shape[0]);
  });
}

}  // namespace

std::vector<Twins> FindTwins(const Comparison& comparison, const OtherBatch& batch) {
  std::map<std::string, Series> all;
  for (const uint32_t index : batch.calls) {
    const ComparedCall& call = comparison.calls[index];
    for (const bool of_target : {true, false}) {
      const Text& name = measure::NameOn(call, of_target);
      const auto parsed = ParseCallName(name);
      if (!parsed || !parsed->number || parsed->form != CallName::Form::kApi) continue;
      Series& series = all[fmt::format("{}.{}", parsed->prefix, SeriesOf(name))];
      (of_target ? series.target : series.golden).emplace_back(*parsed->number, index);
    }
  }
  const size_t times = batch.times, ours = batch.target_parts, theirs = batch.golden_parts;
  std::vector<Twins> found;
  if (times * ours * theirs == 0) return found;
  for (auto& [name, series] : all) {
    const size_t each = series.target.size() / (times * ours);  // such calls in one part
    const bool fits = each > 0 && series.target.size() == times * ours * each &&
                      series.golden.size() == times * theirs * each;
    if (!fits) continue;  // one side makes it more often
    std::ranges::sort(series.target);
    std::ranges::sort(series.golden);
    for (size_t k = 0; k < times * each; ++k) {
      const size_t at = k / each, place = k % each;
      Twins twins;
      for (size_t i = 0; i < ours; ++i) {
        twins.target.push_back(series.target[(at * ours + i) * each + place].second);
      }
      for (size_t i = 0; i < theirs; ++i) {
        twins.golden.push_back(series.golden[(at * theirs + i) * each + place].second);
      }
      found.push_back(std::move(twins));
    }
  }
  std::ranges::sort(found, {}, [](const Twins& each) { return each.target.front(); });
  return found;
}

std::vector<DataPart> PartsOf(const Comparison& comparison, std::span<const uint32_t> calls,
                              bool of_target, bool is_input, size_t place) {
  std::vector<DataPart> parts;
  for (const uint32_t index : calls) {
    size_t left = place;
    for (const ComparedRow& row : measure::RowsOf(comparison, comparison.calls[index])) {
      const Slot<Item>& item = measure::SideOf(row, of_target);
      if (!item || !item->is_tensor || measure::IsInput(*item) != is_input) continue;
      if (left-- > 0) continue;
      parts.push_back({index, &*item});
      break;
    }
  }
  if (parts.size() != calls.size()) parts.clear();
  return parts;
}

std::vector<double> SingleNumbers(std::span<const DataPart> parts) {
  std::vector<double> numbers;
  for (const DataPart& part : parts) {
    const auto number = NumberOf(part.item->statistics[0]);
    if (!number || !std::isfinite(*number) || measure::ElementsOf(*part.item) != 1) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

double SumOf(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

double SumOfMagnitudes(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0,
                         [](double sum, double each) { return sum + std::abs(each); });
}

bool AreLaid(std::span<const DataPart> ours, std::span<const DataPart> theirs) {
  const auto has_length = [](const DataPart& each) { return !each.item->shape.empty(); };
  return std::ranges::all_of(ours, has_length) && std::ranges::all_of(theirs, has_length) &&
         LengthOf(ours) == LengthOf(theirs);
}

namespace {

// How far the parts, laid one behind the other, are from golden's; nothing where they are not laid
// so.
std::optional<double> ErrorOf(std::span<const DataPart> ours, std::span<const DataPart> theirs) {
  if (!AreLaid(ours, theirs)) return std::nullopt;
  const auto target = StatisticsTogether(ours), golden = StatisticsTogether(theirs);
  if (!target || !golden) return std::nullopt;
  double count = 0;
  for (const DataPart& part : theirs) count += measure::ElementsOf(*part.item);
  return measure::StatisticError(*target, *golden, static_cast<int64_t>(count));
}

// Of single numbers: sums must add up; means lie between those of the parts.
std::optional<double> ErrorOfNumbers(std::span<const DataPart> ours,
                                     std::span<const DataPart> theirs) {
  const std::vector<double> target = SingleNumbers(ours), golden = SingleNumbers(theirs);
  if (target.empty() || golden.empty() || golden.size() > target.size()) return std::nullopt;
  const double sum = SumOf(golden);
  const double mean = sum / static_cast<double>(golden.size());
  const auto [low, high] = std::ranges::minmax(target);
  if (low <= mean && mean <= high) return 0;
  const double size = std::max(SumOfMagnitudes(golden), SumOfMagnitudes(target));
  return size > 0 ? std::abs(SumOf(target) - sum) / size : 0;
}

struct Errors {
  double found = 0, explained = 0;
};

CulpritEvent TotalEvent(const Comparison& comparison, std::span<const DataPart> ours,
                        std::span<const DataPart> theirs, const Errors& errors) {
  const ComparedCall& call = comparison.calls[ours.front().call];
  const auto rows = measure::RowsOf(comparison, call);
  const auto row = std::ranges::find_if(rows, [&](const ComparedRow& each) {
    return each.target && &*each.target == ours.front().item;
  });
  CulpritEvent event;
  event.call = ours.front().call;
  event.row = call.first_row + static_cast<uint32_t>(row - rows.begin());
  event.kind = CulpritEvent::Kind::kFact;
  event.error = errors.found;
  event.expected = errors.explained;
  event.fact.what = fmt::format(
      "in one of {} parts ({} to {}): laid together, {} is not golden's of {}: relative error "
      "{:.3g}, explained {:.3g}",
      ours.size(), call.target_name, comparison.calls[ours.back().call].target_name,
      measure::ShortName(*ours.front().item, call.target_name),
      comparison.calls[theirs.front().call].golden_name, errors.found, errors.explained);
  event.fact.cause = "unexplained";
  event.fact.cause_text = "parts of a batch are compared by their totals only";
  event.fact.confidence = "low";
  return event;
}

}  // namespace

std::optional<CulpritEvent> FindPartTotal(const Comparison& comparison,
                                          std::span<const Twins> twins, double most,
                                          const std::optional<CulpritEvent>& weight) {
  constexpr size_t kMostResults = 64;
  for (const Twins& each : twins) {
    const bool is_weighed =
        weight && std::ranges::find(each.target, weight->call) != each.target.end();
    if (is_weighed) return weight;
    for (size_t place = 0; place < kMostResults; ++place) {
      const auto ours = PartsOf(comparison, each.target, true, false, place);
      const auto theirs = PartsOf(comparison, each.golden, false, false, place);
      if (ours.empty() || theirs.empty()) break;
      std::optional<double> error = ErrorOf(ours, theirs);
      const bool is_forward =
          KindOfCall(comparison.calls[each.target.front()].target_name) == CallKind::kForward;
      if (!error && is_forward) error = ErrorOfNumbers(ours, theirs);
      if (error && *error > most) return TotalEvent(comparison, ours, theirs, {*error, most});
    }
  }
  return weight;
}

bool IsSumRead(const Comparison& comparison) {
  std::unordered_set<ContentKey, ContentKeyHash> known;
  for (const ComparedRow& row : comparison.rows) {
    const bool is_made = !measure::IsInput(row.item());
    if (!row.target || (comparison.calls[row.call].paired() && !is_made)) continue;
    if (KindOfCall(comparison.calls[row.call].name()) == CallKind::kParametersGrad) continue;
    if (const auto key = KeyOf(*row.target)) known.insert(*key);
  }
  return std::ranges::any_of(comparison.rows, [&](const ComparedRow& row) {
    if (!row.target || !comparison.calls[row.call].paired() || !IsTelling(*row.target))
      return false;
    const CallKind kind = KindOfCall(comparison.calls[row.call].name());
    if (kind == CallKind::kParametersGrad) return true;
    const bool is_read = kind == CallKind::kForward && measure::IsInput(row);
    return is_read && measure::ElementsOf(*row.target) > 1 && !known.contains(*KeyOf(*row.target));
  });
}

namespace {

double RoundoffOf(std::span<const DataPart> parts) {
  double roundoff = 0;
  for (const DataPart& part : parts) {
    roundoff = std::max(roundoff, measure::RoundoffOf(*part.item, *part.item));
  }
  return roundoff;
}

// The gradients of single numbers that go into one backward call in every part.
struct Seeds {
  std::vector<DataPart> target, golden;
  std::vector<double> ours, theirs;
};

std::optional<Seeds> SeedsOf(const Comparison& comparison, const Twins& twins) {
  const ComparedCall& call = comparison.calls[twins.target.front()];
  if (KindOfCall(call.target_name) != CallKind::kBackward) return std::nullopt;
  Seeds seeds{PartsOf(comparison, twins.target, true, true, 0),
              PartsOf(comparison, twins.golden, false, true, 0),
              {},
              {}};
  seeds.ours = SingleNumbers(seeds.target);
  seeds.theirs = SingleNumbers(seeds.golden);
  if (seeds.ours.empty() || seeds.theirs.empty()) return std::nullopt;
  // It is spread over the samples.
  const auto spread = PartsOf(comparison, twins.target, true, false, 0);
  const auto whole = PartsOf(comparison, twins.golden, false, false, 0);
  if (spread.empty() || whole.empty() || !AreLaid(spread, whole)) return std::nullopt;
  return seeds;
}

// Whether the losses of the parts average to golden's, and do not add up to it.
bool AreMeans(const Comparison& comparison, const Twins& twins) {
  const auto forward = [&](std::span<const uint32_t> backward, bool of_target) {
    std::vector<uint32_t> found;
    for (const uint32_t index : backward) {
      const std::string name = ForwardNameOf(measure::NameOn(comparison.calls[index], of_target));
      const auto call = std::ranges::find_if(comparison.calls, [&](const ComparedCall& each) {
        return measure::NameOn(each, of_target) == name;
      });
      if (call != comparison.calls.end()) {
        found.push_back(static_cast<uint32_t>(call - comparison.calls.begin()));
      }
    }
    return SingleNumbers(PartsOf(comparison, found, of_target, false, 0));
  };
  const std::vector<double> ours = forward(twins.target, true);
  const std::vector<double> theirs = forward(twins.golden, false);
  if (ours.empty() || theirs.empty() || ours.size() <= theirs.size()) return false;
  const double mean = SumOf(theirs) / static_cast<double>(theirs.size());
  const auto [low, high] = std::ranges::minmax(ours);
  return low <= mean && mean <= high;
}

// The part that counts otherwise; nothing where none does.
std::optional<size_t> OddPart(const Seeds& seeds, bool are_means) {
  const double roundoff = std::max(RoundoffOf(seeds.target), RoundoffOf(seeds.golden));
  const double slack = measure::kNoiseFactor * roundoff;
  const auto near = [&](double one, double other) {
    return std::abs(one - other) <= slack * std::max(std::abs(one), std::abs(other));
  };
  // Sums over samples: each counts the same. Golden's parts must, or nothing is known of them.
  const double usual = seeds.theirs.front();
  const auto is_usual = [&](double each) { return near(each, usual); };
  const bool golden_is_even = !are_means && std::ranges::all_of(seeds.theirs, is_usual);
  const auto ours_usual = static_cast<size_t>(std::ranges::count_if(seeds.ours, is_usual));
  if (golden_is_even && ours_usual == seeds.ours.size()) return std::nullopt;
  // Means: together they count as much as golden's.
  const double off = std::abs(SumOf(seeds.ours) - SumOf(seeds.theirs));
  if (off <= slack * (SumOfMagnitudes(seeds.ours) + SumOfMagnitudes(seeds.theirs)))
    return std::nullopt;
  if (golden_is_even && ours_usual > 0) {
    const auto odd = std::ranges::find_if_not(seeds.ours, is_usual);
    return static_cast<size_t>(odd - seeds.ours.begin());
  }
  // Of means the part that is furthest from the others.
  std::vector<double> sorted = seeds.ours;
  std::ranges::sort(sorted);
  const double middle = sorted[(sorted.size() - 1) / 2];
  const auto odd = std::ranges::max_element(seeds.ours, {},
                                            [&](double each) { return std::abs(each - middle); });
  return static_cast<size_t>(odd - seeds.ours.begin());
}

// The forward call that gave the loss this weight: the one whose gradient, the last before it, the
// seed is; else the loss.
uint32_t WeighingCall(const Comparison& comparison, const OtherBatch& batch, const DataPart& seed) {
  const auto key = KeyOf(*seed.item);
  std::string maker = comparison.calls[seed.call].target_name;
  for (const uint32_t index : batch.calls) {
    if (index >= seed.call) break;
    const ComparedCall& call = comparison.calls[index];
    if (KindOfCall(call.target_name) != CallKind::kBackward) continue;
    const bool makes =
        std::ranges::any_of(measure::RowsOf(comparison, call), [&](const ComparedRow& row) {
          return row.target && !measure::IsInput(row) && KeyOf(*row.target) == key;
        });
    if (makes) maker = call.target_name;
  }
  const ComparedCall* forward = ForwardCallOf(comparison, maker);
  return forward == nullptr ? seed.call : static_cast<uint32_t>(forward - comparison.calls.data());
}

std::string NumbersText(const std::vector<double>& numbers) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(numbers.size(), kMost); ++i) {
    text += fmt::format("{}{:.6g}", i == 0 ? "" : ", ", numbers[i]);
  }
  return numbers.size() > kMost ? text + ", ..." : text;
}

std::string WeightText(const Seeds& seeds, size_t odd) {
  const double usual = seeds.theirs.front();
  const bool is_alone =
      seeds.ours[odd] != usual && std::ranges::find(seeds.ours, usual) != seeds.ours.end();
  if (is_alone) {
    return fmt::format("the loss of part {} of {} weighs {:.6g} times as much as golden's", odd + 1,
                       seeds.ours.size(), seeds.ours[odd] / usual);
  }
  return fmt::format("the losses of all parts together weigh {:.6g} times as much as golden's",
                     SumOf(seeds.ours) / SumOf(seeds.theirs));
}

}  // namespace

std::optional<CulpritEvent> FindPartWeight(const Comparison& comparison, const OtherBatch& batch,
                                           std::span<const Twins> twins, bool is_wrong) {
  for (const Twins& each : twins) {
    const std::optional<Seeds> seeds = SeedsOf(comparison, each);
    if (!seeds) continue;
    const std::optional<size_t> odd = OddPart(*seeds, is_wrong && AreMeans(comparison, each));
    if (!odd) continue;
    const DataPart& part = seeds->target[*odd];
    CulpritEvent event;
    event.call = WeighingCall(comparison, batch, part);
    event.row = comparison.calls[event.call].first_row;
    event.kind = CulpritEvent::Kind::kFact;
    event.fact.what = fmt::format(
        "the losses of the parts are not weighed as golden's: the gradients that enter {} and its "
        "like in the other parts are {} (golden {})",
        comparison.calls[part.call].target_name, NumbersText(seeds->ours),
        NumbersText(seeds->theirs));
    event.fact.cause = "scale";
    event.fact.cause_text = WeightText(*seeds, *odd);
    event.fact.confidence = "high";
    return event;
  }
  return std::nullopt;
}

}  // namespace plumbline::verdict
