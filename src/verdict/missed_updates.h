// Parameters that one side updates and the other does not, or not in the same way.

#ifndef PLUMBLINE_VERDICT_MISSED_UPDATES_H_
#define PLUMBLINE_VERDICT_MISSED_UPDATES_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"
#include "verdict/choose_culprit.h"

namespace plumbline::verdict {

// Parameters and what is kept beside them that one side updates and the other leaves as they are.

// The first call without counterpart that writes into a parameter, or into another tensor which
// both sides have written into in that way before (a moment, an average), where the other side has
// the same tensor, makes the same call for others as often as that (a pair that agrees), and either
// does not write into this one or goes on with the next update as if it were none, and does not
// compute what it would become: the row is the call's result. Tensors are followed by their
// contents, which pairs translate from one side to the other; of equal ones, as biases that are
// still zero, as many must be updated. Nothing in a comparison of saved values. Requires: rows and
// calls are judged.
std::optional<CulpritEvent> FindSkippedUpdate(const Comparison& comparison);

// Parameters that an optimizer moved otherwise, where no gradient was recorded that could tell why.

// Of what differs as much as rounding may have made it, where nothing recorded proves that it did.
inline constexpr std::string_view kUnproven = "unproven";
// Counts such rows among the missing values, and warns of the first of them. Once per judgement.
void ReportUnproven(Comparison& comparison);

// The rows in which forward pairs read a vector among the parameters that differs behind a step,
// agreed before it, and moved no further than three times golden's largest step (as far as elements
// are recorded), while nothing comes of it: every result that follows from it is read again, and
// ends where both sides agree. So does a bias of keys before a softmax, or one before a batch norm,
// whose gradient is rounding alone; which of the two it is, rounding or a fault without effect, is
// not told. Empty where gradients were recorded with their elements. Requires: verdicts of all
// rows.
std::vector<uint32_t> UpdatesWithoutEffect(const Comparison& comparison);

// Parameters that one side alone goes on training.

// The first forward pair that reads a tensor which requires a gradient on one side only, although
// the same call of the step before, or the same module before, read one there that did on both
// sides. Only where gradients were recorded. Requires: verdicts of all rows.
std::optional<CulpritEvent> FindFrozenParameter(const Comparison& comparison);

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_MISSED_UPDATES_H_
