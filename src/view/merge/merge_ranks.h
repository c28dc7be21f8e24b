// The ranks of a parallel run, merged into recordings of one rank each.

#ifndef PLUMBLINE_VIEW_MERGE_MERGE_RANKS_H_
#define PLUMBLINE_VIEW_MERGE_MERGE_RANKS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "load/rank_directories.h"
#include "plumbline/result.h"
#include "view/merge/parallel_layout.h"

namespace plumbline::view {

// A recording that was written.
struct MergedDump {
  int64_t step = 0;  // 0 where the source names none
  int64_t rank = 0;  // the first of those that were merged
  size_t ranks = 0;  // how many these are
  std::string directory;
  uint64_t nodes = 0;
};

struct MergeReport {
  std::vector<MergedDump> dumps;  // by step, then by rank
  std::vector<std::string> notes;
  uint64_t source_ranks = 0, source_nodes = 0;  // that were read
};

struct MergeRequest {
  std::string source{};  // directory of ranks, or of steps that hold ranks
  ParallelLayout layout{};
  std::string_view side = "target";  // in messages
  load::RankFilter filter{};         // of steps alone
  std::string output_dir{};
  // Other numbers for the recordings that are written: of each step the rank of the first one, of
  // the second one, ...; empty: their own.
  std::map<int64_t, std::vector<int64_t>> ranks_as{};
  // Another number for the step of a source that has no step directories.
  std::optional<int64_t> step_as{};
  // How many ranks are done, of how many; may be empty.
  std::function<void(uint64_t done, uint64_t all)> progress{};
};

// Whether the source has the ranks that the layout says, in all its steps, and the layout agrees
// with itself; reads no recording. Errors as below.
Status CheckRanks(const MergeRequest& request);

// Writes {output}/step{S}/rank{R}/construct.json, stack.json and dump.json. In memory at a time are
// the ranks that become one graph. kInvalidArgument: see CheckLayout(), and what stands there
// already; kUnsupported for recordings without statistics; errors of FindRankPairs() and
// BuildGraph().
Result<MergeReport> MergeRanks(const MergeRequest& request);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_MERGE_RANKS_H_
