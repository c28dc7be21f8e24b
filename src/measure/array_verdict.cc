#include "measure/array_verdict.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/finite_scan.h"

namespace plumbline::measure {
namespace {

constexpr double kRoundings = 8;       // conversions and updates that round once each
constexpr double kLostDigits = 32;     // times the root of the roundoff
constexpr double kLargestError = 0.1;  // whatever the dtype

double CoarserRoundoff(DType target, DType golden) {
  return std::max(UnitRoundoff(target), UnitRoundoff(golden));
}

bool IsAllZero(const TensorView& view) {
  // Each byte equals the next one, and the first is 0.
  const size_t size = view.size_bytes();
  return view.data[0] == std::byte{0} && std::memcmp(view.data, view.data + 1, size - 1) == 0;
}

ArrayVerdict Of(Verdict verdict, std::string_view reason,
                double error = std::numeric_limits<double>::quiet_NaN()) {
  return {verdict, reason, error, 0};
}

}  // namespace

double RoundingError(DType target, DType golden) {
  const double roundoff = CoarserRoundoff(target, golden);
  return std::min(kRoundings * roundoff, LargestPlausibleError(target, golden));
}

double LargestPlausibleError(DType target, DType golden) {
  const double roundoff = CoarserRoundoff(target, golden);
  return std::min(kLostDigits * std::sqrt(roundoff), kLargestError);
}

ArrayVerdict NotComparable(std::string_view reason) {
  return {Verdict::kNotComparable, reason, std::numeric_limits<double>::quiet_NaN(), 0};
}

ArrayVerdict JudgeDifference(const ArrayDifference& sums, DType target, DType golden) {
  if (sums.nonfinite_mismatch > 0) return Of(Verdict::kBroken, "nonfinite-position");
  const bool agrees = !sums.differs;
  if (agrees && sums.nonfinite_count > 0) return Of(Verdict::kNotComparable, "nonfinite-both");
  if (sums.target_max == 0 && sums.golden_max == 0) {
    return Of(Verdict::kNotComparable, sums.nonfinite_count > 0 ? "nonfinite-both" : "zero-both");
  }
  if (agrees) return Of(Verdict::kSame, "", 0);
  if (sums.golden_max == 0) return Of(Verdict::kBroken, "zero-golden");
  if (sums.target_max == 0) return Of(Verdict::kBroken, "zero-target", 1);
  ArrayVerdict result;
  result.error = std::sqrt(sums.difference_squares / sums.golden_squares);
  // Squares of very large and very small values are no numbers any more.
  if (!std::isfinite(result.error)) result.error = sums.max_abs / sums.golden_max;
  result.expected = RoundingError(target, golden);
  if (result.expected == 0) {
    result.verdict = Verdict::kBroken;
    result.reason = "values-differ";
  } else if (!(result.error <= LargestPlausibleError(target, golden))) {
    result.verdict = Verdict::kBroken;
    result.reason = "exceeds-rounding";
  } else if (result.error > result.expected) {
    result.verdict = Verdict::kSuspicious;
    result.reason = "exceeds-rounding";
  } else if (sums.nonfinite_count > 0) {
    result.verdict = Verdict::kNotComparable;
    result.reason = "nonfinite-both";
  } else {
    result.verdict = Verdict::kWithinNoise;
  }
  return result;
}

ArrayVerdict JudgeArrays(const kernels::Pairwise& sums, DType target, DType golden) {
  return JudgeDifference(
      {sums.nonfinite_count, sums.nonfinite_mismatch, sums.mismatch_count > 0, sums.target_max,
       sums.golden_max, sums.max_abs, sums.difference_squares, sums.golden_squares},
      target, golden);
}

ArrayVerdict JudgeEqualArrays(const TensorView& view) {
  if (view.size_bytes() == 0) return Of(Verdict::kNotComparable, "empty");
  if (IsAllZero(view)) return Of(Verdict::kNotComparable, "zero-both");
  if (kernels::HasNonFinite(view, nullptr)) return Of(Verdict::kNotComparable, "nonfinite-both");
  return Of(Verdict::kSame, "", 0);
}

}  // namespace plumbline::measure
