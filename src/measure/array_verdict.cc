#include "measure/array_verdict.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/finite_scan.h"
#include "kernels/scaled_squares.h"
#include "measure/elementwise.h"
#include "tensor/element_value.h"

namespace plumbline::measure {
namespace {

constexpr double kRoundings = 8;       // conversions and updates that round once each
constexpr double kLostDigits = 32;     // times the root of the roundoff
constexpr double kLargestError = 0.1;  // whatever the dtype
// Functions that are steep somewhere leave up to 12 times the noise in single elements.
constexpr double kOutlierNoise = 16;
constexpr uint64_t kManyElements = 64;  // of fewer the norm hides none

double CoarserRoundoff(DType target, DType golden) {
  return std::max(UnitRoundoff(target), UnitRoundoff(golden));
}

// Of either sign.
bool IsAllZero(const TensorView& view) {
  // Each byte equals the next one, and the first is 0.
  const size_t size = view.size_bytes();
  if (view.data[0] == std::byte{0} && std::memcmp(view.data, view.data + 1, size - 1) == 0) {
    return true;
  }
  const size_t width = InfoOf(view.dtype).size_bytes;
  const auto is_zero = [](auto... parts) { return ((parts == 0) && ...); };
  for (size_t at = 0; at < size; at += width) {
    if (!VisitElement(view.dtype, view.data + at, is_zero)) return false;
  }
  return true;
}

// Whether the element that is furthest off is too far, for its size or for that of the sums that it
// may be what is left of: by more than a few roundings, or as many times the noise of all other
// elements, of the largest element. A norm hides one wrong element among many right ones.
bool HasOutlier(const ArrayDifference& sums, DType target, DType golden) {
  const uint64_t finite = sums.count - sums.nonfinite_count;
  if (finite < kManyElements) return false;
  const auto count = static_cast<double>(finite);
  // All but that one.
  const double share = std::min(1.0, sums.max_abs / sums.difference_norm);
  const double others = sums.difference_norm * std::sqrt((1 - share) * (1 + share));
  const double relative = others / sums.golden_norm * std::sqrt(count / (count - 1));
  double noise = CoarserRoundoff(target, golden);
  if (std::isfinite(relative)) noise = std::max(noise, relative);
  return sums.max_abs > kOutlierNoise * noise * sums.golden_max;
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
  result.error = sums.difference_norm / sums.golden_norm;
  // Of very large and very small values it may be no number.
  if (!std::isfinite(result.error) || result.error == 0)
    result.error = sums.max_abs / sums.golden_max;
  result.expected = RoundingError(target, golden);
  const double plausible = LargestPlausibleError(target, golden);
  const bool has_outlier = HasOutlier(sums, target, golden);
  if (result.expected == 0) {
    result.verdict = Verdict::kBroken;
    result.reason = "values-differ";
  } else if (!(result.error <= plausible)) {
    result.verdict = Verdict::kBroken;
    result.reason = "exceeds-rounding";
  } else if (has_outlier && sums.max_abs > plausible * sums.golden_max) {
    result.verdict = Verdict::kBroken;
    result.reason = "outlier";
  } else if (has_outlier || result.error > result.expected) {
    result.verdict = Verdict::kSuspicious;
    result.reason = result.error > result.expected ? "exceeds-rounding" : "outlier";
  } else if (sums.nonfinite_count > 0) {
    result.verdict = Verdict::kNotComparable;
    result.reason = "nonfinite-both";
  } else {
    result.verdict = Verdict::kWithinNoise;
  }
  return result;
}

ArrayDifference DifferenceOf(const kernels::Pairwise& sums) {
  return {sums.count,
          sums.nonfinite_count,
          sums.nonfinite_mismatch,
          sums.mismatch_count > 0,
          sums.target_max,
          sums.golden_max,
          sums.max_abs,
          kernels::DifferenceNorm(sums),
          kernels::GoldenNorm(sums)};
}

ArrayVerdict JudgeArrays(const kernels::Pairwise& sums, DType target, DType golden) {
  return JudgeDifference(DifferenceOf(sums), target, golden);
}

ArrayVerdict JudgeElements(const ArrayDifference& difference, const TensorView& target,
                           const TensorView& golden, DType target_dtype, DType golden_dtype) {
  ArrayVerdict verdict = JudgeDifference(difference, target_dtype, golden_dtype);
  const uint64_t finite = difference.count - difference.nonfinite_count;
  if (verdict.verdict != Verdict::kWithinNoise || finite < kManyElements) return verdict;
  const auto count = static_cast<double>(finite);
  const TypicalDifference typical{difference.difference_norm / std::sqrt(count),
                                  difference.golden_norm / std::sqrt(count),
                                  CoarserRoundoff(target_dtype, golden_dtype)};
  // Rounding and its noise are hardly ever that large, so that few arrays are read again.
  const bool may_have = difference.max_abs > LeastOfLoneElement(typical);
  if (may_have && HasLoneElement(target, golden, typical)) {
    verdict.verdict = Verdict::kSuspicious;
    verdict.reason = "outlier";
  }
  return verdict;
}

ArrayVerdict JudgeElements(const kernels::Pairwise& sums, const TensorView& target,
                           const TensorView& golden) {
  return JudgeElements(DifferenceOf(sums), target, golden, target.dtype, golden.dtype);
}

ArrayVerdict JudgeEqualArrays(const TensorView& view) {
  if (view.size_bytes() == 0) return Of(Verdict::kNotComparable, "empty");
  if (IsAllZero(view)) return Of(Verdict::kNotComparable, "zero-both");
  if (kernels::HasNonFinite(view, nullptr)) return Of(Verdict::kNotComparable, "nonfinite-both");
  return Of(Verdict::kSame, "", 0);
}

ArrayVerdict JudgePair(const TensorView& target, const TensorView& golden) {
  if (target.element_count() == 0) return NotComparable("empty");
  if (target.dtype == golden.dtype &&
      std::memcmp(target.data, golden.data, target.size_bytes()) == 0) {
    return JudgeEqualArrays(target);
  }
  const kernels::PairOfRuns runs{target.dtype, target.data, golden.dtype, golden.data,
                                 static_cast<size_t>(target.element_count())};
  kernels::Pairwise sums = kernels::PairwiseOf(runs);
  kernels::RescaleSquares(runs, &sums);
  return JudgeElements(sums, target, golden);
}

}  // namespace plumbline::measure
