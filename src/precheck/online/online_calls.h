// The calls of one step that a training has sent, made ready to run again and judged by what it got.

#ifndef PLUMBLINE_PRECHECK_ONLINE_ONLINE_CALLS_H_
#define PLUMBLINE_PRECHECK_ONLINE_ONLINE_CALLS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "online/receiver.h"
#include "plumbline/result.h"
#include "precheck/call_flow.h"
#include "precheck/call_plan.h"

namespace plumbline::precheck {

// Immutable after Open() but for the outcomes of the device; thread-safe. The file of its frames must not change meanwhile.
class OnlineCalls : public CheckedCalls {
 public:
  // kIo: its frames cannot be read. Of calls that cannot be run the skip is known at once.
  // `runs_device`: each is also run on the device of this machine (DeviceOutcome()).
  static Result<std::unique_ptr<OnlineCalls>> Open(const online::ReceivedStep& step,
                                                   const PlanOptions& options, bool runs_device);
  ~OnlineCalls() override;

  [[nodiscard]] size_t size() const;
  // Those that are to be run.
  [[nodiscard]] std::vector<size_t> Order() const;
  // Of one that is not.
  [[nodiscard]] CallOutcome Unrunnable(size_t index) const;

  [[nodiscard]] OrSkip<CallToRun> Prepare(size_t index) const override;
  [[nodiscard]] CallOutcome Skipped(size_t index, Skip skip) const override;
  [[nodiscard]] CallOutcome Judge(const RanCall& ran) const override;

  // What the device of this machine made of the call, judged as what the training got. Of one that
  // is judged.
  [[nodiscard]] const CallOutcome& DeviceOutcome(size_t index) const;

 private:
  struct Impl;
  explicit OnlineCalls(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_ONLINE_ONLINE_CALLS_H_
