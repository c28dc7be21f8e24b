#include "load/statistic_counts.h"

#include <algorithm>
#include <compare>
#include <deque>
#include <span>

#include "base/digest.h"
#include "base/file.h"
#include "load/statistic_table.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

// Whose value a row is. Kernels are told by the digests of their names.
struct Owner {
  Digest128 kernel;
  int64_t place = 0;  // inputs from 0 on, outputs from -1 down
  friend auto operator<=>(const Owner&, const Owner&) = default;
};

// The k-th value of one place of a kernel belongs to its k-th run: it ran as often as the place
// that has the most values.
uint64_t RunsOf(const std::deque<Owner>& sorted) {
  uint64_t runs = 0;
  for (auto at = sorted.begin(); at != sorted.end();) {
    const auto kernel = at;
    uint64_t most = 0;
    while (at != sorted.end() && at->kernel == kernel->kernel) {
      const auto place = at;
      at = std::upper_bound(at, sorted.end(), *place);
      most = std::max(most, static_cast<uint64_t>(at - place));
    }
    runs += most;
  }
  return runs;
}

}  // namespace

Result<StatisticCounts> CountStatistics(const std::vector<std::string>& directories) {
  std::deque<Owner> owners;  // grows without a copy of all
  for (const std::string& directory : directories) {
    PL_TRY(
        VisitStatisticTable(JoinPath(directory, run_files::kStatisticCsv), [&](StatisticRow row) {
          std::ranges::replace(row.op_name, '/', '_');
          owners.push_back({Xxh3Of(std::as_bytes(std::span(row.op_name))),
                            row.is_output ? -1 - row.slot : row.slot});
        }));
  }
  std::ranges::sort(owners);
  return StatisticCounts{RunsOf(owners), owners.size()};
}

}  // namespace plumbline::load
