// The members of a CallOutcome, for processes that hand outcomes to each other
// (base/text/json_record.h).

#ifndef PLUMBLINE_PRECHECK_PARTS_OUTCOME_RECORD_H_
#define PLUMBLINE_PRECHECK_PARTS_OUTCOME_RECORD_H_

#include "base/text/json_record.h"
#include "precheck/outcome.h"

namespace plumbline::precheck {

void VisitRecord(auto& archive, json::RecordOf<Skip> auto& skip) {
  archive.Choice(skip.cause, SkipCause::kOther);
  archive(skip.detail);
}

void VisitRecord(auto& archive, json::RecordOf<Number> auto& number) {
  archive(number.value, number.is_double, number.is_integer);
}

void VisitRecord(auto& archive, json::RecordOf<FailureFacts> auto& facts) {
  archive(facts.worst_index, facts.worst_bench, facts.worst_device, facts.histogram);
}

void VisitRecord(auto& archive, json::RecordOf<OutputRow> auto& row) {
  archive(row.name, row.bench_dtype, row.device_dtype, row.shape, row.cosine, row.max_abs_error,
          row.hundredth, row.thousandth, row.ten_thousandth, row.error_rate, row.error_balance,
          row.rmse, row.small_value_error_ratio, row.max_rel_error, row.mean_rel_error,
          row.inf_nan_error_ratio, row.rel_error_ratio, row.abs_error_ratio, row.max_ulp,
          row.mean_ulp, row.ulp_proportion);
  archive.Choice(row.status, CheckStatus::kSkip);
  archive(row.is_all_zero, row.message, row.facts);
}

void VisitRecord(auto& archive, json::RecordOf<DirectionOutcome> auto& direction) {
  archive.Choice(direction.status, CheckStatus::kSkip);
  archive(direction.rows, direction.skip);
}

void VisitRecord(auto& archive, json::RecordOf<CallOutcome> auto& outcome) {
  archive(outcome.name, outcome.forward, outcome.backward, outcome.merged_calls, outcome.note);
}

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_PARTS_OUTCOME_RECORD_H_
