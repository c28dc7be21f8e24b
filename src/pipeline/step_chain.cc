#include "pipeline/step_chain.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "pipeline/compare_runs.h"

namespace plumbline::pipeline {

std::vector<StepPair> StepsBefore(const RunPlace& target, const RunPlace& golden) {
  // Steps of one dump that are compared with each other are variants, not the history of one run.
  if (target.dump_path == golden.dump_path) return {};
  const auto ours = StepHistoryOf(target), theirs = StepHistoryOf(golden);
  if (!ours || !theirs) return {};
  std::vector<StepPair> found;
  auto a = ours->earlier.rbegin(), b = theirs->earlier.rbegin();
  int64_t back = 1;
  for (; a != ours->earlier.rend() && b != theirs->earlier.rend(); ++a, ++b, ++back) {
    if (a->step != ours->own.step - back || b->step != theirs->own.step - back) break;
    StepPair pair{a->step, JoinPath(a->path, ours->rank_name),
                  JoinPath(b->path, theirs->rank_name)};
    if (KindOf(pair.target) != PathKind::kDirectory) break;
    if (KindOf(pair.golden) != PathKind::kDirectory) break;
    found.push_back(std::move(pair));
  }
  std::ranges::reverse(found);
  return found;
}

EarlierSteps* StepChain::Before(const Run& target, const Run& golden) {
  const std::vector<StepPair> steps = StepsBefore(PlaceOf(target), PlaceOf(golden));
  if (steps.empty()) return nullptr;
  if (steps_.last_step() != steps.back().step && !Read(steps)) return nullptr;
  return steps_.empty() ? nullptr : &steps_;
}

// Each is judged behind those before it: Judge() asks this chain for them.
bool StepChain::Read(const std::vector<StepPair>& steps) {
  steps_.Clear();
  static const SentValues kNothing;
  for (const StepPair& step : steps) {
    auto pair = RunPair::Load(step.target, step.golden, options_);
    if (!pair || !pair->Judge(received_ ? received_(step.step) : kNothing, this)) {
      steps_.Clear();
      return false;
    }
    steps_.Add(step.step, std::move(*pair).Take());
  }
  return true;
}

}  // namespace plumbline::pipeline
