// Which step of a training it is when an optimizer is about to step.

#ifndef PLUMBLINE_WATCH_GRADIENTS_STEP_COUNTER_H_
#define PLUMBLINE_WATCH_GRADIENTS_STEP_COUNTER_H_

#include <cstdint>
#include <set>

namespace plumbline::gradients {

// By optimizer steps, as upstream counts them, or by iterations: in one, each optimizer steps at
// most once, so an iteration begins with an optimizer that has stepped in the last one already.
// Thread-compatible.
class StepCounter {
 public:
  // Identity of an optimizer.
  using Optimizer = uintptr_t;

  explicit StepCounter(bool by_iteration) : by_iteration_(by_iteration) {}

  struct Turn {
    int64_t step = 0;
    bool begins = true;  // the first optimizer of this step
    // The last one. Of an iteration not known before a second one has begun.
    bool ends = true;
  };
  Turn Next(Optimizer optimizer);

  // Numbers the next step. Requires: no step yet.
  void SetFirst(int64_t step) { next_ = step; }
  [[nodiscard]] bool has_begun() const { return has_begun_; }
  [[nodiscard]] bool has_several() const { return seen_.size() > 1; }

 private:
  bool by_iteration_;
  bool has_begun_ = false;
  int64_t next_ = 0;
  std::set<Optimizer> seen_;     // in the whole run
  std::set<Optimizer> current_;  // stepped in this iteration
  std::set<Optimizer> last_;     // in the one before
};

}  // namespace plumbline::gradients

#endif  // PLUMBLINE_WATCH_GRADIENTS_STEP_COUNTER_H_
