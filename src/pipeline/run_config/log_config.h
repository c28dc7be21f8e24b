// The configuration that a training prints into its log, as verl does: a Python dictionary over
// many lines, between which other processes write.

#ifndef PLUMBLINE_PIPELINE_RUN_CONFIG_LOG_CONFIG_H_
#define PLUMBLINE_PIPELINE_RUN_CONFIG_LOG_CONFIG_H_

#include <map>
#include <string>
#include <string_view>

#include "plumbline/record.h"
#include "plumbline/result.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RUN_CONFIG_LOG_CONFIG_H_
