// Why what looks wrong may be no fault: every rule that takes an event back after the walk
// (docs/design/verdict.md, "From rows to the first wrong call").

#ifndef PLUMBLINE_PIPELINE_CULPRIT_EXCUSES_H_
#define PLUMBLINE_PIPELINE_CULPRIT_EXCUSES_H_

#include <cstdint>
#include <set>
#include <span>
#include <string_view>
#include <unordered_set>

#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/unpaired_calls.h"
#include "plumbline/compare.h"
#include "record/value.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_EXCUSES_H_
