#include "measure/cause_class.h"

#include <fmt/format.h>

#include <algorithm>

#include "measure/cause_arithmetic.h"
#include "measure/cause_layout.h"
#include "measure/cause_nonfinite.h"
#include "measure/cause_precision.h"
#include "measure/cause_product.h"
#include "measure/cause_values.h"
#include "measure/standards.h"

namespace plumbline::measure {
namespace {

// A block must leave out a good part of the tensor to be worth a second look.
constexpr double kLargestBlock = 0.8;

Making MakingOf(const CauseRequest& request) {
  if (request.is_source) return Making::kSource;
  const CallClass known = ClassOfApi(request.api);
  const bool one_term = known == CallClass::kCopy || known == CallClass::kElementwise;
  return one_term ? Making::kElementwise : Making::kSum;
}

// The best of several findings: the first of the highest confidence.
class Best {
 public:
  // Whether nothing better can come.
  bool Offer(std::optional<Cause> cause) {
    if (cause && (!best_ || cause->confidence > best_->confidence)) best_ = std::move(cause);
    return is_sure();
  }
  [[nodiscard]] bool is_sure() const {
    return best_ && best_->confidence == CauseConfidence::kHigh;
  }
  [[nodiscard]] const std::optional<Cause>& get() const { return best_; }

 private:
  std::optional<Cause> best_;
};

// The classes that one fact describes, most telling first.
std::optional<Cause> FindPlain(const CausePair& pair, const PairSums& sums,
                               const CauseRequest& request) {
  Best best;
  if (best.Offer(FindLayoutCause(pair, sums))) return best.get();
  if (sums.nonfinite_differs > 0) {
    best.Offer(FindNonFinite(pair, sums, request.api));
    return best.get();
  }
  if (best.Offer(FindRandom(pair, sums))) return best.get();
  if (best.Offer(FindZeroed(pair, sums))) return best.get();
  if (best.Offer(FindBound(pair, sums))) return best.get();
  // One number first; then operands, because a bias is also a constant per channel.
  if (best.Offer(FindFactor(pair, sums))) return best.get();
  if (best.Offer(FindAddend(pair, sums))) return best.get();
  best.Offer(FindConstant(pair, sums));
  return best.get();
}

// The classes with many numbers, and those that are known by what they are not.
std::optional<Cause> FindDiffuse(const CausePair& pair, const PairSums& sums,
                                 const CauseRequest& request) {
  Best best;
  if (best.Offer(FindFactors(pair, sums))) return best.get();
  if (best.Offer(FindConstants(pair, sums))) return best.get();
  best.Offer(FindProductCause(request, pair, sums));
  best.Offer(FindPrecision(pair, sums, MakingOf(request)));
  return best.get();
}

Cause Unexplained(const CausePair& pair, const PairSums& sums, const std::string& where) {
  Cause cause;
  cause.text = fmt::format("no class fits: {} of {} elements differ, relative error {:.3g}",
                           sums.differing, pair.size(), sums.error());
  if (!where.empty()) {
    cause.code = "block";
    cause.text = fmt::format(
        "the difference is confined to {}: {} of {} elements differ, relative "
        "error {:.3g}",
        where, sums.differing, pair.size(), sums.error());
  }
  return cause;
}

Cause FindChange(const CausePair& pair, const PairSums& sums, const CauseRequest& request) {
  Best best;
  if (best.Offer(FindPlain(pair, sums, request))) return *best.get();
  // Perhaps one block is plainly wrong.
  const Region region = DifferingRegion(pair, sums);
  const size_t size = RegionSize(region);
  const auto most = static_cast<size_t>(kLargestBlock * static_cast<double>(pair.size()));
  const bool has_block = size > 0 && size <= most;
  const std::string where = has_block ? RegionText(region, pair.shape) : std::string();
  const CausePair part = has_block ? ExtractRegion(pair, region) : CausePair();
  const PairSums part_sums = SumsOf(part);
  const auto offer_part = [&](std::optional<Cause> cause) {
    if (cause) cause->text = fmt::format("only at {}: {}", where, cause->text);
    return best.Offer(std::move(cause));
  };
  if (has_block && offer_part(FindPlain(part, part_sums, request))) return *best.get();
  if (best.Offer(FindDiffuse(pair, sums, request))) return *best.get();
  if (has_block) offer_part(FindDiffuse(part, part_sums, request));
  if (best.get()) return *best.get();
  return has_block ? Unexplained(part, part_sums, where) : Unexplained(pair, sums, {});
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
  for (size_t i = 0; i < sizes.size(); ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", sizes[i]);
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
  cause.text +=
      fmt::format("; target is golden with axes {} and {} exchanged", axes->first, axes->second);
  return cause;
}

// Whether a class says more than that the target equals something recorded. A fit that leaves more
// than rounding says less than an equality, and zeros that an operand has were not made here.
bool IsPlainer(const Cause& cause, const Cause& equal) {
  if (!cause.leaves_rounding) return false;
  return !(equal.code == "not-applied" && cause.code == "zeroed-block");
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
  const bool same_shape = std::equal(request.target.sizes.begin(), request.target.sizes.end(),
                                     request.golden.sizes.begin(), request.golden.sizes.end());
  if (!same_shape) return ClassifyShapes(request);
  if (request.target.element_count() == 0) return Cause{};
  PL_TRY_ASSIGN(const CausePair pair, LoadPair(request));
  const PairSums sums = SumsOf(pair);
  if (sums.differing == 0 && sums.difference_squares == 0) return Unexplained(pair, sums, {});
  if (auto unreduced = FindUnreduced(pair, sums, request.api)) return *unreduced;
  const std::optional<Cause> equal = FindEqual(pair, sums);
  Cause cause = equal && equal->is_history ? *equal : FindChange(pair, sums, request);
  if (equal && !equal->is_history) {
    // What an operation did not do says more than that it is missing, if it is known.
    if (cause.confidence != CauseConfidence::kHigh || !IsPlainer(cause, *equal)) return *equal;
    cause.text += "; " + equal->text;
  }
  if (pair.is_window) cause.text += " (seen in a part of the tensor)";
  return cause;
}

}  // namespace plumbline::measure
