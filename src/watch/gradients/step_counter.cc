#include "watch/gradients/step_counter.h"

#include <algorithm>
#include <utility>

namespace plumbline::gradients {

StepCounter::Turn StepCounter::Next(Optimizer optimizer) {
  const bool is_first = !std::exchange(has_begun_, true);
  seen_.insert(optimizer);
  if (!by_iteration_) return {.step = next_++};
  const bool begins = is_first || current_.contains(optimizer);
  if (begins) {
    last_ = std::exchange(current_, {});
    ++next_;
  }
  current_.insert(optimizer);
  const bool ends = !last_.empty() && std::ranges::includes(current_, last_);
  return {.step = next_ - 1, .begins = begins, .ends = ends};
}

}  // namespace plumbline::gradients
