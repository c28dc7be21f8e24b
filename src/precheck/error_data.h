// What is kept of a call that did not pass: its inputs, the results of both sides, and how to make
// it again.

#ifndef PLUMBLINE_PRECHECK_ERROR_DATA_H_
#define PLUMBLINE_PRECHECK_ERROR_DATA_H_

#include <cstdint>
#include <string>

#include "plumbline/result.h"
#include "precheck/call_flow.h"
#include "precheck/outcome.h"

namespace plumbline::precheck {

// Whether there is something to keep: a direction that was run and is no pass.
bool IsWorthKeeping(const CallOutcome& outcome);

// Writes into `directory`, which is made: tensors as .pt files, numbered by their place among the
// leaves of a group, from 0, depth first; leaves that are no tensors count and have no file.
//
//   <call>.forward.input.<k>.pt             positional arguments
//   <call>.forward.input.<keyword>.<k>.pt   each keyword argument, from 0
//   <call>.forward.output.{bench,device}.<k>.pt
//   <call>.forward.changed.{bench,device}.<place>.<k>.pt   arguments changed in place
//   <call>.backward.input.<k>.pt            incoming gradients, in raised precision
//   <call>.backward.output.{bench,device}.<k>.pt
//   <call>.json                             the arguments, the seed, what was judged
//
// Thread-safe for different calls. kIo.
plumbline::Status SaveErrorData(const std::string& directory, uint64_t seed, const RanCall& ran,
                                const CallOutcome& outcome);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_ERROR_DATA_H_
