// `plumb watch`: rules held against every tensor of a recording.

#ifndef PLUMBLINE_WATCH_POINTS_WATCH_RUN_H_
#define PLUMBLINE_WATCH_POINTS_WATCH_RUN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/process/shards.h"
#include "base/text/json.h"
#include "plumbline/result.h"
#include "watch/rules/step_watch.h"

namespace plumbline::watch {

struct WatchOptions {
  std::string path;
  std::string against;  // a run whose values are the earlier ones; empty: earlier steps are
  Rules rules;
  WatchedSide side = WatchedSide::kOutputs;
  NumberList steps, ranks;
  std::string nodes, code;  // as RuleScope; empty: all
  bool only_first = false;  // no step after the first one with a hit
  bool keeps_all = false;   // rows for tensors without a hit, too
  int threads = 0;          // 0: one per core
  uint64_t memory = 0;      // bytes that blocks of elements may take; 0: no limit
  // Called after each rank of a step.
  std::function<void(uint64_t done, uint64_t all)> progress = {};
  // Instead of --nodes and kinds: exactly these tensors, by rule (the Python API).
  std::function<bool(size_t rule, const struct WatchedTensor& tensor, int64_t step, int64_t rank)>
      selects = {};
};

// Of one rule, step and rank.
struct CaseCounts {
  size_t rule = 0;
  int64_t step = 0, rank = 0;
  RuleCounts counts;
};

struct WatchReport {
  std::string path, kind;
  std::vector<Rule> rules;
  std::vector<RuleCounts> counts;  // one for each rule
  std::vector<CaseCounts> cases;
  // By step, place in the step, rank, slot and rule: hits and what was not evaluated.
  std::vector<WatchRow> rows;
  uint64_t tensors = 0, steps = 0, ranks = 0;
  uint64_t read_bytes = 0;       // of elements
  uint64_t unreadable_parts = 0;  // ranks of steps of which not everything could be read
  bool stopped = false;          // by only_first, before the last step
  bool has_against = false;      // earlier values are those of another run
  bool is_narrowed = false;      // by nodes, steps or ranks of the options
  // Of the tensors that --nodes leaves, whether a rule selected them or not.
  TensorKinds seen_kinds = 0;
  bool has_trained = false, has_first_step = false;
  bool orders_by_record = false;  // without a history of steps: gaps count recorded ones
  std::string tensors_advice;
  std::vector<std::string> notes;

  [[nodiscard]] const WatchRow* first_hit() const;
  [[nodiscard]] RuleCounts Total() const;
  // Something selected was not evaluated, a rule selected nothing, or a part was not read.
  [[nodiscard]] bool has_unchecked() const;
};

// kInvalidArgument, kNotFound, kCorrupt and kIo of OpenRecording(); an error also when no part of
// the recording can be read; kNotFound when `steps`, `ranks` or `nodes` name nothing that was
// recorded, or nothing of `against` is what a rule compares. Parts that cannot are counted and
// noted.
Result<WatchReport> WatchRecording(const WatchOptions& options);

// The same by several processes: each holds the rules against its part, whole ranks where a rule
// looks at earlier steps, and one puts together what they found. Errors of WatchRecording().
Result<ShardPart> WatchPart(const WatchOptions& options, const ShardPlace& place);
// kInvalidArgument, too: the recording is another one by now; kCorrupt: no items of WatchPart().
Result<WatchReport> WatchMerged(const WatchOptions& options, const std::string& state,
                                std::span<const json::Value> items);

// The rules of --recommended: what the graphical debugger offered by itself, and frozen weights.
std::vector<Rule> RecommendedRules();

// What a person reads: the answer, then counts.
std::string WatchText(const WatchReport& report);
// The answer alone: "first hit: ..." or "no hit".
std::string FirstHitText(const WatchReport& report);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_POINTS_WATCH_RUN_H_
