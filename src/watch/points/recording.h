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
#include "watch/rules/conditions.h"
#include "watch/rules/facts.h"

namespace plumbline::watch {

// One tensor at one step of one rank.
struct WatchedTensor {
  std::string name;   // of the call or kernel
  std::string io;     // "output", "input", "parameters", ...; of monitors the kind of the file
  std::string slot;   // "0", "0.1", "weight"
  std::string op;     // "relu", "Conv2D"; empty: not known
  std::string graph;  // of static graphs
  TensorKinds kinds = kAnyTensor;
  bool is_input = false;
  bool is_trained = false;  // a weight of which a gradient or a moment is known
  std::optional<bool> operator_overflowed;  // nothing: that was not recorded
  int64_t place = 0;                        // in the step
  int64_t slot_number = 0;
  std::string dtype;
  Shape shape;
  bool has_shape = false;
  std::string file;     // where its elements are; empty: statistics alone
  std::string problem;  // why they cannot be read
  RecordedStatistics statistics;
  bool has_statistics = false;
  bool is_unclear = false;  // every statistic is NaN: no tensor was there, or NaN in it

  // What it has in common with the same tensor of other steps.
  [[nodiscard]] std::string Key() const { return graph + '\n' + name + '\n' + io + '\n' + slot; }
};

// Elements in memory or in a file, as long as it lives.
class HeldTensor {
 public:
  virtual ~HeldTensor() = default;
  [[nodiscard]] virtual TensorView view() const = 0;
};

// One rank at one step. Read() once; the rest from any thread.
class StepPart {
 public:
  virtual ~StepPart() = default;
  // kCorrupt, kIo, ...: nothing of it can be judged. What of it cannot is in notes().
  virtual Result<std::vector<WatchedTensor>> Read() = 0;
  // Of a tensor with a file.
  virtual Result<std::unique_ptr<HeldTensor>> Open(const WatchedTensor& tensor) = 0;
  // The call stack of a tensor's call, innermost frame first; empty: not recorded.
  virtual std::vector<std::string> StackOf(const WatchedTensor& tensor) {
    (void)tensor;
    return {};
  }
  int64_t step = 0, rank = 0;
  std::string path;
  std::vector<std::string> notes;  // what is left out, a sentence each
  bool is_damaged = false;         // a part of it is missing
};

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
