#include "pipeline/count_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "pipeline/culprit/discrete_flip.h"

namespace plumbline::pipeline {
namespace {

constexpr std::string_view kUnwritten = "uninitialised";

// Follows memory that was NaN on both sides when a call allocated it: to the call that fills it,
// and through parts and copies of it. Memory is told by its type and shape.
class UnwrittenMemory {
 public:
  explicit UnwrittenMemory(Comparison& comparison) : comparison_(comparison) {}

  void Mark() {
    for (const ComparedCall& call : comparison_.calls) {
      if (call.paired()) MarkRowsOf(call);
    }
  }

 private:
  using Form = std::pair<std::string, std::string>;  // data type, shape

  static Form FormOf(const ComparedRow& row) {
    const Item& item = *row.target;
    return {item.dtype ? std::string(item.dtype->view()) : "",
            item.shape_text ? std::string(item.shape_text->view()) : ""};
  }

  void MarkRowsOf(const ComparedCall& call) {
    const std::span<ComparedRow> rows =
        std::span(comparison_.rows).subspan(call.first_row, call.row_count);
    ComparedRow* read = nullptr;
    size_t count = 0;
    for (ComparedRow& row : rows) {
      if (!measure::IsInput(row)) continue;
      if (row.reason == "overwritten" && measure::HasNan(*row.target)) ++count;
      if (!measure::IsNanOnBoth(row)) continue;
      read = &row;
      ++count;
    }
    // Of several such values one may be real: what is copied over the memory, for example.
    const bool reads_memory = read != nullptr && count == 1 && memory_.contains(FormOf(*read));
    if (reads_memory) read->reason = kUnwritten;
    const bool is_part =
        reads_memory && measure::ClassOfCall(call.name()) == measure::CallClass::kCopy;
    for (ComparedRow& row : rows) {
      if (measure::IsInput(row) || !row.target || !row.golden) continue;
      if (is_part && measure::IsNanOnBoth(row)) row.reason = kUnwritten;
      if (row.reason == kUnwritten && measure::HasNan(*row.target)) memory_.insert(FormOf(row));
    }
  }

  Comparison& comparison_;
  std::set<Form> memory_;
};

// Counts the values that are NaN on both sides, and says where they begin.
void CountNan(Comparison& comparison) {
  const auto is_counted = [&](const ComparedRow& row) {
    return comparison.calls[row.call].paired() && measure::IsNanOnBoth(row);
  };
  UnwrittenMemory(comparison).Mark();
  const auto count = static_cast<uint64_t>(std::ranges::count_if(comparison.rows, is_counted));
  if (count == 0) return;
  comparison.counts.missing_values += count;
  const auto first = std::ranges::find_if(comparison.rows, is_counted);
  comparison.warnings.push_back(
      fmt::format("{}: {} is NaN on both sides{}; nothing tells whether that is right",
                  comparison.calls[first->call].name(), first->item().name.view(),
                  count == 1 ? "" : fmt::format(", the first of {} such values", count)));
}

}  // namespace

void CountRows(Comparison& comparison) {
  static constexpr auto kMissing = std::to_array<std::string_view>(
      {"no-data", "shape-differs", "structure-differs", kFollowsFlip});
  bool any_nan = false;
  for (const ComparedRow& row : comparison.rows) {
    ++comparison.counts.rows[static_cast<size_t>(row.verdict)];
    if (!comparison.calls[row.call].paired()) continue;
    if (std::ranges::count(kMissing, row.reason.view()) > 0) ++comparison.counts.missing_values;
    any_nan = any_nan || measure::IsNanOnBoth(row);
  }
  if (any_nan) CountNan(comparison);
}

}  // namespace plumbline::pipeline
