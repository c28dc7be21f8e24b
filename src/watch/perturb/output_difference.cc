#include "watch/perturb/output_difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <vector>

#include "kernels/kernel_table.h"
#include "tensor/element_value.h"
#include "watch/perturb/noise.h"
#include "watch/perturb/strided_pair.h"

namespace plumbline::perturb {
namespace {

constexpr size_t kSlice = 1024;  // both sides as doubles: half a first-level cache
constexpr size_t kLaneCount = 8;
constexpr double kLargest = std::numeric_limits<double>::max();

// One side of a slice: elements of a run as doubles.
void Widen(DType dtype, const std::byte* from, int64_t step, size_t count, double* out) {
  const auto bytes = static_cast<int64_t>(InfoOf(dtype).size_bytes);
  const bool is_narrow = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  if (step == bytes && dtype == DType::kFloat64) {
    std::memcpy(out, from, count * sizeof(double));
  } else if (step == bytes && (is_narrow || dtype == DType::kFloat32)) {
    alignas(64) float narrow[kSlice];
    if (is_narrow) {
      kernels::ActiveTable().to_float(dtype, from, count, narrow);
    } else {
      std::memcpy(narrow, from, count * sizeof(float));
    }
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<double>(narrow[i]);
  } else {
    for (size_t i = 0; i < count; ++i) {
      out[i] = ElementAsDouble(dtype, from + static_cast<int64_t>(i) * step);
    }
  }
}

// Calls `visit` with each pair of elements as doubles.
template <class Visit>
void VisitWidened(const TensorView& one, const TensorView& other, const Visit& visit) {
  const Side left{one.data, one.strides, InfoOf(one.dtype).size_bytes};
  const Side right{other.data, other.strides, InfoOf(other.dtype).size_bytes};
  VisitRuns(one.sizes, left, right, [&](const PairRun& run) {
    double a[kSlice];
    double b[kSlice];
    for (size_t i = 0; i < run.count; i += kSlice) {
      const size_t count = std::min(kSlice, run.count - i);
      const auto at = static_cast<int64_t>(i);
      Widen(one.dtype, run.left + at * run.left_step, run.left_step, count, a);
      Widen(other.dtype, run.right + at * run.right_step, run.right_step, count, b);
      for (size_t k = 0; k < count; ++k) visit(a[k], b[k]);
    }
  });
}

bool AllFinite(const double* values, size_t count) {
  uint64_t bad = 0;
  for (size_t i = 0; i < count; ++i) bad |= std::abs(values[i]) <= kLargest ? 0u : 1u;
  return bad == 0;
}

struct Lanes {
  double max_ratio[kLaneCount], min_ratio[kLaneCount], min_product[kLaneCount], change[kLaneCount];

  explicit Lanes(const RatioSums& sums) {
    std::fill_n(max_ratio, kLaneCount, sums.max_ratio);
    std::fill_n(min_ratio, kLaneCount, sums.min_ratio);
    std::fill_n(min_product, kLaneCount, sums.min_product);
    std::fill_n(change, kLaneCount, sums.change);
  }
  void FoldInto(RatioSums* sums) const {
    for (size_t l = 0; l < kLaneCount; ++l) {
      sums->max_ratio = std::max(sums->max_ratio, max_ratio[l]);
      sums->min_ratio = std::min(sums->min_ratio, min_ratio[l]);
      sums->min_product = std::min(sums->min_product, min_product[l]);
      sums->change = std::max(sums->change, change[l]);
    }
  }
};

struct Ratios {
  double high, low;  // candidates for the largest and for the smallest ratio
};

inline Ratios RatioOf(double a, double b, double tolerance) {
  const double ratio = std::max(std::abs(a), tolerance) / std::max(std::abs(b), tolerance);
  return {ratio, ratio};
}

// Elements below the tolerance count as equal on the side that is divided by.
inline Ratios MindSporeRatioOf(double a, double b, double tolerance) {
  const double first = std::abs(b) > tolerance ? a / b : 1;
  const double second = std::abs(a) > tolerance ? b / a : 1;
  return {std::max(first, second), std::min(first, second)};
}

template <bool kMindSpore>
inline void AddPair(double a, double b, double tolerance, size_t lane, Lanes* lanes) {
  const Ratios ratio = kMindSpore ? MindSporeRatioOf(a, b, tolerance) : RatioOf(a, b, tolerance);
  const double product = a * b;
  const double change = std::abs(a - b) / std::max(std::abs(b), tolerance);
  lanes->max_ratio[lane] = std::max(lanes->max_ratio[lane], ratio.high);
  lanes->min_ratio[lane] = std::min(lanes->min_ratio[lane], ratio.low);
  lanes->min_product[lane] = std::min(lanes->min_product[lane], product);
  lanes->change[lane] = std::max(lanes->change[lane], change);
}

template <bool kMindSpore>
void AddFinite(const double* a, const double* b, size_t count, double tolerance,
               RatioSums* sums) {
  Lanes lanes(*sums);
  size_t i = 0;
  for (; i + kLaneCount <= count; i += kLaneCount) {
    for (size_t l = 0; l < kLaneCount; ++l) {
      AddPair<kMindSpore>(a[i + l], b[i + l], tolerance, l, &lanes);
    }
  }
  for (; i < count; ++i) AddPair<kMindSpore>(a[i], b[i], tolerance, 0, &lanes);
  lanes.FoldInto(sums);
}

// A slice with NaN or infinity. A ratio that is NaN counts as 1, an infinite one as the largest.
void AddAny(const RatioRule& rule, const double* a, const double* b, size_t count,
            RatioSums* sums) {
  for (size_t i = 0; i < count; ++i) {
    const bool any_nan = std::isnan(a[i]) || std::isnan(b[i]);
    const bool any_inf = std::isinf(a[i]) || std::isinf(b[i]);
    if (std::isnan(a[i]) != std::isnan(b[i])) ++sums->nan_mismatches;
    if (!any_nan && any_inf && a[i] != b[i]) ++sums->inf_mismatches;
    if (any_nan || (any_inf && a[i] == b[i])) continue;
    if (!any_inf) {
      rule.is_mindspore ? AddFinite<true>(a + i, b + i, 1, rule.tolerance, sums)
                        : AddFinite<false>(a + i, b + i, 1, rule.tolerance, sums);
      continue;
    }
    if (rule.is_mindspore) continue;  // infinite ratios count as 1 there
    const double ratio = RatioOf(a[i], b[i], rule.tolerance).high;
    if (!std::isnan(ratio)) {
      sums->max_ratio = std::max(sums->max_ratio, std::min(ratio, kLargest));
      sums->min_ratio = std::min(sums->min_ratio, ratio);
    }
    sums->min_product = std::min(sums->min_product, a[i] * b[i]);
  }
}

struct PairOfDTypes {
  DType left, right;
};

void CompareRun(const RatioRule& rule, PairOfDTypes dtypes, const PairRun& run, RatioSums* sums) {
  alignas(64) double a[kSlice];
  alignas(64) double b[kSlice];
  const size_t bytes = InfoOf(dtypes.left).size_bytes;
  const bool may_be_equal = dtypes.left == dtypes.right && run.left_step == run.right_step &&
                            run.left_step == static_cast<int64_t>(bytes);
  for (size_t i = 0; i < run.count; i += kSlice) {
    const size_t count = std::min(kSlice, run.count - i);
    const std::byte* left = run.left + static_cast<int64_t>(i) * run.left_step;
    const std::byte* right = run.right + static_cast<int64_t>(i) * run.right_step;
    if (may_be_equal && std::memcmp(left, right, count * bytes) == 0) continue;
    Widen(dtypes.left, left, run.left_step, count, a);
    Widen(dtypes.right, right, run.right_step, count, b);
    if (!AllFinite(a, count) || !AllFinite(b, count)) {
      AddAny(rule, a, b, count, sums);
    } else if (rule.is_mindspore) {
      AddFinite<true>(a, b, count, rule.tolerance, sums);
    } else {
      AddFinite<false>(a, b, count, rule.tolerance, sums);
    }
  }
}

void Combine(const RatioSums& part, RatioSums* sums) {
  sums->max_ratio = std::max(sums->max_ratio, part.max_ratio);
  sums->min_ratio = std::min(sums->min_ratio, part.min_ratio);
  sums->min_product = std::min(sums->min_product, part.min_product);
  sums->change = std::max(sums->change, part.change);
  sums->nan_mismatches += part.nan_mismatches;
  sums->inf_mismatches += part.inf_mismatches;
}

struct SharedComparison {
  const RatioRule& rule;
  PairOfDTypes dtypes;
  PairRun run;
  size_t workers;
  std::mutex mutex = {};
  RatioSums sums = {};

  static void Work(void* self, int worker) {
    static_cast<SharedComparison*>(self)->Share(static_cast<size_t>(worker));
  }
  void Share(size_t worker) {
    RatioSums own;
    CompareRun(rule, dtypes, ShareOf(run, worker, workers), &own);
    const std::lock_guard lock(mutex);
    Combine(own, &sums);
  }
};

// A complex tensor as one of real numbers with one more dimension.
class PartsOfComplex {
 public:
  explicit PartsOfComplex(const TensorView& view)
      : dtype_(view.dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64),
        data_(view.data),
        sizes_(view.sizes.begin(), view.sizes.end()) {
    for (const int64_t stride : view.strides) strides_.push_back(2 * stride);
    sizes_.push_back(2);
    strides_.push_back(1);
  }
  [[nodiscard]] TensorView view() const { return {dtype_, data_, sizes_, strides_}; }

 private:
  DType dtype_;
  const std::byte* data_;
  std::vector<int64_t> sizes_, strides_;
};

double LimitOf(DType dtype) {
  if (dtype == DType::kFloat16) return 0x1p-11;
  return dtype == DType::kBFloat16 ? 0x1p-8 : 0x1p-14;
}

struct CpuSums {
  double absolute = 0, relative = 0, balance = 0, largest = 0;
  uint64_t count = 0, nan_mismatches = 0, inf_mismatches = 0;
  bool is_golden_finite = true;
};

void AddCpuPair(double actual, double golden, const RatioRule& rule, CpuSums* sums) {
  if (!std::isfinite(golden)) sums->is_golden_finite = false;
  if (rule.sees_non_finite && !(std::isfinite(golden) && std::isfinite(actual))) {
    const bool any_nan = std::isnan(actual) || std::isnan(golden);
    if (std::isnan(actual) != std::isnan(golden)) ++sums->nan_mismatches;
    if (!any_nan && actual != golden) ++sums->inf_mismatches;
    return;
  }
  if (!std::isfinite(actual)) actual = 1;
  const double error = actual - golden;
  const double magnitude = std::abs(golden);
  if (std::abs(actual) < 1) {
    sums->absolute = std::max(sums->absolute, std::abs(error));
  } else {
    sums->relative = std::max(sums->relative, std::abs(error) / magnitude);
  }
  sums->largest = std::max(sums->largest, std::abs(error) / std::max(magnitude, rule.tolerance));
  sums->balance += error / (magnitude >= 1 ? magnitude : 1);
  ++sums->count;
}

}  // namespace

RatioSums CompareOutputs(const RatioRule& rule, const TensorView& original,
                         const TensorView& second, const kernels::Team* team) {
  if (InfoOf(original.dtype).kind == DTypeKind::kComplex) {
    const PartsOfComplex left(original);
    const PartsOfComplex right(second);
    return CompareOutputs(rule, left.view(), right.view(), team);
  }
  constexpr size_t kShared = size_t{1} << 17;  // elements
  RatioSums sums;
  const Side left{original.data, original.strides, InfoOf(original.dtype).size_bytes};
  const Side right{second.data, second.strides, InfoOf(second.dtype).size_bytes};
  const PairOfDTypes dtypes{original.dtype, second.dtype};
  VisitRuns(original.sizes, left, right, [&](const PairRun& run) {
    if (team == nullptr || team->size < 2 || run.count < kShared) {
      CompareRun(rule, dtypes, run, &sums);
      return;
    }
    SharedComparison shared{rule, dtypes, run, static_cast<size_t>(team->size)};
    team->run(team->size, SharedComparison::Work, &shared);
    Combine(shared.sums, &sums);
  });
  return sums;
}

Difference DifferenceOf(const RatioRule& rule, const RatioSums& sums) {
  constexpr double kFlippedRatio = 8;  // what upstream's MindSpore says of another sign
  Difference difference{.max_rel = 0, .word = {}, .change = sums.change};
  if (rule.sees_non_finite && sums.nan_mismatches > 0) {
    difference.word = "nan_mismatch";
  } else if (rule.sees_non_finite && sums.inf_mismatches > 0) {
    difference.word = "inf_mismatch";
  } else if (rule.is_mindspore) {
    difference.max_rel = (sums.min_ratio < 0 ? kFlippedRatio : sums.max_ratio) - 1;
  } else if (sums.min_product < -(rule.tolerance * rule.tolerance)) {
    difference.word = "symbol_flipping";
  } else {
    difference.max_rel = std::max(sums.max_ratio, 1 / sums.min_ratio) - 1;
  }
  return difference;
}

bool IsConsistent(const Difference& difference, double threshold) {
  return difference.word.empty() && difference.ratio() <= threshold;
}

double ThresholdOf(std::optional<DType> dtype, Perturbation mode) {
  if (mode == Perturbation::kNoChange) return 1;
  if (dtype == DType::kFloat16) return 1.002;
  return dtype == DType::kBFloat16 ? 1.004 : 1.0002;
}

CpuVerdict CompareWithCpu(const TensorView& actual, const TensorView& golden,
                          bool sees_non_finite) {
  constexpr double kBalance = 1e-4;
  const RatioRule rule{.tolerance = ToleranceOf(golden.dtype),
                       .sees_non_finite = sees_non_finite,
                       .is_mindspore = false};
  CpuSums sums;
  VisitWidened(actual, golden, [&](double a, double b) { AddCpuPair(a, b, rule, &sums); });
  CpuVerdict verdict{.is_consistent = true,
                     .is_golden_finite = sums.is_golden_finite,
                     .difference = {.max_rel = sums.largest, .word = {}, .change = sums.largest}};
  if (sums.nan_mismatches > 0) verdict.difference.word = "nan_mismatch";
  if (sums.nan_mismatches == 0 && sums.inf_mismatches > 0) verdict.difference.word = "inf_mismatch";
  verdict.is_consistent = verdict.difference.word.empty();
  const bool is_skipped = !sees_non_finite && !sums.is_golden_finite;
  if (!verdict.is_consistent || is_skipped || sums.count == 0) return verdict;
  const double limit = LimitOf(actual.dtype);
  const double balance = std::abs(sums.balance / static_cast<double>(sums.count));
  verdict.is_consistent =
      !(sums.absolute > limit) && !(sums.relative > limit) && !(balance > kBalance);
  return verdict;
}

Replacement ReplacementOf(const TensorView& original, const TensorView& replacement) {
  Replacement result;
  VisitWidened(original, replacement, [&](double a, double b) {
    const bool is_same = a == b || (std::isnan(a) && std::isnan(b));
    result.changed += is_same ? 0 : 1;
    const double distance = std::abs(a - b);
    if (!is_same && distance <= kLargest) result.max_abs = std::max(result.max_abs, distance);
    ++result.elements;
  });
  return result;
}

bool AreClose(double a, double b) {
  constexpr double kRelative = 1e-9;
  constexpr double kShift = 1e-8;
  if (a == 0 && b == 0) return true;
  if (a == 0 || b == 0) {
    a += kShift;
    b += kShift;
  }
  return std::abs(a - b) <= kRelative * std::max(std::abs(a), std::abs(b));
}

}  // namespace plumbline::perturb
