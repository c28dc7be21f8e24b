#include "measure/below_normal.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "measure/compared_row.h"
#include "measure/stats_metrics.h"
#include "record/recorded_number.h"

namespace plumbline::measure {
namespace {

// Differences up to here are none that anybody computes with: numbers below the normal ones, which
// processors may take for zero. Types of few exponents hold useful numbers there; of them, one unit
// of the smallest. 0: not a floating type.
double LeastDifference(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return std::numeric_limits<double>::min();
    case DType::kFloat32:
    case DType::kBFloat16:
    case DType::kComplex64:
      return std::numeric_limits<float>::min();
    case DType::kFloat16:
      return 0x1.8p-24;  // less than two units; metrics are rounded
    default:
      return 0;
  }
}

double LeastDifference(const Item& target, const Item& golden) {
  double least = 0;
  for (const Item* item : {&target, &golden}) {
    const std::optional<DType> dtype = item->dtype ? ParseDType(*item->dtype) : std::nullopt;
    if (!dtype) return 0;
    least = std::max(least, LeastDifference(*dtype));
  }
  return least;
}

// Whether no recorded statistic differs by more than `least` in each element explains.
bool DifferByLess(const Item& target, const Item& golden, double least) {
  for (size_t i = 0; i < target.statistics.size(); ++i) {
    const std::optional<double> a = NumberOf(target.statistics[i]);
    const std::optional<double> b = NumberOf(golden.statistics[i]);
    const bool is_extreme = i < 2, is_norm = i == 3;
    if (!a || !b) {
      if (is_extreme) return false;
      continue;
    }
    const double count = is_norm ? std::max(ElementsOf(golden), 1.0) : 1;
    if (!(std::abs(*a - *b) <= least * std::sqrt(count))) return false;
  }
  return true;
}

}  // namespace

std::optional<Difference> BelowNormal(const Item& target, const Item& golden,
                                      const PairContext& context, const TensorMetrics* metrics) {
  const double least = LeastDifference(target, golden);
  if (least == 0 || context.mode == CompareMode::kDigest || HasNonFinite(target) ||
      HasNonFinite(golden)) {
    return std::nullopt;
  }
  double error = 0;
  if (context.mode == CompareMode::kTensor && metrics != nullptr) {
    const double* largest = std::get_if<double>(&metrics->max_abs_error);
    if (metrics->mismatch_count == 0 || largest == nullptr || !(*largest <= least)) {
      return std::nullopt;
    }
    const double* relative = std::get_if<double>(&metrics->relative_l2);
    error = relative == nullptr ? 1 : *relative;
  } else {
    if (target.statistics == golden.statistics || !DifferByLess(target, golden, least)) {
      return std::nullopt;
    }
    error = StatisticError(target.statistics, golden.statistics,
                           static_cast<int64_t>(std::max(ElementsOf(golden), 1.0)));
    if (!std::isfinite(error)) error = 1;
  }
  if (!(error > RoundoffOf(target, golden))) return std::nullopt;
  return Difference{Difference::Kind::kDecided, error, Verdict::kWithinNoise, "subnormal", {}};
}

}  // namespace plumbline::measure
