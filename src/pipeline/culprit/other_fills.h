// Masks filled with another number that means "never" (docs/design/verdict.md, "Another value for
// "never"").

#ifndef PLUMBLINE_PIPELINE_CULPRIT_OTHER_FILLS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_OTHER_FILLS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "pipeline/culprit/culprit_text.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Collects the inputs of one comparison that hold -inf on one side and a very low number on the
// other. What reads such a mask shows whether the two come to the same.
class OtherFills {
 public:
  // The code of a row with such a pair.
  static constexpr std::string_view kReason = "fill-differs";

  // If `row`, number `index` of the comparison and an input of `call`, is such a pair: marks it as
  // not comparable and returns true.
  bool Take(uint32_t call, uint32_t index, ComparedRow& row);
  // The first that was taken: to blame if what reads it is wrong.
  [[nodiscard]] const std::optional<CulpritEvent>& first() const { return first_; }

 private:
  std::optional<CulpritEvent> first_;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_OTHER_FILLS_H_
