// The configurations that two trainings of verl have printed into their logs
// (docs/reference/config-check.md, "Logs of verl").

#ifndef PLUMBLINE_PIPELINE_RUN_CONFIG_COMPARE_LOG_CONFIGS_H_
#define PLUMBLINE_PIPELINE_RUN_CONFIG_COMPARE_LOG_CONFIGS_H_

#include <optional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::pipeline {

// One parameter; nothing where a side does not have it.
struct LogParameter {
  std::string name;                        // "trainer/balance_batch"
  std::optional<std::string> left, right;  // as Python's repr()
  bool equal = false;
};

struct LogComparison {
  std::string left_name, right_name;  // "npu", "bench", "target"
  std::vector<LogParameter> parameters;
  std::vector<std::string> files;  // written
  [[nodiscard]] size_t different() const;
};

// Two logs: every parameter but those of profilers and of ray. Writes NPU_config.json,
// bench_config.json and hyper_params_compare.csv into `directory`. Errors of ReadLogConfig(); kIo.
Result<LogComparison> CompareLogs(const std::string& npu_log, const std::string& bench_log,
                                  const std::string& directory);

// A log against what a YAML file asks for; empty: upstream's table of parameters that must be so
// for results to be reproducible. Writes tgt_config.json and hyper_params_verify.csv.
Result<LogComparison> VerifyLog(const std::string& bench_yaml, const std::string& target_log,
                                const std::string& directory);

// The verdict, then every parameter that differs; at most 50.
std::string LogSummary(const LogComparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RUN_CONFIG_COMPARE_LOG_CONFIGS_H_
