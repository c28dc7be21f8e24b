// The steps before the one that is compared, where each step is a directory of its own.

#ifndef PLUMBLINE_PIPELINE_STEP_CHAIN_H_
#define PLUMBLINE_PIPELINE_STEP_CHAIN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/culprit/earlier_steps.h"
#include "pipeline/culprit/step_history.h"
#include "pipeline/ranks/sent_values.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Two directories of one rank, target and golden.
struct StepPair {
  int64_t step = 0;  // of the target
  std::string target, golden;
};

// The steps straight before the one that the two places hold, the first one first: as long as
// there is one with the number before on both sides. Empty where they are no steps of two dumps.
std::vector<StepPair> StepsBefore(const RunPlace& target, const RunPlace& golden);

// Judged steps of one rank. Those that nobody handed over are read when they are asked for.
// Single-threaded.
class StepChain {
 public:
  // What other ranks sent to this one in a step.
  using ReceivedIn = std::function<const SentValues&(int64_t step)>;

  // `options`: of the comparison of every step; must outlive this. `received`: may be empty.
  explicit StepChain(const CompareOptions& options, ReceivedIn received = {})
      : options_(options), received_(std::move(received)) {}

  // The steps before that of the two runs, judged; null where there are none or one of them is
  // wrong or cannot be read.
  EarlierSteps* Before(const Run& target, const Run& golden);
  // Hands over what Before() would read otherwise: a step and its comparison, judged with this
  // chain.
  void Add(int64_t step, Comparison comparison) { steps_.Add(step, std::move(comparison)); }

 private:
  bool Read(const std::vector<StepPair>& steps);

  const CompareOptions& options_;
  ReceivedIn received_;
  EarlierSteps steps_;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_STEP_CHAIN_H_
