// How far an answer can be trusted: the recordings decide, not the comparison.

#ifndef PLUMBLINE_REPORT_CERTAINTY_H_
#define PLUMBLINE_REPORT_CERTAINTY_H_

#include <string>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::report {

struct Certainty {
  // "high": every element was compared; "medium": less than that; "low": equal proves little.
  std::string_view level;
  std::string text;  // what was compared, and what goes unseen
};
// `of_xor`: digests are XORs of words (measure::AreXorDigests).
Certainty CertaintyOf(CompareMode mode, bool of_xor, const DetectionLimit& limit);
Certainty CertaintyOf(const Comparison& comparison);

// "  certainty: ..." and a line end; empty where every element was compared.
std::string CertaintyLine(const Certainty& certainty);

// "differences of a result below 0.01 % and of a gradient below 2 % cannot be told from noise
// here".
std::string LimitText(const DetectionLimit& limit);
// "  limit: ..." and a line end, below an answer without a wrong call.
std::string LimitLine(const DetectionLimit& limit);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_CERTAINTY_H_
