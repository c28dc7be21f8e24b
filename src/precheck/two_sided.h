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
#include "precheck/result_rows.h"

namespace plumbline::precheck {

struct TwoSidedOptions {
  std::string target_details, golden_details;  // paths of accuracy_checking_details_*.csv
  std::string output_directory = "./";         // made if it is not there
  int precision = 14;                          // digits behind the point
};

// What of a row of the reference decides.
struct GoldenNumbers {
  std::optional<double> small_value, rmse, max_rel_error, mean_rel_error, error_balance;
  std::optional<double> mean_ulp, ulp_proportion;
  bool has_nan_cosine = false;  // an element is NaN or infinite
  std::string problem;    // of reading the row
  bool repeated = false;  // another row has the same name
  bool is_used = false;   // the target has such an output

  explicit GoldenNumbers(const DetailsRow& row);
};

// A metric that decided, with what is said about it: two cells of the details file.
struct SidedMetric {
  Cell value;
  CheckStatus status = CheckStatus::kNone;
};

// What both sides say of one output; a row of the details file.
struct TwoSidedRow {
  std::string name;
  SidedMetric small_value, rmse, max_rel_error, mean_rel_error, error_balance;  // ratios
  SidedMetric inf_nan, rel_error, abs_error, error_rate, thousandth;            // of the target
  Cell mean_ulp, ulp_proportion;                                                // of the target
  SidedMetric ulp;  // ratio of the proportions
  CheckStatus status = CheckStatus::kNone;
  std::string algorithm;  // as the file names it; empty: none applied
  std::string message;    // one line per fact
  // How many times the worst metric is over its limit, by which errors are ordered; infinite where
  // NaN or Inf is on one side only and where there is no number. Where no element may be wrong, a
  // thousandth of them counts as the limit.
  double excess = 0;
  std::string reason;  // of an error: that metric
};

// The decision on one output: pass, error or SKIP. A ratio is |target| / max(|golden|, floor of the
// device dtype). The standard is that of the API's name and the dtype; where the row has none of
// its numbers, the one whose numbers it has, as release 26.2 judges every float by the same
// standard. An output that is wrong by itself and has no numbers (another shape, another type) is
// an error here too. `golden` null: the reference has no such output.
TwoSidedRow JudgeTwoSided(const DetailsRow& target, const GoldenNumbers* golden);

// Calls by status of a direction, and outputs by status; the index is a CheckStatus.
using StatusCounts = std::array<size_t, 5>;
struct TwoSidedCounts {
  size_t calls = 0;
  StatusCounts forward{}, backward{}, outputs{};
  size_t only_target = 0;  // outputs without a row on the reference
  size_t only_golden = 0;  // outputs without a row on the target
};

// The rows of one call, of the same inputs on both devices, as the two files have them; `note` ends
// the message of the result. The headers of the files.
CallRows TwoSidedRowsOf(const CallOutcome& target, const CallOutcome& golden, int precision);
std::string TwoSidedDetailsHeader();
std::string TwoSidedResultHeader();

struct TwoSidedResult {
  TwoSidedCounts counts;
  std::optional<TwoSidedRow> worst;  // of the errors, the one with the largest excess
  std::string result_path, details_path;
};

// Judges every row of the target's file and writes
// `api_precision_compare_{result,details}_<time>.csv`, each complete or not at all. The details
// have the order of the target's file, the result that of the first output of each call. Memory
// grows with the rows of the reference. Errors are those of VisitDetails(), and kIo.
Result<TwoSidedResult> CompareTwoSided(const TwoSidedOptions& options);

// One line: the worst output and why, or that none is worse, and how many rows only one side has.
std::string TwoSidedAnswer(const TwoSidedResult& result);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_TWO_SIDED_H_
