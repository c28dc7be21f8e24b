// An answer of a rule as result files have it: one rule and one tensor at one step.

#ifndef PLUMBLINE_WATCH_RULES_WATCH_ROW_H_
#define PLUMBLINE_WATCH_RULES_WATCH_ROW_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/shared_value.h"
#include "watch/rules/rule.h"

namespace plumbline::watch {

// A check of a row.
struct RowCheck {
  Text parameter;
  Relation relation = Relation::kGreater;
  double threshold = 0;
  Truth truth = Truth::kUnknown;
  Interval actual;
  Reasons reasons = 0;
  Quantity quantity = Quantity::kMean;
};

// One rule and one tensor at one step.
struct WatchRow {
  size_t rule = 0;
  int64_t step = 0;
  std::optional<int64_t> prev_step;
  int64_t gap = 0;  // executed steps between the two
  int64_t rank = 0;
  Text graph, name, io, slot, dtype, shape, file, source_line;
  Truth verdict = Truth::kUnknown;
  Reasons reasons = 0;
  std::vector<RowCheck> checks;
  int64_t place = 0, slot_number = 0;  // what rows are sorted by
};

// What a rule came to over many tensors.
struct RuleCounts {
  uint64_t selected = 0, hits = 0, passes = 0, unjudged = 0;
  std::array<uint64_t, kReasonCount> reasons{};

  RuleCounts& operator+=(const RuleCounts& other);
};

// Columns of tables of rows.
inline constexpr std::array<std::string_view, 19> kWatchColumns = {
    "rule",  "severity",  "step",      "prev_step", "rank",    "graph",  "name",
    "io",    "slot",      "dtype",     "shape",     "parameter", "threshold", "actual",
    "verdict", "reason",  "upstream_code", "source_line", "file"};
std::array<std::string, kWatchColumns.size()> WatchCells(const Rule& rule, const WatchRow& row);

// "gradient_vanishing at step 3 rank 0 fc.weight grad_reduced 0 (abs_mean 2.1e-10 < 1e-09)".
std::string HitText(const Rule& rule, const WatchRow& row);
// "2 hits, 39 no hit, 14 not evaluated (nan 6, no_prev 8)".
std::string CountsText(const RuleCounts& counts);
std::string_view VerdictText(Truth verdict);  // "hit", "no_hit", "not_evaluated"
// Whether the number of a check says something: an overflow has none.
bool HasNumber(const RowCheck& check);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_RULES_WATCH_ROW_H_
