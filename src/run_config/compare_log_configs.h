// Settings that training logs print, compared.

#ifndef PLUMBLINE_RUN_CONFIG_COMPARE_LOG_CONFIGS_H_
#define PLUMBLINE_RUN_CONFIG_COMPARE_LOG_CONFIGS_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/record.h"
#include "plumbline/result.h"

namespace plumbline::run_config {

// The configuration that a training prints into its log, as verl does: a Python dictionary over
// many lines, between which other processes write.

// The last dictionary of `text` that begins with the key actor_rollout_ref. What stands before it
// in its line is the prefix of all its lines; other lines, and what does not continue the
// dictionary, are skipped. kCorrupt when there is none, or it does not end.
Result<Value> FindLogConfig(std::string_view text);

// FindLogConfig() of a file; the message names it. kInvalidArgument when it ends neither in .log
// nor in .txt.
Result<Value> ReadLogConfig(const std::string& path);

// A YAML file as such a tree. kInvalidArgument when `path` does not end in .yaml.
Result<Value> ReadYamlConfig(const std::string& path);

// Values by path ("trainer/balance_batch"); lists and empty dictionaries are values.
std::map<std::string, Value> FlatConfig(const Value& config);

// Python's repr().
std::string PythonRepr(const Value& value);
// As json.dumps(indent=2) writes it, in the order of the log.
std::string ConfigJson(const Value& config);

// The configurations that two trainings of verl have printed into their logs
// (docs/reference/config-check.md, "Logs of verl").

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

}  // namespace plumbline::run_config

#endif  // PLUMBLINE_RUN_CONFIG_COMPARE_LOG_CONFIGS_H_
