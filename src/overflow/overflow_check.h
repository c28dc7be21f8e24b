// `plumb overflow`: the first NaN or Inf of a recorded step over all of its ranks, and the two
// files that tell about it.

#ifndef PLUMBLINE_OVERFLOW_OVERFLOW_CHECK_H_
#define PLUMBLINE_OVERFLOW_OVERFLOW_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "load/rank_scan.h"
#include "overflow/first_overflow.h"
#include "overflow/overflow_hints.h"
#include "overflow/scan_parts.h"
#include "plumbline/result.h"

namespace plumbline {

struct OverflowCheckOptions {
  std::string output_directory = "./output";  // created when there is something to write
  int threads = 0;                            // 0: one per core
};

// What an origin looks like to people.
struct OverflowDetails {
  size_t origin = 0;                   // position in OverflowAnalysis::origins
  std::string data;                    // JSON text of the entry
  std::vector<std::string> hierarchy;  // from the outermost module to the entry itself
  std::vector<std::string> stack;      // innermost frame first; empty when not recorded
  OverflowHints hints;
  std::string problem;  // why one of these could not be read
};

struct OverflowReport {
  std::string step_directory;            // of the answer; the last one examined when there is none
  std::vector<RankScan> ranks;           // of that step
  OverflowAnalysis analysis;             // of that step
  std::vector<OverflowDetails> details;  // one per OverflowAnalysis::reported
  // Sums over all steps examined.
  uint64_t steps = 0, rank_count = 0, entries = 0, bad_entries = 0, tensors = 0;
  uint64_t tensors_not_judged = 0;
  uint64_t calls_searched = 0;    // RankScan::calls_searched
  uint64_t ranks_not_judged = 0;  // missing, not readable, or without entries
  uint64_t hits_origin = 0, hits_propagated = 0, hits_unknown = 0, hits_saturated = 0;
  bool truncated = false;
  bool judged_anything = false;  // a tensor or a flag was there
  // Why "nothing found" would not be the whole truth, one sentence each; empty: all was judged.
  std::vector<std::string> not_judged;
  std::vector<std::string> files;  // written

  [[nodiscard]] bool found() const { return !analysis.origins.empty(); }
  // Bad values exist, but none of them is an origin.
  [[nodiscard]] bool bad_without_origin() const { return !found() && bad_entries > 0; }
};

// `path` is a step directory, a dump directory (its steps are examined in order up to the first
// finding), or the directory of one rank. Without a finding nothing is written.
// A rank that cannot be read is named in `not_judged` and left out of `ranks`; an error only when
// no rank of a step can be: kNotFound (no ranks, a file missing), kInvalidArgument, kCorrupt, kIo.
// `scans`: of all ranks, as others have read them; empty: they are read here.
Result<OverflowReport> CheckOverflow(const std::string& path, const OverflowCheckOptions& options,
                                     std::vector<ScannedRank> scans = {});

// The sentence that answers the question: "first NaN/Inf: rank 0 Torch.log.0.forward, output.0 is
// NaN (inputs finite)", or that and why nothing was found.
std::string OverflowAnswer(const OverflowReport& report);
// "1 origin, 3 propagated" of the hits of task overflow_check; empty: none was recorded.
std::string RecordedHitsText(const OverflowReport& report);
// "rank 3", or the name of the directory when the rank is unknown.
std::string RankLabel(const load::RankDirectory& directory);

// JSON texts of an overflow report.

// anomaly_analyze_{time}.json: upstream's structure, plumbline's keys behind upstream's.
Result<std::string> FormatAnomalies(const OverflowReport& report);
// overflow_trace_{time}.json: every origin, and every communication that carried bad values.
Result<std::string> FormatOverflowTrace(const OverflowReport& report);
// The answer for other programs: what `plumb overflow --json` prints.
Result<std::string> FormatOverflowResult(const OverflowReport& report);

}  // namespace plumbline

#endif  // PLUMBLINE_OVERFLOW_OVERFLOW_CHECK_H_
