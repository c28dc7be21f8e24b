// Rules held against the tensors of one step after the other, of a recording or of a training:
// which ones a rule looks at, their earlier values, hits in a row.

#ifndef PLUMBLINE_WATCH_RULES_STEP_WATCH_H_
#define PLUMBLINE_WATCH_RULES_STEP_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/tensor.h"
#include "watch/rules/facts.h"
#include "watch/rules/rule.h"
#include "watch/rules/watch_row.h"

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

// The latest value of a tensor, kept until the next step that has it.
struct Earlier {
  int64_t step = 0;
  const WatchedTensor* tensor = nullptr;
  std::shared_ptr<const std::vector<WatchedTensor>> all;  // owns it
  std::shared_ptr<StepPart> part;
};
using EarlierTensors = std::unordered_map<std::string, Earlier>;  // by WatchedTensor::Key()

struct StepWatchOptions {
  WatchedSide side = WatchedSide::kOutputs;
  std::string nodes, code;  // as RuleScope; empty: all
  bool keeps_all = false;   // rows for tensors without a hit, too
  bool has_other_run = false;  // whose values are the earlier ones; else earlier steps have them
  // Instead of `nodes` and kinds: exactly these tensors, by rule.
  std::function<bool(size_t rule, const WatchedTensor& tensor, int64_t step, int64_t rank)>
      selects = {};
  // Executed steps of a rank behind `from` up to `to`. Empty: their numbers say it.
  std::function<int64_t(int64_t rank, int64_t from, int64_t to)> gap_of = {};
  // Calls body(i) for every i < count, on several threads perhaps. Empty: one after the other.
  std::function<void(size_t count, const std::function<void(size_t)>& body)> each = {};
};

// What one rank of one step came to.
struct StepAnswer {
  std::vector<WatchRow> rows;  // hits and what was not evaluated, in the order of the tensors
  std::vector<RuleCounts> counts;  // one for each rule
  uint64_t tensors = 0;            // that a rule looks at
  uint64_t read_bytes = 0;         // of elements
  uint64_t matched = 0;            // of the tensors, with an earlier value that a rule looks at
  // Of the tensors that StepWatchOptions::nodes leaves, whether a rule looks at them or not.
  TensorKinds seen_kinds = 0;
  bool has_trained = false;
  std::vector<std::string> other_names;  // that it does not leave, the first few
};

// Steps come in ascending order.
class StepWatch {
 public:
  // `rules` live longer.
  StepWatch(const Rules& rules, StepWatchOptions options);

  // The step that conditions of the first one look at; nothing: it is over.
  void set_first_step(std::optional<int64_t> step) { first_step_ = step; }
  [[nodiscard]] std::optional<int64_t> first_step() const { return first_step_; }
  // Whether what a rank did before decides an answer.
  [[nodiscard]] bool needs_history() const { return needs_history_; }
  // `others`: values of the other run, or null.
  StepAnswer Judge(const std::shared_ptr<StepPart>& part, std::vector<WatchedTensor> tensors,
                   const EarlierTensors* others);
  // A part that is not judged, for those behind it.
  void Pass(const std::shared_ptr<StepPart>& part, std::vector<WatchedTensor> tensors);

 private:
  // What is known of a tensor over the steps.
  struct History {
    std::optional<Earlier> earlier;
    std::vector<int64_t> run_lengths;  // hits in a row, of each rule
  };
  // A part with what is known of each of its tensors, or nothing where that is not needed.
  struct Step {
    StepPart& part;
    const std::vector<WatchedTensor>& tensors;
    const std::vector<History*>& histories;
    const EarlierTensors* others;
  };
  struct Block;
  struct Where;
  // Whether StepWatchOptions::nodes leaves the tensor.
  [[nodiscard]] bool IsNamed(const WatchedTensor& tensor, StepAnswer& out) const;

  std::vector<History*> HistoriesOf(int64_t rank, std::vector<WatchedTensor>& tensors);
  void Remember(const std::shared_ptr<StepPart>& part, std::vector<WatchedTensor> tensors,
                const std::vector<History*>& histories) const;
  [[nodiscard]] bool MatchesSide(const Rule& rule, const WatchedTensor& tensor) const;
  [[nodiscard]] bool Selects(size_t number, const WatchedTensor& tensor, StepPart& part) const;
  void JudgeTensor(const Step& step, size_t at, Block& out) const;
  void CountRun(size_t number, History& history, Outcome& outcome) const;
  void Keep(const Where& where, size_t number, const Outcome& outcome, Block& out) const;

  const Rules& all_;
  const std::vector<Rule>& rules_;
  StepWatchOptions options_;
  std::optional<int64_t> first_step_;
  bool needs_history_ = false;
  std::map<int64_t, std::unordered_map<std::string, History>> histories_;  // by rank and key
};

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_RULES_STEP_WATCH_H_
