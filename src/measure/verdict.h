// From differences to verdicts: plumbline's own and the compatible columns
// (docs/design/verdict.md).

#ifndef PLUMBLINE_MEASURE_VERDICT_H_
#define PLUMBLINE_MEASURE_VERDICT_H_

#include <string>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::measure {

// What is known about one paired item before its call is considered.
struct Difference {
  enum class Kind : uint8_t {
    kEqual,     // no difference: `same`
    kNumeric,   // differs by `error`; the call decides what that means
    kArgument,  // a scalar argument has another value, by `error` (infinity when not a number)
    kDecided,   // `verdict` and `reason` stand whatever the call does
  };
  Kind kind = Kind::kEqual;
  double error = 0;  // relative; NaN when no size is known
  Verdict verdict = Verdict::kSame;
  std::string_view reason;
};

// The difference of two paired items. `metrics` is null outside mode tensor; there its absence
// reasons decide. Stable reasons: "" (same), "nonfinite-target", "nonfinite-golden",
// "nonfinite-both", "zero-target", "zero-golden", "zero-both", "empty", "unreadable", "no-data".
Difference DifferenceOf(const Item& target, const Item& golden, CompareMode mode,
                        const TensorMetrics* metrics);

// The verdict of a difference of size `error` where `expected` is explained.
Verdict VerdictOfRatio(double error, double expected);

// The larger unit roundoff of the two items; 0 for integers, truth values and scalars.
double RoundoffOf(const Item& target, const Item& golden);

// Position in "bad before good": broken, suspicious, not comparable, within noise, same.
int Severity(Verdict verdict);

// Column `Accuracy Reached or Not`: "Yes", "No", "None", "Unmatched". NaN never yields "Yes".
std::string AccuracyText(const TensorMetrics& metrics);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_VERDICT_H_
