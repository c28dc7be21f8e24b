#include "watch/live/tensor_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "watch/live/elements.h"

namespace plumbline::watch {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

int SignOf(double x) { return (x > 0 ? 1 : 0) - (x < 0 ? 1 : 0); }

}  // namespace

std::optional<Op> OpNamed(std::string_view name) {
  const auto found = std::ranges::find(kOpNames, name);
  const auto op = static_cast<Op>(found - kOpNames.begin());
  if (found == kOpNames.end() || (op >= Op::kDigest && op < Op::kShape)) return std::nullopt;
  return op;
}

std::string NamesOfOps() {
  std::string names;
  for (const std::string_view name : kOpNames) {
    if (OpNamed(name)) names.append(names.empty() ? "" : ", ").append(name);
  }
  return names;
}

std::span<const Op> FeatureOps(MonitorKind kind) {
  static constexpr std::array<Op, 6> kAll = {Op::kEntropy,          Op::kSoftmaxMax,
                                             Op::kStableRank,       Op::kKernelNorm,
                                             Op::kRouterSimilarity, Op::kTokenEntropy};
  const std::span<const Op> all(kAll);
  switch (kind) {
    case MonitorKind::kAttentionFeature:
      return all.subspan(0, 2);
    case MonitorKind::kLinearFeature:
      return all.subspan(2, 2);
    case MonitorKind::kRouterWeightFeature:
      return all.subspan(4, 1);
    case MonitorKind::kRouterLogitFeature:
      return all.subspan(5, 1);
    default:
      return {};
  }
}

TensorValues NoValues() {
  TensorValues values;
  values.numbers.fill(kNaN);
  return values;
}

TensorValues ValuesOfNumber(double number) {
  TensorValues values;
  values.dtype = DType::kFloat64;
  values.of(Op::kNorm) = std::abs(number);
  for (const Op op : {Op::kMin, Op::kMax, Op::kMean, Op::kId}) values.of(op) = number;
  values.of(Op::kZeros) = number == 0 ? 1 : 0;
  values.of(Op::kNans) = std::isnan(number) ? 1 : 0;
  values.of(Op::kInfs) = std::isinf(number) ? 1 : 0;
  return values;
}

TensorValues ValuesOf(const TensorView& view, const kernels::TensorScan& scan) {
  const kernels::Moments& sums = scan.moments;
  const DTypeKind kind = InfoOf(view.dtype).kind;
  TensorValues values = NoValues();
  values.dtype = view.dtype;
  values.shape.assign(view.sizes.begin(), view.sizes.end());
  values.of(Op::kNorm) = std::sqrt(sums.sum_squares);
  values.of(Op::kNans) = static_cast<double>(sums.nan_count);
  values.of(Op::kInfs) = static_cast<double>(sums.inf_count);
  if (sums.count == 0) return values;
  const auto count = static_cast<double>(sums.count);
  if (kind != DTypeKind::kBool) values.of(Op::kZeros) = static_cast<double>(scan.below) / count;
  if (kind == DTypeKind::kComplex) return values;
  values.of(Op::kMean) = sums.sum / count;
  const bool has_nan = sums.nan_count > 0;
  values.of(Op::kMin) = has_nan ? kNaN : sums.min;
  values.of(Op::kMax) = has_nan ? kNaN : sums.max;
  if (view.sizes.empty()) values.of(Op::kId) = values.of(Op::kMax);
  return values;
}

TensorValues Measure(const TensorView& view, double zero_bound, const kernels::Team* team) {
  kernels::ScanWants wants;
  wants.below = zero_bound;
  wants.team = team;
  return ValuesOf(view, kernels::ScanTensor(view, wants));
}

double SignAgreement(const TensorView& gradient, const TensorView& momentum) {
  const int64_t count = gradient.element_count();
  const bool is_complex = InfoOf(gradient.dtype).kind == DTypeKind::kComplex ||
                          InfoOf(momentum.dtype).kind == DTypeKind::kComplex;
  if (is_complex || count != momentum.element_count()) return kNaN;
  if (count == 0) return 1;
  int64_t agreement = 0;
  VisitPairs(gradient, momentum, [&](const double* one, const double* other, size_t part) {
    for (size_t i = 0; i < part; ++i) agreement += SignOf(one[i]) * SignOf(other[i]);
  });
  return (static_cast<double>(agreement) / static_cast<double>(count) + 1) / 2;
}

}  // namespace plumbline::watch
