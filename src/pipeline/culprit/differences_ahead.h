// The differences of rows, measured on all threads before the rows are judged one after the other.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_DIFFERENCES_AHEAD_H_
#define PLUMBLINE_PIPELINE_CULPRIT_DIFFERENCES_AHEAD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Holds those of one block of calls at a time. `comparison` must outlive this; what a difference is
// made of (items and tensor metrics) must not change meanwhile.
class DifferencesAhead {
 public:
  // How many calls a block has.
  static constexpr size_t kBlock = 8192;

  DifferencesAhead(const Comparison& comparison, const measure::PairContext& context)
      : comparison_(comparison), context_(context) {}

  // Measures the rows of the paired ones among `calls`, on the threads of the caller's arena.
  void Measure(std::span<const uint32_t> calls);
  // Requires: a row of a paired call of the last block, by its index.
  [[nodiscard]] const measure::Difference& Of(uint32_t row) const {
    return differences_[row - first_row_];
  }

 private:
  const Comparison& comparison_;
  const measure::PairContext context_;
  std::vector<measure::Difference> differences_;  // from first_row_ on
  uint32_t first_row_ = 0;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_DIFFERENCES_AHEAD_H_
