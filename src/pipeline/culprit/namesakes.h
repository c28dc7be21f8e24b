// Pairs of calls that share a name and nothing else: the sides number their calls otherwise, and
// each does right (docs/design/verdict.md, "Namesakes").

#ifndef PLUMBLINE_PIPELINE_CULPRIT_NAMESAKES_H_
#define PLUMBLINE_PIPELINE_CULPRIT_NAMESAKES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// ComparedCall::unmatched_reason of such a pair.
inline constexpr std::string_view kNamesake = "namesake";

// Two values of unlike meaning seldom come this close, relative (iterates of one loop come within a
// few hundredths). What does is one value, computed less exactly.
inline constexpr double kAnother = 0.01;

// Pairs that may be namesakes, as indices into Comparison::calls.
struct Namesakes {
  std::vector<uint32_t> forward;
  std::vector<uint32_t> backward;  // what goes backward through them
  bool are_all = false;            // no other forward pair reads a wrong tensor

  [[nodiscard]] bool empty() const { return forward.empty(); }
};

// The forward pairs that read another tensor, and whose result some later call reads; none where
// there are very many. Requires: verdicts of all rows.
Namesakes FindNamesakes(const Comparison& comparison);

// Those of `namesakes` that did right: a result of it arrived where both sides agree closely
// (`arrived`, per call, as of a walk in which they had no counterpart), or is zero throughout and
// read by a call whose result did; and no later call that reads its results is wrong.
Namesakes ThatDidRight(const Comparison& comparison, const Namesakes& namesakes,
                       const std::vector<bool>& arrived);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_NAMESAKES_H_
