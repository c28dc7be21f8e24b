#include "measure/tensor_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/process/parallel.h"
#include "kernels/finite_scan.h"
#include "kernels/kernel_table.h"
#include "kernels/scaled_squares.h"
#include "measure/standards.h"
#include "tensor/element_value.h"

namespace plumbline::measure {

namespace {

template <class T>
void WidenFrom(const std::byte* data, size_t count, double* out) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = static_cast<double>(LoadAs<T>(data + i * sizeof(T)));
  }
}

void WidenByFloat(DType dtype, const std::byte* data, size_t count, double* out) {
  constexpr size_t kBlock = 1024;
  std::array<float, kBlock> floats;
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t size = std::min(kBlock, count - at);
    kernels::ActiveTable().to_float(dtype, data + at * InfoOf(dtype).size_bytes, size,
                                    floats.data());
    for (size_t i = 0; i < size; ++i) out[at + i] = static_cast<double>(floats[i]);
  }
}

}  // namespace

void Widen(DType dtype, const std::byte* data, size_t count, double* out) {
  switch (dtype) {
    case DType::kFloat64:
      std::memcpy(out, data, count * sizeof(double));
      return;
    case DType::kFloat32:
      return WidenFrom<float>(data, count, out);
    case DType::kInt32:
      return WidenFrom<int32_t>(data, count, out);
    case DType::kUInt32:
      return WidenFrom<uint32_t>(data, count, out);
    case DType::kInt64:
      return WidenFrom<int64_t>(data, count, out);
    case DType::kUInt64:
      return WidenFrom<uint64_t>(data, count, out);
    default:
      WidenByFloat(dtype, data, count, out);
  }
}

namespace {

// The value rounded to `decimals` places through its decimal text, as upstream does.
double RoundDecimals(double value, int decimals) {
  if (!std::isfinite(value)) return value;
  const std::string text = fmt::format("{:.{}f}", value, decimals);
  double rounded = value;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

// Likewise, but an error is never shown as none.
double RoundError(double error, int decimals) {
  const double rounded = RoundDecimals(error, decimals);
  return rounded == 0 ? error : rounded;
}

constexpr int kDecimals = 12;
constexpr int kCosineDecimals = 6;
constexpr double kCosineRounded = 0.9999;  // above, upstream keeps six decimals only

Metric Cosine(const kernels::Pairwise& sums) {
  const bool target_zero = !(kernels::TargetNorm(sums) > kZeroNorm);
  const bool golden_zero = !(kernels::GoldenNorm(sums) > kZeroNorm);
  const bool are_all_zero = sums.target_max == 0 && sums.golden_max == 0;
  if (target_zero && golden_zero && (are_all_zero || sums.mismatch_count == 0)) return 1.0;
  if (target_zero != golden_zero || sums.target_max == 0 || sums.golden_max == 0) {
    return Absent::kZeroNorm;
  }
  const double cosine = RoundDecimals(kernels::CosineOf(sums), kDecimals);
  return cosine > kCosineRounded ? RoundDecimals(cosine, kCosineDecimals) : cosine;
}

Metric RelativeL2(const kernels::Pairwise& sums) {
  if (sums.difference_squares == 0) return 0.0;
  if (!(sums.golden_squares > 0)) return Absent::kZeroNorm;
  return kernels::RelativeNorm(sums);
}

// How many elements hold other bits, of values that are all equal: zeros of either sign, or all
// where the types differ.
Result<uint64_t> CountOtherBits(const TensorView& target, const TensorView& golden) {
  if (target.dtype != golden.dtype) return static_cast<uint64_t>(target.element_count());
  PL_TRY_ASSIGN(const Tensor a, Tensor::Copy(target));
  PL_TRY_ASSIGN(const Tensor b, Tensor::Copy(golden));
  const size_t width = InfoOf(target.dtype).size_bytes;
  uint64_t count = 0;
  for (size_t at = 0; at < a.view().size_bytes(); at += width) {
    count += std::memcmp(a.view().data + at, b.view().data + at, width) != 0 ? 1 : 0;
  }
  return count;
}

}  // namespace

Result<kernels::Pairwise> SumPairs(const TensorView& target, const TensorView& golden) {
  if (!target.is_contiguous()) {
    PL_TRY_ASSIGN(const Tensor copy, Tensor::Copy(target));
    return SumPairs(copy.view(), golden);
  }
  if (!golden.is_contiguous()) {
    PL_TRY_ASSIGN(const Tensor copy, Tensor::Copy(golden));
    return SumPairs(target, copy.view());
  }
  const auto count = static_cast<size_t>(target.element_count());
  const size_t blocks = (count + kernels::kBlockElements - 1) / kernels::kBlockElements;
  const size_t target_size = InfoOf(target.dtype).size_bytes;
  const size_t golden_size = InfoOf(golden.dtype).size_bytes;
  const auto run_block = [&](size_t block) {
    const size_t begin = block * kernels::kBlockElements;
    return kernels::PairwiseOf({target.dtype, target.data + begin * target_size, golden.dtype,
                                golden.data + begin * golden_size,
                                std::min(kernels::kBlockElements, count - begin)});
  };
  const kernels::PairOfRuns whole{target.dtype, target.data, golden.dtype, golden.data, count};
  if (blocks == 1) {
    kernels::Pairwise sums = run_block(0);
    kernels::RescaleSquares(whole, &sums);
    return sums;
  }
  std::vector<kernels::Pairwise> parts(blocks);
  ParallelFor(blocks, [&](size_t block) { parts[block] = run_block(block); });
  kernels::Pairwise total = parts[0];
  for (size_t i = 1; i < blocks; ++i) total = kernels::Combine(total, parts[i]);
  kernels::RescaleSquares(whole, &total);
  return total;
}

TensorMetrics AbsentMetrics(Absent reason) {
  TensorMetrics metrics;
  metrics.cosine = metrics.max_abs_error = metrics.max_relative_error = reason;
  metrics.below_thousandth_ratio = metrics.below_five_thousandths_ratio = reason;
  metrics.euclidean_distance = metrics.relative_l2 = metrics.max_ulp = reason;
  return metrics;
}

TensorMetrics MetricsFromSums(const kernels::Pairwise& sums, size_t dimensions) {
  TensorMetrics metrics;
  if (sums.nonfinite_mismatch > 0) metrics = AbsentMetrics(Absent::kNonFinite);
  metrics.element_count = sums.count;
  metrics.mismatch_count = sums.mismatch_count;
  metrics.golden_zero_mismatch_count = sums.golden_zero_mismatch;
  if (sums.nonfinite_mismatch > 0) return metrics;
  const auto count = static_cast<double>(sums.count);
  // Positions that are NaN or infinite on both sides count as equal, as in upstream's masks.
  const auto equal = static_cast<double>(sums.nonfinite_count);
  metrics.max_abs_error = RoundError(sums.max_abs, kDecimals);
  metrics.max_relative_error = RoundError(sums.max_rel, kDecimals);
  metrics.max_ulp = static_cast<double>(sums.max_ulp);
  metrics.relative_l2 = RelativeL2(sums);
  metrics.euclidean_distance = kernels::DifferenceNorm(sums);
  const auto ratio = [&](uint64_t below) {
    return RoundDecimals((static_cast<double>(below) + equal) / count, kDecimals);
  };
  if (dimensions == 0) {
    metrics.cosine = metrics.below_thousandth_ratio = metrics.below_five_thousandths_ratio =
        metrics.euclidean_distance = Absent::kScalar;
    return metrics;
  }
  metrics.below_thousandth_ratio = ratio(sums.below_1e3);
  metrics.below_five_thousandths_ratio = ratio(sums.below_5e3);
  metrics.cosine = sums.count == 1 ? Metric(Absent::kScalar) : Cosine(sums);
  return metrics;
}

bool HaveEqualBytes(const TensorView& target, const TensorView& golden) {
  return target.dtype == golden.dtype && target.is_contiguous() && golden.is_contiguous() &&
         std::memcmp(target.data, golden.data, target.size_bytes()) == 0;
}

TensorMetrics MetricsOfEqual(const TensorView& tensor) {
  kernels::Pairwise sums;
  sums.count = sums.below_1e3 = sums.below_5e3 = static_cast<uint64_t>(tensor.element_count());
  return MetricsFromSums(sums, tensor.sizes.size());
}

Result<TensorMetrics> MeasureTensors(const TensorView& target, const TensorView& golden) {
  if (target.element_count() == 0) return AbsentMetrics(Absent::kEmpty);
  if (!std::equal(target.sizes.begin(), target.sizes.end(), golden.sizes.begin(),
                  golden.sizes.end())) {
    return AbsentMetrics(Absent::kShapeMismatch);
  }
  if (HaveEqualBytes(target, golden)) return MetricsOfEqual(target);
  PL_TRY_ASSIGN(const kernels::Pairwise sums, SumPairs(target, golden));
  return MetricsFromSums(sums, target.sizes.size());
}

Result<MeasuredPair> MeasurePair(const TensorView& target, const TensorView& golden) {
  const bool is_alike = std::ranges::equal(target.sizes, golden.sizes);
  if (target.element_count() == 0) return MeasuredPair{AbsentMetrics(Absent::kEmpty)};
  if (!is_alike) return MeasuredPair{AbsentMetrics(Absent::kShapeMismatch)};
  if (target.dtype == golden.dtype && target.is_contiguous() && golden.is_contiguous()) {
    const kernels::Likeness likeness = kernels::LikenessOf(target, golden);
    if (likeness != kernels::Likeness::kDiffers) {
      return MeasuredPair{MetricsOfEqual(target), likeness == kernels::Likeness::kNonFinite};
    }
  }
  PL_TRY_ASSIGN(const kernels::Pairwise sums, SumPairs(target, golden));
  const bool is_on_both = sums.nonfinite_count > 0 && sums.nonfinite_mismatch == 0;
  MeasuredPair pair{MetricsFromSums(sums, target.sizes.size()), is_on_both};
  if (sums.mismatch_count == 0) {
    PL_TRY_ASSIGN(pair.metrics.mismatch_count, CountOtherBits(target, golden));
  }
  return pair;
}

}  // namespace plumbline::measure
