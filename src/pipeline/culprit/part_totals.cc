#include "pipeline/culprit/part_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/data_parts.h"
#include "record/value.h"

namespace plumbline::pipeline {
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

}  // namespace plumbline::pipeline
