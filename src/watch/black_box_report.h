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
  std::string ended;             // as it said itself; empty: it was killed, or runs
  bool is_interrupted = false;   // by an exception or a signal
  uint64_t steps = 0;            // that are there
  int64_t first_step = 0, last_step = -1;
  int64_t steps_run = 0;         // since the first one that is there, with those not looked at
  std::map<int64_t, double> losses;   // by step
  std::vector<std::string> unjudged;  // what cannot be said to be right, one sentence for each kind
};

// One run of a training.
struct BlackBoxRun {
  std::vector<BlackBoxRank> ranks;
  std::vector<RankFinding> findings;  // the one that explains the others first
};

struct BlackBoxReport {
  std::string data;
  std::vector<BlackBoxRun> runs;  // the newest first; not empty
  std::vector<std::string> warnings;
};

// Reads the directories of black boxes in `path`; several of one rank are several runs. kNotFound
// (there is none), kIo.
Result<BlackBoxReport> ExplainBlackBox(const std::string& path);

// At most ten lines; the first one is the answer: of the newest run that something went wrong in,
// or of the newest.
std::string BlackBoxText(const BlackBoxReport& report);
// Every finding of every rank and run, as JSON.
std::string BlackBoxJson(const BlackBoxReport& report);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_BLACK_BOX_REPORT_H_
