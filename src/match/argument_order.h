// Calls that one side makes in another order, told apart by their arguments.

#ifndef PLUMBLINE_MATCH_ARGUMENT_ORDER_H_
#define PLUMBLINE_MATCH_ARGUMENT_ORDER_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "match/expand.h"

namespace plumbline::match {

// Pairs (target, golden) in place of those of `partner` (golden index per target call, -1 for
// none): the forward calls of one name where some stand against others of another form or with
// other scalar arguments, although one side makes all calls of the other, form by form and argument
// by argument, and the tensors that they read agree. A lattice that is summed from its other end
// takes the same elements in another order. Of whole names only: each call of the side with fewer
// of them has a pair. And their gradients: -1 on one side where the other side's call has none.
std::vector<std::pair<size_t, size_t>> PairedByArguments(const std::vector<CallItems>& target,
                                                         const std::vector<CallItems>& golden,
                                                         const std::vector<size_t>& partner);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_ARGUMENT_ORDER_H_
