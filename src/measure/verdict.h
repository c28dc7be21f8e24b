// From differences to verdicts: plumbline's own and the compatible columns
// (docs/design/verdict.md).

#ifndef PLUMBLINE_MEASURE_VERDICT_H_
#define PLUMBLINE_MEASURE_VERDICT_H_

#include <optional>
#include <string>
#include <string_view>

#include "measure/stats_metrics.h"
#include "plumbline/compare.h"

namespace plumbline::measure {

// What is known about one paired item before its call is considered.
struct Difference {
  enum class Kind : uint8_t {
    kEqual,     // no difference: `same`
    kNumeric,   // differs by `error`, or by bits alone (0); the call decides what that means
    kArgument,  // a scalar argument has another value, by `error` (infinity when not a number)
    kDecided,   // `verdict` and `reason` stand whatever the call does
  };
  Kind kind = Kind::kEqual;
  double error = 0;  // relative; NaN when no size is known
  Verdict verdict = Verdict::kSame;
  std::string_view reason;
  // Not empty: even if nothing speaks against the pair it is not good, but not comparable, for this
  // reason.
  std::string_view doubt;
};

// What the comparison knows about the two recordings as wholes.
struct PairContext {
  CompareMode mode = CompareMode::kStatistics;
  // One recorder takes statistics of integers and float64 from a float32 copy, the other does not.
  bool reductions_differ = false;
  // One recorder takes checksums of bfloat16 from a float32 copy, the other from its own bytes.
  bool digest_bases_differ = false;
  // Statistics that one recorder was not asked for: nothing is said about them.
  StatisticSet left_out{};
};

// The difference of two paired items. `metrics` is null outside mode tensor; there its absence
// reasons decide. Stable reasons: "" (same), "nonfinite-target", "nonfinite-golden",
// "nonfinite-both", "nonfinite-position", "zero-target", "zero-golden", "zero-both", "empty",
// "unreadable", "no-data", "digest-differs", "digest-basis", "subnormal".
Difference DifferenceOf(const Item& target, const Item& golden, const PairContext& context,
                        const TensorMetrics* metrics);

// A sum whose terms cancel may leave nothing at all on one side: where cancellation explains an
// error of the whole value (`cancelled`, relative), zero on one side is that error and no verdict.
Difference AsResidue(const Difference& difference, double cancelled);

// Whether the target is golden times another number than one, as far as the four statistics tell.
// Rounding of many elements makes no such thing.
bool IsMultiple(const Item& target, const Item& golden);

// The verdict of a difference of size `error` where `expected` is explained.
Verdict VerdictOfRatio(double error, double expected);

// Whether rounding cannot touch the values: integers and truth values on both sides.
bool IsExact(const Item& target, const Item& golden);

// Whether two scalar arguments are numbers that somebody wrote, as 0.1 and 0.103: at most eight
// digits each, and float32 does not hold both of them. What is read back from tensors of float32 or
// narrower types is a float32 number, and what is computed of it has more digits.
bool AreWrittenNumbers(const Item& target, const Item& golden);

// The larger unit roundoff of the two items; 0 for integers, truth values and scalars.
double RoundoffOf(const Item& target, const Item& golden);

// Position in "bad before good": broken, suspicious, not comparable, within noise, same.
int Severity(Verdict verdict);

// Column `Accuracy Reached or Not`: "Yes", "No", "None", "Unmatched". NaN never yields "Yes".
std::string AccuracyText(const TensorMetrics& metrics);

// Differences below the smallest normal number of a type.

// Noise, for the reason "subnormal", where two finite tensors differ by no more than the smallest
// normal number of their type in any element or statistic, however much that is of the whole:
// numbers that became zero, units of the smallest ones. Of float16, whose smaller numbers are in
// use, by one unit of the smallest. Nothing else, and where the usual rules suffice. `metrics` as
// of DifferenceOf().
std::optional<Difference> BelowNormal(const Item& target, const Item& golden,
                                      const PairContext& context, const TensorMetrics* metrics);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_VERDICT_H_
