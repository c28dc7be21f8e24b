// The members of what rules come to, for processes that hand it to each other
// (base/text/json_record.h).

#ifndef PLUMBLINE_WATCH_RULES_WATCH_ROW_RECORD_H_
#define PLUMBLINE_WATCH_RULES_WATCH_ROW_RECORD_H_

#include "base/text/json_record.h"
#include "watch/rules/step_watch.h"
#include "watch/rules/watch_row.h"

namespace plumbline::watch {

void VisitRecord(auto& archive, json::RecordOf<Interval> auto& interval) {
  archive(interval.low, interval.high);
}

void VisitRecord(auto& archive, json::RecordOf<RowCheck> auto& check) {
  archive(check.parameter);
  archive.Choice(check.relation, Relation::kEqual);
  archive(check.threshold);
  archive.Choice(check.truth, Truth::kUnknown);
  archive(check.actual, check.reasons);
  archive.Choice(check.quantity, Quantity::kOperatorOverflow);
}

void VisitRecord(auto& archive, json::RecordOf<WatchRow> auto& row) {
  archive(row.rule, row.step, row.prev_step, row.gap, row.rank, row.graph, row.name, row.io,
          row.slot, row.dtype, row.shape, row.file, row.source_line);
  archive.Choice(row.verdict, Truth::kUnknown);
  archive(row.reasons, row.checks, row.place, row.slot_number);
}

void VisitRecord(auto& archive, json::RecordOf<RuleCounts> auto& counts) {
  archive(counts.selected, counts.hits, counts.passes, counts.unjudged, counts.reasons);
}

void VisitRecord(auto& archive, json::RecordOf<StepAnswer> auto& answer) {
  archive(answer.rows, answer.counts, answer.tensors, answer.read_bytes, answer.matched,
          answer.seen_kinds, answer.has_trained, answer.other_names);
}

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_RULES_WATCH_ROW_RECORD_H_
