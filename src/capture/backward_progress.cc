#include "capture/backward_progress.h"

#include <algorithm>

namespace plumbline::capture {

void BackwardProgress::AddResult() {
  ++results_;
  layout_ += kResult;
}

void BackwardProgress::Pass(size_t result, std::vector<size_t> arguments) {
  passed_.emplace_back(result, std::move(arguments));
}

void BackwardProgress::Open() {
  has_gradient_.assign(results_, false);
  results_taken_ = false;
  nodes_arrived_ = results_arrived_ = passed_arrived_ = 0;
  is_open_ = true;
}

bool BackwardProgress::ResultArrived(size_t result, bool is_none) {
  if (results_taken_) return false;
  if (!has_gradient_[result]) ++results_arrived_;
  has_gradient_[result] = !is_none;
  return true;
}

std::vector<size_t> BackwardProgress::PassOn(size_t result) {
  std::vector<size_t> arguments;
  for (const auto& [passed, belongs_to] : passed_) {
    if (passed != result) continue;
    ++passed_arrived_;
    arguments.insert(arguments.end(), belongs_to.begin(), belongs_to.end());
  }
  return arguments;
}

bool BackwardProgress::IsPassed(size_t argument) const {
  return std::ranges::any_of(
      passed_, [&](const auto& one) { return std::ranges::count(one.second, argument) > 0; });
}

}  // namespace plumbline::capture
