// How far an answer can be trusted: the recordings decide, not the comparison.

#ifndef PLUMBLINE_REPORT_CERTAINTY_H_
#define PLUMBLINE_REPORT_CERTAINTY_H_

#include <string>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::report {

struct Certainty {
  std::string_view level;  // "high": every element was compared; "medium": less than that
  std::string_view text;   // what was compared, and what goes unseen
};
Certainty CertaintyOf(CompareMode mode);

// "  certainty: ..." and a line end; empty where every element was compared.
std::string CertaintyLine(CompareMode mode);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_CERTAINTY_H_
