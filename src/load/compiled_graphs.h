// Where the compiled graphs of a dump lie.

#ifndef PLUMBLINE_LOAD_COMPILED_GRAPHS_H_
#define PLUMBLINE_LOAD_COMPILED_GRAPHS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::load {

struct CompiledGraph {
  int64_t rank = 0, graph = 0;
  std::string path;  // for formats/graph_pb.h
};

// rank_{rank}/graphs/ms_output_trace_code_graph_{graph}.pb below `root`, by both numbers. kNotFound
// when `root` is no directory.
Result<std::vector<CompiledGraph>> ListCompiledGraphs(const std::string& root);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_COMPILED_GRAPHS_H_
