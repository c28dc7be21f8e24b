// Arguments whose elements name places in another argument, or lengths: drawn at random they would
// name places that are not there.

#ifndef PLUMBLINE_PRECHECK_INDEX_RULES_H_
#define PLUMBLINE_PRECHECK_INDEX_RULES_H_

#include "precheck/prepared_call.h"

namespace plumbline::precheck {

// Keeps the generated elements of such tensors of a forward call legal, by a table of APIs: indices
// within what they index, lengths that add up ascending. Indices that say where results are stored
// are distinct where they can be, as the result is otherwise not defined.
void KeepIndicesLegal(PreparedCall& call);

// The tensor that stands at a position or under a keyword; null: no tensor stands there.
const CallValue* FindArgument(const PreparedCall& call, size_t position, std::string_view keyword);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_INDEX_RULES_H_
