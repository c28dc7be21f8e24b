// config.yaml of `merge_result`: which calls and which metrics to put side by side.

#ifndef PLUMBLINE_PIPELINE_RANKS_MERGE_CONFIG_H_
#define PLUMBLINE_PIPELINE_RANKS_MERGE_CONFIG_H_

#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::pipeline {

struct MergeConfig {
  // "Distributed", "Distributed.all_reduce", "Distributed.all_reduce.0" or with the direction.
  std::vector<std::string> apis;
  std::vector<std::string> metrics;  // column names; empty: all of the tables
};

// Keys api (a list of texts, not empty) and compare_index (a list of texts, null or absent).
// kNotFound, kIo; kCorrupt (not YAML, with the line); kInvalidArgument (another form).
Result<MergeConfig> ReadMergeConfig(const std::string& path);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RANKS_MERGE_CONFIG_H_
