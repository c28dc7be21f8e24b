// The ranks that `plumb overflow` looks into, as several processes share them: each scans some, one
// judges all.

#ifndef PLUMBLINE_OVERFLOW_SCAN_PARTS_H_
#define PLUMBLINE_OVERFLOW_SCAN_PARTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/process/shards.h"
#include "base/text/json.h"
#include "load/rank_scan.h"
#include "plumbline/result.h"

namespace plumbline {

// One rank of one step, as it was read.
struct ScannedRank {
  std::string recording;                 // what its dump.json was then
  std::optional<RankScan> scan;          // nothing: it cannot be read
  ErrorCode code = ErrorCode::kCorrupt;  // why
  std::string problem;

  [[nodiscard]] Result<RankScan> Take();
};

ScannedRank ScanForOthers(const load::RankDirectory& directory);

// The ranks of all steps below `path` in their order, and as JSON those that are this part's.
// Errors of StepsToCheck().
Result<ShardPart> ScanPart(const std::string& path, const ShardPlace& place, int threads);

// All ranks as parts have them. kInvalidArgument: the recording is another one by now; kCorrupt.
Result<std::vector<ScannedRank>> TakeScans(const std::string& path, const std::string& state,
                                           std::span<const json::Value> items);

}  // namespace plumbline

#endif  // PLUMBLINE_OVERFLOW_SCAN_PARTS_H_
