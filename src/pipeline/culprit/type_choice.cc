#include "pipeline/culprit/type_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/parallel.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "plumbline/tensor.h"
#include "report/other_ways.h"

namespace plumbline::pipeline {
namespace {

// Above this share of values in a narrower type the target's types are a choice.
constexpr double kNarrowedByChoice = 0.2;
// A stray cast ends at the next product, whose weight has another type.
constexpr double kOtherByChoice = 0.5;
constexpr size_t kBlock = 8192;  // of rows that one thread looks at in one go

double ShareNarrowed(const Comparison& comparison) {
  std::atomic<uint64_t> all{0}, narrowed{0};
  ParallelBlocks(comparison.rows.size(), kBlock, [&](size_t begin, size_t end) {
    uint64_t floating = 0, narrower = 0;
    for (size_t i = begin; i < end; ++i) {
      const ComparedRow& row = comparison.rows[i];
      if (!row.target || !row.golden) continue;
      const double golden = measure::RoundoffOf(*row.golden, *row.golden);
      if (golden == 0) continue;
      ++floating;
      if (row.target->dtype == row.golden->dtype && row.target->is_tensor) continue;
      if (measure::RoundoffOf(*row.target, *row.target) > golden) ++narrower;
    }
    all += floating;
    narrowed += narrower;
  });
  return all > 0 ? static_cast<double>(narrowed) / static_cast<double>(all) : 0;
}

bool IsFloating(const ComparedRow& row) {
  return row.golden && measure::RoundoffOf(*row.golden, *row.golden) > 0;
}

bool IsOfOtherType(const ComparedCall& call) {
  return !call.paired() && !call.target_name.empty() && call.unmatched_reason == "dtype-differs";
}

double ShareOfOtherTypes(const Comparison& comparison) {
  const auto other = static_cast<double>(
      std::count_if(comparison.calls.begin(), comparison.calls.end(), IsOfOtherType));
  if (other == 0) return 0;
  double paired = 0;
  for (const ComparedCall& call : comparison.calls) {
    if (!call.paired()) continue;
    const auto rows = measure::RowsOf(comparison, call);
    paired += std::any_of(rows.begin(), rows.end(), IsFloating) ? 1 : 0;
  }
  return other / (other + paired);
}

double RoundoffNamedBy(const Item& item) {
  const auto* name = item.is_tensor ? nullptr : std::get_if<Text>(&item.statistics[0]);
  const std::optional<DType> type =
      name == nullptr ? std::nullopt : ParseDType(std::string_view(*name));
  return type ? UnitRoundoff(*type) : 0;
}

bool IsNarrowerTensor(const ComparedRow& row) {
  return measure::HasTensors(row) && IsFloating(row) &&
         measure::RoundoffOf(*row.target, *row.target) >
             measure::RoundoffOf(*row.golden, *row.golden);
}

bool Computes(const ComparedCall& call) {
  const measure::CallClass known = measure::ClassOfCall(call.target_name);
  return known != measure::CallClass::kCopy && known != measure::CallClass::kUninitialised;
}

std::optional<uint32_t> StartOf(const Comparison& comparison) {
  const auto first = std::ranges::find_if(comparison.rows, IsNarrowerTensor);
  if (first == comparison.rows.end() || measure::IsInput(*first)) return std::nullopt;
  const ComparedCall& call = comparison.calls[first->call];
  const auto rows = measure::RowsOf(comparison, call);
  const bool reads = std::ranges::any_of(rows, [](const ComparedRow& row) {
    return measure::IsInput(row) && measure::HasTensors(row) && IsFloating(row);
  });
  return reads && call.paired() && Computes(call) ? std::optional(first->call) : std::nullopt;
}

}  // namespace

TypeChoice TypeChoiceOf(const Comparison& comparison) {
  TypeChoice choice{.is_narrower = ShareNarrowed(comparison) > kNarrowedByChoice,
                    .is_other = ShareOfOtherTypes(comparison) > kOtherByChoice,
                    .starts_at = {}};
  if (choice.is_narrower) choice.starts_at = StartOf(comparison);
  return choice;
}

void NoteNarrowed(Comparison& comparison) {
  const auto first = std::ranges::find_if(comparison.rows, IsNarrowerTensor);
  const bool is_of_calls = !comparison.of_saves && !comparison.of_graphs();
  if (first == comparison.rows.end() || !is_of_calls) return;
  if (!(ShareNarrowed(comparison) > kNarrowedByChoice)) return;
  const auto count = std::ranges::count_if(comparison.calls, [&](const ComparedCall& call) {
    return std::ranges::any_of(measure::RowsOf(comparison, call), IsNarrowerTensor);
  });
  const std::string_view dtype = first->target->dtype->view();
  first->notes.push_back(
      {std::string(report::kNarrowed),
       fmt::format("{} from {} on ({} call{})", dtype.substr(dtype.rfind('.') + 1),
                   comparison.calls[first->call].name(), count, count == 1 ? "" : "s")});
}

bool IsNarrowerType(const Item& target, const Item& golden) {
  const double roundoff = RoundoffNamedBy(golden);
  return roundoff > 0 && RoundoffNamedBy(target) > roundoff;
}

}  // namespace plumbline::pipeline
