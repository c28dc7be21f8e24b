// What a directory of a static-graph dump holds of its kernels: their tensors, or statistics.

#ifndef PLUMBLINE_LOAD_GRAPH_CONTENT_H_
#define PLUMBLINE_LOAD_GRAPH_CONTENT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "load/statistic_table.h"
#include "plumbline/result.h"

namespace plumbline::load {

struct GraphContent {
  bool has_tensors =
      false;            // the .npy files are what was dumped, and rows of the table do not count
  uint64_t files = 0;   // .npy files
  std::string problem;  // what is left out, or why, in a sentence; empty: nothing
};

// Decides it for `directory`, whose entries are `names`, and reads its statistic.csv once: each row
// is visited, also those of a table that then does not count. Where most tensor files were dropped
// for the table beside them, the table holds more and is taken; a damaged one beside files is not.
// kCorrupt: a damaged table alone.
Result<GraphContent> ReadGraphContent(const std::string& directory,
                                      const std::vector<std::string>& names,
                                      const std::function<void(StatisticRow row)>& visit);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_GRAPH_CONTENT_H_
