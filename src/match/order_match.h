// Sums over ranks that the two sides make in another order, as other bucket sizes do.

#ifndef PLUMBLINE_MATCH_ORDER_MATCH_H_
#define PLUMBLINE_MATCH_ORDER_MATCH_H_

#include <utility>
#include <vector>

#include "match/expand.h"

namespace plumbline::match {

// Calls to pair anew (target, golden), given the golden partner of every target call (kNoPartner:
// none). Collectives of one name whose inputs disagree with their partner's, but agree with those
// of another such pair, and after them the calls that take their results. Each partner that is
// taken away finds another call, so that no call loses its pair. Messages between two ranks keep
// their order: it is part of what they mean. Calls whose inputs agree are never touched.
std::vector<std::pair<size_t, size_t>> PairsInAnotherOrder(const std::vector<CallItems>& target,
                                                           const std::vector<CallItems>& golden,
                                                           const std::vector<size_t>& partner);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_ORDER_MATCH_H_
