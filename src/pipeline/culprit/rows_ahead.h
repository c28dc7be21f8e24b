// What rows show by themselves, found on all threads before they are judged one after the other.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_ROWS_AHEAD_H_
#define PLUMBLINE_PIPELINE_CULPRIT_ROWS_AHEAD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Of one row of a paired call.
struct RowAhead {
  measure::Difference difference;
  // ContentKeyHash of the golden item, and of what its negative would be; meaningless where the
  // item has no key or, for the second, no negative one.
  size_t contents = 0, negative = 0;
  bool has_contents = false;
  bool has_negative = false;  // of inputs alone
};

// Holds the rows of one block of calls at a time, and prepares the next one meanwhile. `comparison`
// must outlive this; what a difference is made of (items and tensor metrics) must not change.
class RowsAhead {
 public:
  // How many calls a block has.
  static constexpr size_t kBlock = 8192;

  RowsAhead(const Comparison& comparison, const measure::PairContext& context)
      : comparison_(comparison), context_(context) {}

  // Prepares the paired ones among `calls`, on the threads of the caller's arena. May run while
  // Of() is asked for rows of the block before.
  void Prepare(std::span<const uint32_t> calls);
  // From now on Of() tells of the block prepared last.
  void Advance() { now_.Swap(next_); }
  // Requires: a row of a paired call of the block, by its index.
  [[nodiscard]] const RowAhead& Of(uint32_t row) const { return now_.rows[row - now_.first_row]; }

 private:
  struct Block {
    std::vector<RowAhead> rows;  // from first_row on
    uint32_t first_row = 0;

    void Swap(Block& other) {
      rows.swap(other.rows);
      std::swap(first_row, other.first_row);
    }
  };

  [[nodiscard]] RowAhead Of(const ComparedRow& row) const;

  const Comparison& comparison_;
  const measure::PairContext context_;
  Block now_, next_;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_ROWS_AHEAD_H_
