// The answer in words: the first wrong call, or what `no wrong call` covers: results reached in
// another form, and differences too small to be told.

#ifndef PLUMBLINE_EXPLAIN_ANSWER_TEXT_H_
#define PLUMBLINE_EXPLAIN_ANSWER_TEXT_H_

#include <optional>
#include <string>

#include "plumbline/compare.h"
#include "verdict/choose_culprit.h"

namespace plumbline::explain {

// Fills first_wrong_call: the place of `culprit` in words; nothing without one.
void NameCulprit(const Run& target, const std::optional<verdict::CulpritEvent>& culprit,
                 Comparison& comparison);

// What a wrong run could have done in one comparison without being told.

// Of rows that have been judged.
DetectionLimit LimitOf(const Comparison& comparison);

// Calls that are another way to the same results, in words.

// "720 calls of the optimizer", "2 calls of the target (Functional.f) for 14 of golden (Torch.g,
// Torch.h)". Which calls are an optimizer's is told by their stacks. Empty where no call is
// marked so (verdict::kEquivalent).
std::string EquivalentCallsText(const Run& target, const Run& golden, const Comparison& comparison);

}  // namespace plumbline::explain

#endif  // PLUMBLINE_EXPLAIN_ANSWER_TEXT_H_
