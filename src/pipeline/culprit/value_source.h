// Where a value of a comparison comes from: the calls that made it, and what stood before the step.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_VALUE_SOURCE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_VALUE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Whether a call of this name writes into its first input, which no later row of it need show.
bool WritesInPlace(const std::string& name);

// Whether `item` is `made` repeated along an axis, as expand() does, which no recorder sees.
bool IsRepeatOf(const Item& item, const Item& made);

// The call whose result one side of the row is, as far as contents tell: the last before it; where
// golden has none there, a later one that does not read the value itself. One without counterpart
// is preferred. Empty: none recorded.
std::string ProducerOf(const Comparison& comparison, const ComparedRow& row, bool of_target);

// The last call that only one side made before the row and that writes in place into what the row
// reads there: what it was given, or what it took a view of, is the row's value on either side.
// Empty where a recorded call returned that side's value, or nothing writes into it.
std::string WriterInto(const Comparison& comparison, const ComparedRow& row, bool of_target);

// The target call without counterpart from which what `call` (an index) reads comes, at most a few
// calls before it; the nearest. Empty: none.
std::string LoneCallLeadingTo(const Comparison& comparison, uint32_t call);

// Calls that only one side made, each of which leads to a value of that side.
struct LoneCalls {
  size_t count = 0;         // forward or backward calls, whichever `last` is
  std::string first, last;  // in recorded order
};
// Those that lead to the result of the call `source`, which is without counterpart itself. Through
// one value that both sides have no call leads.
LoneCalls LoneCallsBefore(const Comparison& comparison, const std::string& source, bool of_target);

// Another call of the API of `source` without counterpart on its side, to which as many lone calls
// lead (`count`) and whose result arrives at a pair that agrees: there the other side computes the
// same in its own way. Empty: none.
std::string HarmlessTwinOf(const Comparison& comparison, const std::string& source, size_t count,
                           bool of_target);

// Calls numbered alike whose sides are not the same call: one side left out a part of the model,
// and what follows has lower numbers there. Told by an input from outside, such as a weight, that
// the shorter side takes where the longer one takes it in a later call of the same API.
struct SkippedCalls {
  bool by_target = false;
  std::string first, next;  // of the longer side: the call in its place, and the one it truly is
  size_t count = 0;         // calls of that direction which only the longer side has
};
std::optional<SkippedCalls> FindSkippedCalls(const Comparison& comparison, const ComparedRow& row);

// Parameters as they were when the step first used them.
struct ParameterCounts {
  size_t differing = 0;
  size_t all = 0;
};
ParameterCounts CountParameters(const Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_VALUE_SOURCE_H_
