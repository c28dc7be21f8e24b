// Which tensors of a static-graph dump belong to a line of the training script.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_SOURCE_TENSORS_H_
#define PLUMBLINE_PIPELINE_GRAPHS_SOURCE_TENSORS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::pipeline {

struct SourceQuery {
  std::string text;       // part of the source trace, whatever its case
  bool is_regex = false;  // an ECMAScript expression to search lines for instead
  std::optional<std::vector<int64_t>> ranks, steps;  // nothing: all
};

struct SourceTensor {
  std::string kernel;  // full scoped name
  int64_t rank = 0, step = 0;
  bool is_output = false;
  std::string path;
};

// The tensors of every kernel in whose trace the query occurs, by rank, kernel in the order of its
// graph, step, direction and slot. Kernels without files are left out, constants belong to no step.
// The traces come from rank_{r}/graphs/ms_output_trace_code_graph_*.pb. kInvalidArgument for a bad
// expression; kNotFound for a missing directory; kCorrupt for damaged graphs and tables.
Result<std::vector<SourceTensor>> FindSourceTensors(const std::string& root,
                                                    const SourceQuery& query);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_SOURCE_TENSORS_H_
