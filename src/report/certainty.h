// How far an answer can be trusted: the recordings decide, not the comparison.

#ifndef PLUMBLINE_REPORT_CERTAINTY_H_
#define PLUMBLINE_REPORT_CERTAINTY_H_

#include <string>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::report {

struct Certainty {
  std::string_view level;  // "high": every element was compared; "medium": less than that
  std::string text;        // what was compared, and what goes unseen
};
Certainty CertaintyOf(CompareMode mode, const DetectionLimit& limit);

// "  certainty: ..." and a line end; empty where every element was compared.
std::string CertaintyLine(CompareMode mode, const DetectionLimit& limit);

// "differences of a result below 0.01 % and of a gradient below 2 % cannot be told from noise
// here".
std::string LimitText(CompareMode mode, const DetectionLimit& limit);
// "  limit: ..." and a line end, below an answer without a wrong call.
std::string LimitLine(CompareMode mode, const DetectionLimit& limit);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_CERTAINTY_H_
