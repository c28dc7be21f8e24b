// Where the contents of a pair of tensors were met before, and what was said of them there.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_KNOWN_CONTENTS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_KNOWN_CONTENTS_H_

#include <cstddef>
#include <cstdint>

#include "measure/verdict.h"
#include "pipeline/culprit/content_table.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Follows contents through the rows of one comparison, which must outlive this.
class KnownContents {
 public:
  explicit KnownContents(const Comparison& comparison)
      : comparison_(comparison), known_(comparison.rows) {}

  // The row where the differing contents of `row` were met before on both sides, or null. What is
  // equal or cannot be judged needs no source.
  [[nodiscard]] const ComparedRow* SourceOf(const measure::Difference& difference,
                                            const ComparedRow& row) const;
  // SourceOf() and Remember() of the rows of a call follow soon: where they will look is brought
  // near. Best asked for so many calls ahead, which are judged while memory answers.
  static constexpr size_t kCallsAhead = 4;
  void Expect(uint32_t call) const;
  // Requires: `row` is one of the comparison's.
  void Remember(const ComparedRow& row);

 private:
  const Comparison& comparison_;
  ContentTable known_;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_KNOWN_CONTENTS_H_
