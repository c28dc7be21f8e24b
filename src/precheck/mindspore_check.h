// The calls of a MindSpore recording, run by MindSpore (or taken from the recording) and by PyTorch
// on the CPU, and judged.

#ifndef PLUMBLINE_PRECHECK_MINDSPORE_CHECK_H_
#define PLUMBLINE_PRECHECK_MINDSPORE_CHECK_H_

#include <cstddef>

#include "precheck/call_flow.h"
#include "precheck/mindspore_calls.h"
#include "precheck/mindspore_judge.h"

namespace plumbline::precheck {

// `plan` must outlive it. A recording with tensors runs no device: what it holds is judged.
class MindSporeCheck : public CheckedCalls {
 public:
  MindSporeCheck(const MindSporePlan& plan, const MindSporeLimits& limits)
      : plan_(plan), limits_(limits) {}

  [[nodiscard]] OrSkip<CallToRun> Prepare(size_t index) const override;
  // The directions that were recorded are skipped; another one stays without a status.
  [[nodiscard]] CallOutcome Skipped(size_t index, Skip skip) const override;
  [[nodiscard]] CallOutcome Judge(const RanCall& ran) const override;

 private:
  const MindSporePlan& plan_;
  const MindSporeLimits limits_;
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_MINDSPORE_CHECK_H_
