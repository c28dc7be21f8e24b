// The result tables of all ranks in one SQLite database (docs/reference/compare-ranks.md, "One
// database").

#ifndef PLUMBLINE_RANKS_RANKS_DATABASE_H_
#define PLUMBLINE_RANKS_RANKS_DATABASE_H_

#include <string>

#include "ranks/rank_summary.h"

namespace plumbline::ranks {

// Tables `facts`, `ranks` and `origins` of `summary` (RanksSummaryJson()); `calls` and `rows` of
// the databases of all compared ranks, one after the other, with a column `rank_id` in front; the
// view `wrong`. Memory does not grow with the ranks; what does not become whole leaves no file.
// Requires: each rank's outcome names its database. kIo, also where that is gone; kCorrupt: it is
// damaged, or has other verdicts than the outcome counts.
Status WriteRanksDatabase(const RanksReport& report, const std::string& summary,
                          const std::string& path);

}  // namespace plumbline::ranks

#endif  // PLUMBLINE_RANKS_RANKS_DATABASE_H_
