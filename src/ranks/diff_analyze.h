// The files of upstream's search for the first difference (`-da`): what every call of a rank is,
// and the calls where it starts.

#ifndef PLUMBLINE_RANKS_DIFF_ANALYZE_H_
#define PLUMBLINE_RANKS_DIFF_ANALYZE_H_

#include <string>

#include "ranks/rank_summary.h"

namespace plumbline::ranks {

// Writes compare_result_{rank directory}_<time>.json of upstream's newest release: per call
// `is_same` and the rows of the result table. A call is the same when no output of it is
// suspicious, broken, missing or unreadable by plumbline's verdict; NaN, Inf and missing values are
// never the same. kIo.
Status WriteCallVerdicts(const Comparison& comparison, const std::string& path);

// The text of diff_analyze_<ns>.json: the origins of the report, by rank, with their rows as the
// verdict files hold them (taken from the files of each rank's outcome, named
// compare_result_{rank directory}_*). kIo, kCorrupt.
Result<std::string> FormatFirstDifference(const RanksReport& report);

}  // namespace plumbline::ranks

#endif  // PLUMBLINE_RANKS_DIFF_ANALYZE_H_
