// compare.json: the request file of upstream's commands `compare` and `graph`.

#ifndef PLUMBLINE_LOAD_COMPARE_REQUEST_H_
#define PLUMBLINE_LOAD_COMPARE_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::load {

struct CompareRequest {
  std::string target_path;  // key npu_path
  std::string golden_path;  // key bench_path
  std::string stack_path;   // key stack_path; empty: not given
  // Key rank_id is there: the paths are static-graph dumps, of which only the ranks of rank_id and
  // the steps of step_id are compared; empty: all.
  bool of_graphs = false;
  std::vector<int64_t> ranks, steps;
};

// Relative paths stay relative to the working directory, as upstream reads them.
// kNotFound, kIo; kCorrupt (not JSON); kInvalidArgument (a key missing or of the wrong type, or
// one side a file and the other a directory).
Result<CompareRequest> ReadCompareRequest(const std::string& path);

struct GraphRequest {
  std::string target_path;  // key npu_path
  std::string golden_path;  // key bench_path; empty: not given, and nothing is compared
};

// Of `graph`. Errors as of ReadCompareRequest().
Result<GraphRequest> ReadGraphRequest(const std::string& path);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_COMPARE_REQUEST_H_
