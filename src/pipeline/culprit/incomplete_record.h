// Calls of one name of which one recording lacks a value: a damaged recording, and no other call.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_INCOMPLETE_RECORD_H_
#define PLUMBLINE_PIPELINE_CULPRIT_INCOMPLETE_RECORD_H_

#include <cstdint>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Whether the target's call `call` (an index), whose counterpart of that name has another form,
// did the same as that: all values that both sides have agree up to the relative error `noise`, one
// side alone lacks some, and these must have been there. An input must, where all results agree,
// which they would not without it; a result of an API with these inputs, which returns what it
// returns, or all results of a module; gradients that are not even null, where the forward calls
// agree; anything where the recorder counted losses.
bool LacksValuesOnly(const Comparison& comparison, uint32_t call, double noise);

// A warning for each call whose counterpart of that name has another form and that is not named, up
// to a few: which value it is.
void WarnOfOtherForms(Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_INCOMPLETE_RECORD_H_
