#include "pipeline/culprit/part_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/data_parts.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

using Calls = std::vector<uint32_t>;  // indices into Comparison::calls

// The same call in every part of one batch.
struct Twins {
  Calls target, golden;
};

// Calls of one API and direction on each side, in the order of their numbers.
struct Series {
  std::vector<std::pair<uint64_t, uint32_t>> target, golden;
};

// The calls that saw parts, grouped; in the order in which the target made them for its first part.
std::vector<Twins> FindTwins(const Comparison& comparison, const OtherBatch& batch) {
  std::map<std::string, Series> all;
  for (const uint32_t index : batch.calls) {
    const ComparedCall& call = comparison.calls[index];
    for (const bool of_target : {true, false}) {
      const std::string& name = measure::NameOn(call, of_target);
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

// What the k-th row with a tensor of one role holds in every call of one side; empty where one of
// them has none.
std::vector<DataPart> PartsOf(const Comparison& comparison, const Calls& calls, bool of_target,
                              bool is_input, size_t place) {
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

double SumOf(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

double SizeOf(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0,
                         [](double sum, double each) { return sum + std::abs(each); });
}

double RoundoffOf(std::span<const DataPart> parts) {
  double roundoff = 0;
  for (const DataPart& part : parts) {
    roundoff = std::max(roundoff, measure::RoundoffOf(*part.item, *part.item));
  }
  return roundoff;
}

double LengthOf(std::span<const DataPart> parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0, [](double sum, const DataPart& each) {
    return sum + static_cast<double>(each.item->shape[0]);
  });
}

// Whether the parts are laid along their first dimension: together as long as golden's.
bool AreLaid(std::span<const DataPart> ours, std::span<const DataPart> theirs) {
  const auto has_length = [](const DataPart& each) { return !each.item->shape.empty(); };
  return std::ranges::all_of(ours, has_length) && std::ranges::all_of(theirs, has_length) &&
         LengthOf(ours) == LengthOf(theirs);
}

// --- weights of losses ------------------------------------------------------------------------

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
  const auto forward = [&](const Calls& backward, bool of_target) {
    Calls found;
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
  if (off <= slack * (SizeOf(seeds.ours) + SizeOf(seeds.theirs))) return std::nullopt;
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
  const std::string forward = ForwardNameOf(maker);
  const auto found = std::ranges::find(comparison.calls, forward, &ComparedCall::target_name);
  return found == comparison.calls.end() ? seed.call
                                         : static_cast<uint32_t>(found - comparison.calls.begin());
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

// --- totals of results ------------------------------------------------------------------------

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
  const double size = std::max(SizeOf(golden), SizeOf(target));
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

std::optional<CulpritEvent> FindPartWeight(const Comparison& comparison, const OtherBatch& batch,
                                           bool is_wrong) {
  for (const Twins& twins : FindTwins(comparison, batch)) {
    const std::optional<Seeds> seeds = SeedsOf(comparison, twins);
    if (!seeds) continue;
    const std::optional<size_t> odd = OddPart(*seeds, is_wrong && AreMeans(comparison, twins));
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

std::optional<CulpritEvent> FindPartTotal(const Comparison& comparison, const OtherBatch& batch,
                                          double most, const std::optional<CulpritEvent>& weight) {
  constexpr size_t kMostResults = 64;
  for (const Twins& twins : FindTwins(comparison, batch)) {
    const bool is_weighed =
        weight && std::ranges::find(twins.target, weight->call) != twins.target.end();
    if (is_weighed) return weight;
    for (size_t place = 0; place < kMostResults; ++place) {
      const auto ours = PartsOf(comparison, twins.target, true, false, place);
      const auto theirs = PartsOf(comparison, twins.golden, false, false, place);
      if (ours.empty() || theirs.empty()) break;
      std::optional<double> error = ErrorOf(ours, theirs);
      const bool is_forward =
          KindOfCall(comparison.calls[twins.target.front()].target_name) == CallKind::kForward;
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

}  // namespace plumbline::pipeline
