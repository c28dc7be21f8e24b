#include "precheck/output_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/process/parallel.h"
#include "kernels/output_sums.h"
#include "kernels/scaled_squares.h"
#include "tensor/element_value.h"

namespace plumbline::precheck {
namespace {

using kernels::OutputRule;
using kernels::OutputSums;
using kernels::OutputWork;

// Squares of magnitudes beyond it overflow.
constexpr double kLargestSquared = 0x1p+500;

// A complex pair as twice as many parts.
OutputPair AsParts(const OutputPair& pair) {
  if (InfoOf(pair.bench_dtype).kind != DTypeKind::kComplex) return pair;
  OutputPair parts = pair;
  parts.bench_dtype = PartOf(pair.bench_dtype);
  parts.device_dtype = PartOf(pair.device_dtype);
  parts.count *= 2;
  return parts;
}

OutputWork WorkOf(Standard standard, DType device_dtype) {
  if (!HasStandard(device_dtype)) return OutputWork::kLadder;
  switch (standard) {
    case Standard::kBinary:
    case Standard::kThousandth:
      return OutputWork::kLadder;  // is in the sums of the ladder
    case Standard::kAbsolute:
    case Standard::kAccumulative:
      return OutputWork::kLimits;
    case Standard::kBenchmark:
      return OutputWork::kBenchmark;
    case Standard::kUlp:
      return OutputWork::kUlp;
  }
  return OutputWork::kLadder;
}

// How b becomes b'. A bfloat16 device is compared in float32, of which its b' is a number, too.
void SetCast(OutputRule* rule) {
  rule->clip = std::numeric_limits<float>::max();
  if (rule->device_dtype == DType::kFloat16) {
    rule->cast_drop_bits = rule->as_double ? 52 - 10 : 23 - 10;
    rule->cast_min_exponent = -14;
    rule->cast_infinite_from = 65520;  // half way from the largest number to the next power of 2
    rule->clip = 65504;
  } else if (rule->device_dtype == DType::kFloat32 && rule->as_double) {
    rule->cast_drop_bits = 52 - 23;
    rule->cast_min_exponent = -126;
    rule->cast_infinite_from = 0x1.FFFFFFp+127;
  } else if (rule->device_dtype == DType::kBFloat16) {
    rule->clip = 0x1.FEp+127;
  } else if (rule->device_dtype == DType::kFloat64) {
    rule->clip = std::numeric_limits<double>::max();
  }
}

OutputRule RuleFor(const OutputPair& pair, Standard standard) {
  OutputRule rule;
  rule.work = WorkOf(standard, pair.device_dtype);
  rule.bench_dtype = pair.bench_dtype;
  rule.device_dtype = pair.device_dtype;
  rule.as_double = pair.device_dtype != DType::kBFloat16 &&
                   (pair.bench_dtype == DType::kFloat64 || pair.device_dtype == DType::kFloat64);
  if (IsFloat8(pair.device_dtype)) rule.bench_rounded_to = NarrowFormatOf(pair.device_dtype);
  // Narrow types are not judged by the last of the shares.
  const DType limits_of = pair.limits_of.value_or(pair.device_dtype);
  rule.share_count = InfoOf(limits_of).size_bytes <= 2 ? 2 : 3;
  rule.eps = RelativeEpsilon(pair.bench_dtype, limits_of);
  const FloatLimits limits = LimitsOf(standard, pair.device_dtype);
  rule.small_value = limits.small_value;
  rule.small_atol = limits.small_atol;
  rule.rtol = limits.rtol;
  SetCast(&rule);
  const UlpFormat ulp = UlpFormatOf(pair.device_dtype);
  rule.ulp_mantissa_bits = ulp.mantissa_bits;
  rule.ulp_min_exponent = ulp.min_exponent;
  rule.ulp_above = ulp.count_above;
  rule.ulp_of_float8 = IsFloat8(pair.device_dtype);
  return rule;
}

double ShareOf(uint64_t part, uint64_t whole, double of_none) {
  return whole == 0 ? of_none : static_cast<double>(part) / static_cast<double>(whole);
}

void SetCosine(const OutputPair& pair, const OutputSums& sums, FloatMetrics* metrics) {
  metrics->bench_max = sums.bench_max;
  metrics->device_max = sums.device_max;
  metrics->has_not_finite = sums.any_not_finite != 0;
  if (sums.count == 1) {
    metrics->cosine_case = CosineCase::kOneElement;
  } else if (sums.any_not_finite != 0) {
    metrics->cosine_case = CosineCase::kNotFinite;
    metrics->cosine = std::nan("");
  } else if (std::max(sums.bench_max, sums.device_max) <= kZeroMagnitude) {
    metrics->cosine_case = CosineCase::kBothZero;
  } else if (sums.device_max <= kZeroMagnitude) {
    metrics->cosine_case = CosineCase::kDeviceZero;
  } else if (sums.bench_max <= kZeroMagnitude) {
    metrics->cosine_case = CosineCase::kBenchZero;
  } else if (std::max(sums.bench_max, sums.device_max) > kLargestSquared) {
    // A pass of its own, over elements times a power of two: only doubles are so large.
    const kernels::PairOfRuns runs = {pair.device_dtype, pair.device, pair.bench_dtype, pair.bench,
                                      pair.count};
    kernels::Pairwise pairwise = kernels::PairwiseOf(runs);
    kernels::RescaleSquares(runs, &pairwise);
    metrics->cosine = std::clamp(kernels::CosineOf(pairwise), -1.0, 1.0);
  } else {
    const double norms = std::sqrt(sums.bench_squares) * std::sqrt(sums.device_squares);
    metrics->cosine = std::clamp(sums.dot / norms, -1.0, 1.0);
  }
}

void SetErrors(const OutputSums& sums, FloatMetrics* metrics) {
  const auto n = static_cast<double>(sums.count);
  metrics->max_abs_error = sums.error_nan != 0 ? std::nan("") : sums.error_max;
  metrics->hundredth = ShareOf(sums.below[0], sums.count, 1);
  metrics->thousandth = ShareOf(sums.below[1], sums.count, 1);
  metrics->ten_thousandth = ShareOf(sums.below[2], sums.count, 1);
  metrics->mismatches = sums.mismatches;
  metrics->error_rate = ShareOf(sums.mismatches, sums.count, 0);
  metrics->not_finite = sums.not_finite;
  metrics->small = sums.small;
  metrics->normal = sums.normal;
  metrics->inf_nan_error_ratio = ShareOf(sums.not_finite_bad, sums.not_finite, 0);
  metrics->rel_error_ratio = ShareOf(sums.rel_bad, sums.normal, 0);
  metrics->abs_error_ratio = ShareOf(sums.small_bad, sums.small, 0);
  // The two 0.0001 keep the divisor from 0 and the factor from 1: the formula is upstream's.
  const double mean = sums.error_squares / n;
  const auto normal = static_cast<double>(sums.normal);
  metrics->rmse = std::sqrt(mean * (n / (normal + 0.0001) + 0.0001));
  metrics->max_rel_error = sums.rel_max;
  metrics->mean_rel_error = sums.normal == 0 ? 0 : sums.rel_sum / normal;
  metrics->error_balance =
      std::fabs(static_cast<double>(sums.above) - static_cast<double>(sums.beneath)) / n;
}

void SetUlps(const OutputSums& sums, FloatMetrics* metrics) {
  const bool any_nan = sums.ulp_nan != 0;
  metrics->max_ulp = any_nan ? std::nan("") : sums.ulp_max;
  metrics->mean_ulp = any_nan ? std::nan("") : sums.ulp_sum / static_cast<double>(sums.count);
  metrics->ulp_proportion = ShareOf(sums.ulp_counted, sums.count, 0);
  metrics->zero_bench_ulps = sums.ulp_of_zero;
}

// ---- Explanations ----

constexpr size_t kExplainSlice = 1024;

// `count` elements as doubles; 64-bit integers beyond 2^53 are rounded.
void Widen(DType dtype, const std::byte* from, size_t count, double* out) {
  const DTypeInfo& info = InfoOf(dtype);
  if (info.kind == DTypeKind::kFloat && info.size_bytes <= 4) {
    float narrow[kExplainSlice];
    kernels::ActiveTable().to_float(dtype, from, count, narrow);
    std::copy_n(narrow, count, out);
    return;
  }
  for (size_t i = 0; i < count; ++i) out[i] = ElementAsDouble(dtype, from + i * info.size_bytes);
}

// What a block of elements adds, and how bad its worst is: infinite where one side only is finite
// or their kinds of infinity differ.
struct ExplainedBlock {
  FailureFacts facts;
  double worst_error = -1;
};

// Counts the powers of ten from 1e-11 to 10 that are not above `rel`.
size_t BinOf(double rel) {
  static constexpr double kDecades[] = {1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5,
                                        1e-4,  1e-3,  1e-2, 1e-1, 1e0,  1e1};
  static_assert(std::size(kDecades) + 3 == FailureFacts::kBins);
  size_t bin = 1;
  for (const double decade : kDecades) bin += rel >= decade ? 1U : 0U;
  return bin;
}

void ExplainElement(double bench, double device, double eps, uint64_t index,
                    ExplainedBlock* block) {
  double error = std::fabs(device - bench);
  size_t bin = 0;
  if (std::isfinite(bench) && std::isfinite(device)) {
    if (error > 0) bin = BinOf(error / (std::fabs(bench) + eps));
  } else if (bench == device || (std::isnan(bench) && std::isnan(device))) {
    error = 0;
  } else {
    error = std::numeric_limits<double>::infinity();
    bin = FailureFacts::kBins - 1;
  }
  ++block->facts.histogram[bin];
  if (error > block->worst_error) {
    block->worst_error = error;
    block->facts.worst_index = index;
    block->facts.worst_bench = bench;
    block->facts.worst_device = device;
  }
}

ExplainedBlock ExplainBlock(const OutputPair& pair, double eps, size_t begin, size_t end) {
  const size_t bench_bytes = InfoOf(pair.bench_dtype).size_bytes;
  const size_t device_bytes = InfoOf(pair.device_dtype).size_bytes;
  ExplainedBlock block;
  double bench[kExplainSlice], device[kExplainSlice];
  for (size_t i = begin; i < end; i += kExplainSlice) {
    const size_t count = std::min(kExplainSlice, end - i);
    const auto* bench_at = static_cast<const std::byte*>(pair.bench) + i * bench_bytes;
    const auto* device_at = static_cast<const std::byte*>(pair.device) + i * device_bytes;
    Widen(pair.bench_dtype, bench_at, count, bench);
    Widen(pair.device_dtype, device_at, count, device);
    for (size_t k = 0; k < count; ++k) {
      ExplainElement(bench[k], device[k], eps, i + k, &block);
    }
  }
  return block;
}

// Blocks that are counted on their own and put together in index order.
template <class Block, class Measure, class Join>
Block InBlocks(size_t count, const Measure& measure, const Join& join) {
  constexpr size_t kBlock = size_t{16} * kernels::kBlockElements;
  if (count <= kBlock) return measure(0, count);
  std::vector<Block> blocks((count + kBlock - 1) / kBlock);
  ParallelBlocks(count, kBlock,
                 [&](size_t begin, size_t end) { blocks[begin / kBlock] = measure(begin, end); });
  Block all = blocks[0];
  for (size_t k = 1; k < blocks.size(); ++k) all = join(all, blocks[k]);
  return all;
}

}  // namespace

FloatMetrics MeasureFloats(const OutputPair& pair, Standard standard) {
  const OutputPair parts = AsParts(pair);
  const OutputRule rule = RuleFor(parts, standard);
  const OutputSums sums =
      kernels::OutputSumsOf(kernels::ActiveTable(), rule, {parts.bench, parts.device, parts.count});
  FloatMetrics metrics;
  metrics.count = sums.count;
  metrics.is_double = rule.as_double;
  SetCosine(parts, sums, &metrics);
  SetErrors(sums, &metrics);
  if (rule.work == OutputWork::kUlp) SetUlps(sums, &metrics);
  return metrics;
}

ExactMetrics MeasureExact(const OutputPair& pair) {
  ExactMetrics metrics;
  metrics.count = pair.count;
  const size_t bench_bytes = InfoOf(pair.bench_dtype).size_bytes;
  const size_t device_bytes = InfoOf(pair.device_dtype).size_bytes;
  // As nearly always: nothing to count.
  if (pair.bench_dtype == pair.device_dtype &&
      std::memcmp(pair.bench, pair.device, pair.count * bench_bytes) == 0) {
    return metrics;
  }
  const auto measure = [&](size_t begin, size_t end) {
    return kernels::PairwiseOf(
        {pair.device_dtype, static_cast<const std::byte*>(pair.device) + begin * device_bytes,
         pair.bench_dtype, static_cast<const std::byte*>(pair.bench) + begin * bench_bytes,
         end - begin});
  };
  const auto join = [](const kernels::Pairwise& first, const kernels::Pairwise& second) {
    return kernels::Combine(first, second);
  };
  const auto sums = InBlocks<kernels::Pairwise>(pair.count, measure, join);
  metrics.mismatches = sums.mismatch_count;
  metrics.error_rate = ShareOf(sums.mismatch_count, pair.count, 0);
  metrics.max_abs_error = sums.max_abs;
  return metrics;
}

SpecialCounts CountSpecials(DType dtype, const void* data, size_t count) {
  const kernels::Moments moments = kernels::MomentsOf(dtype, data, count);
  return {moments.zero_count, moments.nan_count + moments.inf_count};
}

FailureFacts ExplainPair(const OutputPair& pair) {
  const OutputPair parts = AsParts(pair);
  const bool is_float = InfoOf(parts.bench_dtype).kind == DTypeKind::kFloat;
  const double eps = is_float ? RelativeEpsilon(parts.bench_dtype, parts.device_dtype) : 0;
  const auto measure = [&](size_t begin, size_t end) {
    return ExplainBlock(parts, eps, begin, end);
  };
  const auto join = [](const ExplainedBlock& first, const ExplainedBlock& second) {
    ExplainedBlock both = second.worst_error > first.worst_error ? second : first;
    for (size_t k = 0; k < FailureFacts::kBins; ++k) {
      both.facts.histogram[k] = first.facts.histogram[k] + second.facts.histogram[k];
    }
    return both;
  };
  return InBlocks<ExplainedBlock>(parts.count, measure, join).facts;
}

}  // namespace plumbline::precheck
