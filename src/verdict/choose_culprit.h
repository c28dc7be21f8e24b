// Places where two runs part, and the choice of the first wrong call among them.

#ifndef PLUMBLINE_VERDICT_CHOOSE_CULPRIT_H_
#define PLUMBLINE_VERDICT_CHOOSE_CULPRIT_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "plumbline/compare.h"
#include "verdict/unpaired_calls.h"

namespace plumbline::verdict {

// What an event shows where no single row does, and its cause (docs/reference/causes.md).
struct CulpritFact {
  std::string what;
  std::string cause{}, cause_text{}, confidence{};  // empty: to be looked for
};

// One place where the runs part although everything before it agreed.
struct CulpritEvent {
  enum class Kind : uint8_t {
    kOutput,     // a result differs by more than rounding and the inputs explain
    kArgument,   // a scalar argument has another value
    kInput,      // an input differs that no recorded call produced
    kStructure,  // the call has other shapes, dtypes or arguments
    kUnpaired,   // a call without counterpart; `row` is where its wrong result arrives
    kFact,       // what several rows show together, told by `fact`
  };
  uint32_t call = 0;  // index into Comparison::calls
  uint32_t row = 0;   // index into Comparison::rows
  Kind kind = Kind::kOutput;
  double error = 0, expected = 0;
  bool has_other_source = false;  // an input that one side takes from a call the other has not
  bool must_agree = false;        // whatever other way a side takes: a gradient of all parts
  CulpritFact fact{};
};

// A statistic or an argument, as Python writes it.
std::string ShownValue(const Recorded& recorded);

// "Torch.f.0.forward" for "Torch.f.0.backward"; empty for a name that is not a backward entry.
std::string ForwardNameOf(std::string_view backward_name);
// The target's call of that name; null where there is none.
const ComparedCall* ForwardCallOf(const Comparison& comparison, std::string_view backward_name);
// What calls of one API and direction share: the name without the number; empty for modules.
std::string SeriesOf(std::string_view name);

// The reverse; empty for a name that is not a forward entry.
std::string BackwardNameOf(std::string_view forward_name);

// Why what looks wrong may be no fault: every rule that takes an event back after the walk
// (docs/design/verdict.md, "From rows to the first wrong call").

// What the rules are asked with. Borrows the comparison and its calls without counterpart.
struct Evidence {
  const Comparison& comparison;
  const UnpairedCalls& unpaired;
  double noise = 0;           // largest relative error that counts as noise
  std::set<CallKind> met;     // directions in which the sides meet again (DirectionsThatMeet)
  bool leaves_agree = false;  // every parameter gets the same gradient (LeavesAgree), as seen
  bool forms_meet = false;    // calls of other forms are another way to the same values (FormsMeet)
  uint32_t end = 0;           // the call with the first wrong number, or behind all
  std::unordered_set<std::string_view> met_forms;  // target calls of another form before this one
};

using Excuse = bool (*)(const Evidence& evidence, const CulpritEvent& event);

// For an event that is a gradient alone, before the events are looked at together.
std::span<const Excuse> GradientExcuses();
// For wrong numbers.
std::span<const Excuse> NumberExcuses();
// For calls of one name whose shapes, data types or arguments do not fit.
std::span<const Excuse> FormExcuses();

// Whether one of the rules holds.
bool IsExcused(std::span<const Excuse> rules, const Evidence& evidence, const CulpritEvent& event);

// From everything that looks wrong to the one call to name.

// What the walk over the calls found, each list in recorded order.
struct Findings {
  std::vector<CulpritEvent> events;       // wrong numbers
  std::vector<CulpritEvent> other_forms;  // calls of one name with other shapes or arguments
  double noise = 0;                       // largest relative error that counts as noise
};

// The call to name, or none (docs/design/verdict.md, "From rows to the first wrong call").
std::optional<CulpritEvent> ChooseCulprit(const Run& target, const Comparison& comparison,
                                          const Findings& findings, const UnpairedCalls& unpaired);

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_CHOOSE_CULPRIT_H_
