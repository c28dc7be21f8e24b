// Where the contents of a pair of tensors were met before, and what was said of them there.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_KNOWN_CONTENTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_KNOWN_CONTENTS_H_

#include <cstddef>
#include <cstdint>

#include "measure/verdict.h"
#include "pipeline/culprit/content_table.h"
#include "pipeline/culprit/rows_ahead.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Follows contents through the rows of one comparison. Both must outlive this; every row asked for
// is one of the block that `ahead` holds.
class KnownContents {
 public:
  KnownContents(const Comparison& comparison, const RowsAhead& ahead)
      : comparison_(comparison), ahead_(ahead), known_(comparison.rows) {}

  // The row where the differing contents of `row` were met before on both sides, or null. What is
  // equal or cannot be judged needs no source.
  [[nodiscard]] const ComparedRow* SourceOf(const measure::Difference& difference,
                                            const ComparedRow& row) const;
  // SourceOf() and Remember() of the rows of a call follow soon: where they will look is brought
  // near. Best asked for so many calls ahead, which are judged while memory answers.
  static constexpr size_t kCallsAhead = 4;
  void Expect(uint32_t call) const;
  void Remember(const ComparedRow& row);

 private:
  [[nodiscard]] uint32_t IndexOf(const ComparedRow& row) const {
    return static_cast<uint32_t>(&row - comparison_.rows.data());
  }

  const Comparison& comparison_;
  const RowsAhead& ahead_;
  ContentTable known_;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_KNOWN_CONTENTS_H_
