#include "measure/cause_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/cause_arithmetic.h"
#include "measure/cause_layout.h"
#include "measure/cause_nonfinite.h"
#include "measure/cause_precision.h"
#include "measure/cause_values.h"
#include "measure/standards.h"

namespace plumbline::measure {
namespace {

// A block must leave out a good part of the tensor to be worth a second look.
constexpr double kLargestBlock = 0.8;

bool SumsUp(std::string_view api) {
  const CallClass known = ClassOfApi(api);
  return known != CallClass::kCopy && known != CallClass::kElementwise;
}

// The classes in order, most telling first; a fit of less confidence gives way to a better one.
std::optional<Cause> FindChange(const CausePair& pair, const PairSums& sums,
                                const CauseRequest& request) {
  std::optional<Cause> best;
  const auto offer = [&](std::optional<Cause> cause) {
    if (cause && (!best || cause->confidence > best->confidence)) best = std::move(cause);
    return best && best->confidence == CauseConfidence::kHigh;
  };
  if (offer(FindLayoutCause(pair, sums))) return best;
  if (sums.nonfinite_differs > 0) {
    offer(FindNonFinite(pair, sums, request.api));
    return best;
  }
  if (offer(FindRandom(pair, sums))) return best;
  if (offer(FindZeroed(pair, sums))) return best;
  if (offer(FindBound(pair, sums))) return best;
  // One number first; then operands, because a bias is also a constant per channel.
  if (offer(FindFactor(pair, sums))) return best;
  if (offer(FindAddend(pair, sums))) return best;
  if (offer(FindFactors(pair, sums))) return best;
  if (offer(FindOffset(pair, sums))) return best;
  offer(FindPrecision(pair, sums, SumsUp(request.api)));
  return best;
}

std::optional<Cause> FindCause(const CausePair& pair, const PairSums& sums,
                               const CauseRequest& request) {
  std::optional<Cause> equal = FindEqual(pair, sums, request.api);
  if (equal && equal->code != "not-applied") return equal;
  std::optional<Cause> cause = FindChange(pair, sums, request);
  if (!equal) return cause;
  // The change says more than that an operation is missing, if it is known.
  if (!cause || cause->confidence != CauseConfidence::kHigh) return equal;
  cause->text += "; " + equal->text;
  return cause;
}

Cause Unexplained(const CausePair& pair, const PairSums& sums, const std::string& where) {
  Cause cause;
  cause.text = fmt::format("no class fits: {} of {} elements differ, relative error {:.3g}",
                           sums.differing, pair.size(), sums.error());
  if (!where.empty()) {
    cause.code = "block";
    cause.text = fmt::format("the difference is confined to {}: {} of {} elements differ, relative "
                             "error {:.3g}",
                             where, sums.differing, pair.size(), sums.error());
  }
  return cause;
}

// Whether `a` has the sizes of `b` with two axes exchanged; then which.
std::optional<std::pair<size_t, size_t>> ExchangedAxes(std::span<const int64_t> a,
                                                       std::span<const int64_t> b) {
  if (a.size() != b.size()) return std::nullopt;
  std::vector<size_t> other;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) other.push_back(i);
  }
  const bool exchanged =
      other.size() == 2 && a[other[0]] == b[other[1]] && a[other[1]] == b[other[0]];
  if (!exchanged) return std::nullopt;
  return std::pair(other[0], other[1]);
}

std::string ShapeText(std::span<const int64_t> sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", sizes[i]);
  return text + "]";
}

Result<Cause> ClassifyShapes(const CauseRequest& request) {
  Cause cause{"structure",
              fmt::format("shape {} (golden {})", ShapeText(request.target.sizes),
                          ShapeText(request.golden.sizes)),
              CauseConfidence::kHigh};
  const auto axes = ExchangedAxes(request.target.sizes, request.golden.sizes);
  if (!axes) return cause;
  Shape sizes(request.golden.sizes.begin(), request.golden.sizes.end());
  std::vector<int64_t> strides(request.golden.strides.begin(), request.golden.strides.end());
  std::swap(sizes[axes->first], sizes[axes->second]);
  std::swap(strides[axes->first], strides[axes->second]);
  CauseRequest turned = request;
  turned.golden.sizes = sizes;
  turned.golden.strides = strides;
  turned.candidates.clear();
  PL_TRY_ASSIGN(const CausePair pair, LoadPair(turned));
  if (SumsOf(pair).differing > 0) return cause;
  cause.code = "transposed";
  cause.text += fmt::format("; target is golden with axes {} and {} exchanged", axes->first,
                            axes->second);
  return cause;
}

}  // namespace

std::string_view CauseConfidenceName(CauseConfidence confidence) {
  switch (confidence) {
    case CauseConfidence::kLow:
      return "low";
    case CauseConfidence::kMedium:
      return "medium";
    case CauseConfidence::kHigh:
      return "high";
  }
  return "";
}

Result<Cause> ClassifyTensors(const CauseRequest& request) {
  const bool same_shape =
      std::equal(request.target.sizes.begin(), request.target.sizes.end(),
                 request.golden.sizes.begin(), request.golden.sizes.end());
  if (!same_shape) return ClassifyShapes(request);
  if (request.target.element_count() == 0) return Cause{};
  PL_TRY_ASSIGN(const CausePair pair, LoadPair(request));
  const PairSums sums = SumsOf(pair);
  if (sums.differing == 0 && sums.difference_squares == 0) return Unexplained(pair, sums, {});
  std::optional<Cause> cause = FindCause(pair, sums, request);
  const std::string window = pair.is_window ? " (seen in a part of the tensor)" : "";
  if (!cause || cause->confidence != CauseConfidence::kHigh) {
    // Perhaps one block is plainly wrong.
    const Region region = DifferingRegion(pair, sums);
    const size_t size = RegionSize(region);
    const auto most = static_cast<size_t>(kLargestBlock * static_cast<double>(pair.size()));
    if (size > 0 && size <= most) {
      const CausePair part = ExtractRegion(pair, region);
      const PairSums part_sums = SumsOf(part);
      const std::string where = RegionText(region, pair.shape);
      std::optional<Cause> inner = FindCause(part, part_sums, request);
      if (inner && (!cause || inner->confidence > cause->confidence)) {
        inner->text = fmt::format("only at {}: {}{}", where, inner->text, window);
        return *inner;
      }
      if (!cause) return Unexplained(part, part_sums, where);
    }
  }
  if (!cause) return Unexplained(pair, sums, {});
  cause->text += window;
  return *cause;
}

}  // namespace plumbline::measure
