// The pre-check of one recording on two devices side by side: the errors of the target device
// divided by those of a reference device, from the details files of both.

#ifndef PLUMBLINE_PRECHECK_TWO_SIDED_H_
#define PLUMBLINE_PRECHECK_TWO_SIDED_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plumbline/result.h"
#include "precheck/outcome.h"
#include "precheck/result_files.h"

namespace plumbline::precheck {

struct TwoSidedOptions {
  std::string target_details, golden_details;  // paths of accuracy_checking_details_*.csv
  std::string output_directory = "./";
  std::string timestamp;  // of the names of the files; empty: now
  int precision = 14;     // digits behind the point
};

// A metric that decided, with what it said: a cell and a word of the details file.
struct SidedMetric {
  Cell value;
  Status status = Status::kNone;
};

// What both sides say of one output; a row of the details file.
struct TwoSidedRow {
  std::string name;
  SidedMetric small_value, rmse, max_rel_error, mean_rel_error, error_balance;  // ratios
  SidedMetric inf_nan, rel_error, abs_error, error_rate;                       // of the target
  Cell mean_ulp, ulp_proportion;
  SidedMetric ulp;  // ratio of the proportions
  SidedMetric thousandth;
  Status result = Status::kNone;
  std::string_view algorithm;  // as the file names it; empty: none applied
  std::string message;
  // How many times the worst metric is over its limit, by which errors are ordered; infinite where
  // only one side has NaN or Inf. A limit of nothing counts as one element of a thousand.
  double excess = 0;
  std::string reason;  // of an error: the metric that is furthest over
};

// The decision on one output. Ratios are |target| / max(|golden|, least error of the dtype); the
// standard is that of the API's name, or the one whose numbers the row has. `golden` null: the
// reference has no such row.
TwoSidedRow JudgeTwoSided(const DetailsRow& target, const DetailsRow* golden);

struct TwoSidedCounts {
  std::array<size_t, 5> forward{}, backward{}, outputs{};  // by Status
  size_t calls = 0;
  size_t no_counterpart = 0;  // outputs that only the target has
  size_t only_golden = 0;     // outputs that only the reference has
};

struct TwoSidedResult {
  TwoSidedCounts counts;
  std::optional<TwoSidedRow> worst;  // the output with the largest excess
  std::string result_path, details_path;
};

// Judges every row of the target's file, in its order, and writes
// `api_precision_compare_{result,details}_<timestamp>.csv`, each complete or not at all. Memory grows
// with the rows of the reference. Errors are those of VisitDetails(), and kIo.
Result<TwoSidedResult> CompareTwoSided(const TwoSidedOptions& options);

// One sentence: the worst output and why, or that none is worse.
std::string TwoSidedAnswer(const TwoSidedResult& result);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_TWO_SIDED_H_
