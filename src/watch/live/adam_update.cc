#include "watch/live/adam_update.h"

#include <cmath>

#include "watch/live/elements.h"

namespace plumbline::watch {
namespace {

constexpr std::array<double, kHistogramBins + 1> kEdges = [] {
  std::array<double, kHistogramBins + 1> edges{};
  for (size_t i = 0; i < kHistogramBins; ++i) {
    edges[i] = static_cast<double>(i) * (2.0 / kHistogramBins) + -1.0;
  }
  edges[kHistogramBins] = 1;
  return edges;
}();

void Count(double value, Histogram* histogram) {
  if (!(value >= -1 && value <= 1)) return;
  auto bin = static_cast<size_t>((value + 1) * (kHistogramBins / 2.0));
  bin = bin < kHistogramBins ? bin : kHistogramBins - 1;
  if (value < kEdges[bin]) {  // the product was rounded past an edge
    --bin;
  } else if (bin + 1 < kHistogramBins && value >= kEdges[bin + 1]) {
    ++bin;
  }
  ++(*histogram)[bin];
}

}  // namespace

std::optional<AdamHistograms> HistogramsOfAdam(const TensorView& first, const TensorView& second,
                                               const AdamRule& rule) {
  const bool are_numbers = InfoOf(first.dtype).kind == DTypeKind::kFloat &&
                           InfoOf(second.dtype).kind == DTypeKind::kFloat;
  if (!are_numbers || first.element_count() != second.element_count()) return std::nullopt;
  const double first_share = 1 - std::pow(rule.beta1, rule.step);
  const double second_share = 1 - std::pow(rule.beta2, rule.step);
  AdamHistograms histograms;
  VisitPairs(first, second, [&](const double* m, const double* v, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const double mean = m[i] / first_share;
      const double root = std::sqrt(v[i] / second_share);
      Count(mean / (root + rule.eps), &histograms.update);
      Count(mean / root, &histograms.ratio);
    }
  });
  return histograms;
}

}  // namespace plumbline::watch
