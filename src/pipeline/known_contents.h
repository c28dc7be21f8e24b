// Where the contents of a pair of tensors were met before, and what was said of them there.

#ifndef PLUMBLINE_PIPELINE_KNOWN_CONTENTS_H_
#define PLUMBLINE_PIPELINE_KNOWN_CONTENTS_H_

#include <optional>
#include <unordered_map>

#include "measure/verdict.h"
#include "pipeline/content_key.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Follows contents through the rows of one comparison, which must outlive this.
class KnownContents {
 public:
  explicit KnownContents(const Comparison& comparison) : comparison_(comparison) {}

  // The row where the differing contents of `row` were met before on both sides, or null. What is
  // equal or cannot be judged needs no source.
  [[nodiscard]] const ComparedRow* SourceOf(const measure::Difference& difference,
                                            const ComparedRow& row) const;
  // Requires: `row` is one of the comparison's.
  void Remember(const ComparedRow& row);

 private:
  struct Known {
    uint32_t row = 0;
    std::optional<ContentKey> target;
  };

  const Comparison& comparison_;
  std::unordered_map<ContentKey, Known, ContentKeyHash> known_;  // by golden contents
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_KNOWN_CONTENTS_H_
