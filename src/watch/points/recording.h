// What rules are held against: every tensor of a recording, step by step, whoever wrote it.

#ifndef PLUMBLINE_WATCH_POINTS_RECORDING_H_
#define PLUMBLINE_WATCH_POINTS_RECORDING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/record.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"
#include "watch/rules/step_watch.h"

namespace plumbline::watch {

struct Recording {
  std::string kind;  // "recorded calls", "static graphs", "monitor", "checkpoints"
  std::vector<std::shared_ptr<StepPart>> parts;  // by step and rank
  // Steps that ran, of those recorded or not, ascending, by rank. Without them the number of a step
  // says how many ran before, or, where `counts_recorded`, the recorded ones count.
  std::map<int64_t, std::vector<int64_t>> history;
  bool counts_recorded = false;
  std::vector<std::string> notes;
  uint64_t damaged = 0;  // ranks and files of which nothing is there
  // How to record what a rule needs.
  std::string tensors_advice;
};

// Dumps of calls (dump.json, a rank, a step, a dump directory), of static graphs, directories of a
// training monitor, checkpoints (one, or a directory of several). kNotFound; kInvalidArgument: it
// holds several recordings, or none; kCorrupt, kIo.
Result<Recording> OpenRecording(const std::string& path);

// The sources, each of which knows one form.
Result<Recording> OpenCalls(const std::string& path);
Result<Recording> OpenGraphs(const std::string& path);
Result<Recording> OpenMonitor(const std::string& path);
Result<Recording> OpenCheckpoints(const std::string& path);
// Whether a directory holds several checkpoints with numbers in their names.
bool HoldsCheckpoints(const std::string& path);

// The tensors of one call of a dump.json, behind those in `out`; `place`: of the call.
void AppendTensors(const Call& call, int64_t place, bool by_plumbline,
                   std::vector<WatchedTensor>& out);

// Whether an operation is one of those whose outputs are activations.
bool IsActivation(std::string_view op);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_POINTS_RECORDING_H_
