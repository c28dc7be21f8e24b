// How far two calls are apart in what they read, as far as recorded statistics show it.

#ifndef PLUMBLINE_MATCH_INPUT_DISTANCE_H_
#define PLUMBLINE_MATCH_INPUT_DISTANCE_H_

#include "match/expand.h"

namespace plumbline::match {

// Two inputs whose statistics differ by less than this are taken for one value of both runs.
inline constexpr double kSameValue = 0.02;

// The largest relative distance of the tensors that go in; infinity when none do or they do not
// pair.
double InputDistance(const CallItems& a, const CallItems& b);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_INPUT_DISTANCE_H_
