// The entries of config.json that static graphs follow, checked and with defaults.

#ifndef PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_REQUEST_H_
#define PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"

namespace plumbline::graph_dump {

struct DumpRequest {
  std::string task = "statistics", level = "L1";
  std::string dump_path;  // absolute
  std::vector<int64_t> ranks, steps;
  bool async_dump = false;
  std::vector<std::string> list, scope;
  std::string data_mode = "all";  // "all", "input", "output"
  std::vector<std::string> summary = {"statistics"};
  std::string file_format = "npy";
  std::string check_mode = "all";     // "all", "aicore", "atomic"
  std::optional<int64_t> hit_limit;   // overflow_nums; nothing: not given, or without limit
  std::string saved_data = "tensor";  // of task tensor: "full" has statistics as well
  std::optional<std::string> device, precision;  // where and how statistics are computed
  std::vector<std::string> warnings;
};

// Errors as of PlanDump() (dump_plan.h).
Result<DumpRequest> ReadDumpRequest(const std::optional<std::string>& config_path,
                                    const ConfigOverrides& overrides);

// Whether they ask for level L2. False for a file that cannot be read: whoever reads the rest of it
// says why.
bool AsksForKernels(const std::optional<std::string>& config_path,
                    const ConfigOverrides& overrides);

}  // namespace plumbline::graph_dump

#endif  // PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_REQUEST_H_
