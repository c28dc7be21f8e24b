// `plumb explain`: what the black boxes of a training saw first, over all ranks.

#ifndef PLUMBLINE_WATCH_BLACK_BOX_REPORT_H_
#define PLUMBLINE_WATCH_BLACK_BOX_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plumbline/result.h"
#include "watch/live/diagnosis.h"

namespace plumbline {

struct RankFinding {
  int64_t rank = 0;
  watch::Finding finding;
};

// What one rank left.
struct BlackBoxRank {
  int64_t rank = 0;
  std::string directory;
  std::string ended;  // as it said itself; empty: it was killed, or runs
  uint64_t steps = 0;
  int64_t first_step = 0, last_step = 0;
  std::map<int64_t, double> losses;  // by step
};

struct BlackBoxReport {
  std::string data;
  std::vector<BlackBoxRank> ranks;
  std::vector<RankFinding> findings;  // the one that explains the others first
  std::vector<std::string> warnings;
};

// Reads the newest directory of each rank in `path`. kNotFound, kIo, kCorrupt.
Result<BlackBoxReport> ExplainBlackBox(const std::string& path);

// At most ten lines; the first one is the answer.
std::string BlackBoxText(const BlackBoxReport& report);
// Every finding of every rank, as JSON.
std::string BlackBoxJson(const BlackBoxReport& report);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_BLACK_BOX_REPORT_H_
