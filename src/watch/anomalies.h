// `plumb anomaly_analyse`: the alerts of a monitor on all ranks, in the order in which numbers
// flow.

#ifndef PLUMBLINE_WATCH_ANOMALIES_H_
#define PLUMBLINE_WATCH_ANOMALIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/text/json.h"
#include "plumbline/result.h"

namespace plumbline {

// One alert: a value of a watched tensor that a rule of the monitor did not expect.
struct Anomaly {
  int64_t rank = 0, step = 0, micro_step = 0, pp_stage = 0, vpp_stage = 0, call_id = 0;
  std::string tag;  // "0:fc1.weight/rank0/post_grad"
  std::string message;
  json::Value record;  // as the monitor wrote it
};

struct AnomalyFiles {
  std::vector<Anomaly> anomalies;  // sorted, see AnalyseAnomalies()
  uint64_t files = 0;    // that are there
  uint64_t damaged = 0;  // of these: with something that could not be read
  std::vector<std::string> warnings;  // of what is left out
};

// Reads {directory}/anomaly.json of every directory in `data`; none is no error. What cannot be
// read is left out and told. kNotFound, kIo: of `data`.
Result<AnomalyFiles> ReadAnomalies(const std::string& data);

struct AnomalyOptions {
  int64_t top = 8;             // how many are written; at least 1
  std::vector<int64_t> steps;  // of these alone; empty: of all
};

struct AnomalyReport {
  std::string path;                   // of anomaly_analyse.json
  uint64_t files = 0, anomalies = 0;  // that are there; of the chosen steps
  uint64_t damaged = 0;               // files with something that could not be read
  std::vector<std::string> messages;  // of those that are written, the first one first
  std::vector<std::string> warnings;
};

// Reads {directory}/anomaly.json of every directory in `data` (upstream's anomaly_detected, written
// with "dump": true) and writes the first ones to `output`/anomaly_analyse.json, records as they
// were. Sorted by step, micro step, stage of the training (forward, backward, optimizer and all
// else), then forward by the smallest and elsewhere by the largest pipeline stage (virtual, then
// real), order of calls, rank and tag. What is damaged is left out and told. An empty
// `output` is `data`; another is made if missing. kNotFound (no directory, no file),
// kInvalidArgument (top), kIo.
Result<AnomalyReport> AnalyseAnomalies(const std::string& data, const std::string& output,
                                       const AnomalyOptions& options);

// The answer in one line: the first anomaly, or that there is none, and whether all could be read.
std::string AnomalyAnswer(const AnomalyReport& report);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_ANOMALIES_H_
