// Which kernels a static graph runs in which order, and when it ran: the tables that MindSpore
// writes beside the tensors of a dump.

#ifndef PLUMBLINE_LOAD_EXECUTION_ORDER_H_
#define PLUMBLINE_LOAD_EXECUTION_ORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::load {

struct ExecutionOrder {
  std::string path;  // of ms_execution_order_graph_{graph}.csv
  int64_t rank = 0, graph = 0;
  std::vector<std::string> kernels;  // full scoped names, "Default/net/Conv2D-op1"
  std::vector<int64_t> history;      // iterations in which the graph ran; empty without that table
};

// All graphs of all ranks below `root`, which is a rank's directory, one of ranks, or one of steps
// with ranks; by rank and graph. Empty when there are none. kCorrupt for a table of another form,
// with its line.
Result<std::vector<ExecutionOrder>> ReadExecutionOrders(const std::string& root);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_EXECUTION_ORDER_H_
