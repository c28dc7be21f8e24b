// Which recording to make next when this one is too coarse to settle the cause.

#ifndef PLUMBLINE_EXPLAIN_NEXT_CONFIG_H_
#define PLUMBLINE_EXPLAIN_NEXT_CONFIG_H_

#include <string>

#include "plumbline/compare.h"

namespace plumbline::explain {

// Text of the config.json that records what `comparison` lacks around its first wrong call: tensors
// where there were statistics or digests, the calls inside a module where there were modules, the
// operators below a call where its tensors explain nothing. Where rows differ and no call is named:
// the tensors of those calls. Empty when nothing differs or nothing finer can be recorded.
// Requires: ExplainCause() was called.
std::string NextConfigText(const Run& target, const Comparison& comparison);

// Writes comparison.next_config to `path` and adds it to comparison.files, or a warning when there
// is nothing to record. Errors of WriteFileAtomically().
Status WriteNextConfig(const std::string& path, Comparison& comparison);

}  // namespace plumbline::explain

#endif  // PLUMBLINE_EXPLAIN_NEXT_CONFIG_H_
