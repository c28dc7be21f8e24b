// How much tables of statistics hold, without holding it.

#ifndef PLUMBLINE_LOAD_STATISTIC_COUNTS_H_
#define PLUMBLINE_LOAD_STATISTIC_COUNTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::load {

struct StatisticCounts {
  uint64_t kernels = 0, values = 0;
};

// What ReadGraphDump() makes of the statistic.csv in `directories`: as many calls and values. In
// memory are 24 bytes for each row. Errors of VisitStatisticTable().
Result<StatisticCounts> CountStatistics(const std::vector<std::string>& directories);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_STATISTIC_COUNTS_H_
