// Arguments that one side passes and the other leaves to their defaults. The calls are pairs all
// the same: what they return tells whether the argument is the default spelled out.

#ifndef PLUMBLINE_PIPELINE_DEFAULT_ARGUMENTS_H_
#define PLUMBLINE_PIPELINE_DEFAULT_ARGUMENTS_H_

#include <cstdint>
#include <vector>

#include "match/expand.h"
#include "match/name_match.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Of one call, which arguments one side alone passes.
struct DefaultArguments {
  uint32_t call = 0;  // index into Comparison::calls, of the pair
  bool of_target = false;
  std::vector<Item> items;
};

// Takes them out of `pairs`, in order. Pairs beside which one side makes calls of its own, which
// may stand for the argument (a sum that is divided there, instead of a mean), are parted. The pair
// that the call's other items are in says in its detail what was taken, which is then
// ComparedCall::unmatched_detail of a pair.
std::vector<DefaultArguments> TakeDefaultArguments(std::vector<match::CallPair>& pairs,
                                                   const std::vector<match::CallItems>& target,
                                                   const std::vector<match::CallItems>& golden);

// Adds them to a judged comparison: rows right behind those of their calls, not comparable. What
// may act where no row shows it, or no more than rounding does, counts as a missing value.
void AddDefaultArguments(std::vector<DefaultArguments> arguments, Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_DEFAULT_ARGUMENTS_H_
