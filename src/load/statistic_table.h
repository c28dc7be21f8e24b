// statistic.csv of MindSpore's dumps, as every release writes it, and how much such tables hold.

#ifndef PLUMBLINE_LOAD_STATISTIC_TABLE_H_
#define PLUMBLINE_LOAD_STATISTIC_TABLE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/record.h"
#include "plumbline/result.h"

namespace plumbline::load {

// One tensor of one kernel.
struct StatisticRow {
  std::string op_type;
  std::string op_name;  // as it stands: scope-stripped, with '_', or the full name with '/'
  std::string task, stream;
  int64_t timestamp = 0;  // microseconds
  bool is_output = false;
  int64_t slot = 0;
  TensorRecord tensor;  // dtype, shape, statistics; a digest where nothing else is recorded
  // How many elements are what, where the table has such columns: infinite ones of both signs,
  // those below and above 0.
  struct Counts {
    std::optional<int64_t> all, nan, inf, zero, negative, positive;
  } counts;
  std::string digest;  // empty: none
};

// The rows one after the other; the file is not held in memory. Rows may end in a comma that the
// header has not. "null" is no value. kCorrupt for a file without the columns that every release
// has, and for a row that is cut or holds something else, with its line.
Status VisitStatisticTable(const std::string& path,
                           const std::function<void(StatisticRow row)>& visit);

// How much tables of statistics hold, without holding it.

struct StatisticCounts {
  uint64_t kernels = 0, values = 0;
};

// What ReadGraphDump() makes of the statistic.csv in `directories`: as many calls and values. In
// memory are 24 bytes for each row. Errors of VisitStatisticTable().
Result<StatisticCounts> CountStatistics(const std::vector<std::string>& directories);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_STATISTIC_TABLE_H_
