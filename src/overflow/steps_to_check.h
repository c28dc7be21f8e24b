// What a path given to `plumb overflow` holds: the steps of a dump, one step, or one rank.

#ifndef PLUMBLINE_OVERFLOW_STEPS_TO_CHECK_H_
#define PLUMBLINE_OVERFLOW_STEPS_TO_CHECK_H_

#include <string>
#include <vector>

#include "load/rank_directories.h"
#include "plumbline/result.h"

namespace plumbline {

struct StepToCheck {
  std::string path;
  std::vector<load::RankDirectory> ranks;  // at least one
  bool is_rank = false;                    // the path of one rank was given
};

// In order of step. kNotFound: no such directory, or no rank in it or in one of its steps; errors
// of ListRankDirectories().
Result<std::vector<StepToCheck>> StepsToCheck(const std::string& path);

}  // namespace plumbline

#endif  // PLUMBLINE_OVERFLOW_STEPS_TO_CHECK_H_
