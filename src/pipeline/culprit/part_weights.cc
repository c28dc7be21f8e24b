#include "pipeline/culprit/part_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/data_parts.h"
#include "record/value.h"

namespace plumbline::pipeline {
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

}  // namespace plumbline::pipeline
