#include "measure/cause_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/process/parallel.h"
#include "kernels/kernel_table.h"
#include "measure/cause_arithmetic.h"
#include "measure/cause_layout.h"
#include "measure/cause_precision.h"
#include "measure/standards.h"
#include "measure/tensor_metrics.h"

namespace plumbline::measure {

namespace {

constexpr int64_t kMostSampled = int64_t{1} << 20;  // 8 MiB of doubles a side
constexpr double kNoiseMargin = 8;                  // as the verdict's
constexpr double kRoundoffMargin = 4;  // both sides round, and the model of a cause rounds as well
constexpr double kSmallestTolerance = 1e-12;
// Residual over error: explained but for rounding, plainly explained, mostly explained.
constexpr double kRoundingResidual = 0.25;
constexpr double kPlainResidual = 0.02;
constexpr double kMostResidual = 0.12;

// First element and number of elements per axis.
struct Window {
  Shape begin, count;
};

// The whole tensor, or a block of at most kMostSampled that holds element `index`.
Window WindowAround(std::span<const int64_t> sizes, int64_t index) {
  Window window;
  const std::vector<int64_t> strides = ContiguousStrides(sizes);
  int64_t room = kMostSampled;
  std::vector<int64_t> counts(sizes.size());
  // Inner axes are kept whole as long as they fit.
  for (size_t a = sizes.size(); a-- > 0;) {
    counts[a] = std::clamp<int64_t>(room, 1, sizes[a]);
    room /= counts[a];
  }
  for (size_t a = 0; a < sizes.size(); ++a) {
    const int64_t at = (index / strides[a]) % sizes[a];
    window.begin.push_back(std::min(at, sizes[a] - counts[a]));
    window.count.push_back(counts[a]);
  }
  return window;
}

template <class Values>
Result<Values> Load(TensorView view, const Window& window) {
  int64_t offset = 0;
  for (size_t a = 0; a < view.sizes.size(); ++a) offset += window.begin[a] * view.strides[a];
  view.data += offset * InfoOf(view.dtype).size_bytes;
  view.sizes = window.count;
  if (view.dtype == DType::kFloat32 && view.is_contiguous()) {  // nearly always
    return WidenAll<Values>(view.dtype, view.data, static_cast<size_t>(view.element_count()));
  }
  PL_TRY_ASSIGN(const Tensor copy, Tensor::Copy(view));
  return WidenAll<Values>(view.dtype, copy.view().data, static_cast<size_t>(view.element_count()));
}

// Sizes and strides of `view` seen in `shape` (strides 0 where it repeats), or nothing. Trailing
// axes align, as in broadcasting; a vector may also run along axis 1, where convolutions add it.
std::optional<std::vector<int64_t>> ExpandedStrides(const TensorView& view,
                                                    std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 0);
  if (view.sizes.size() > shape.size()) return std::nullopt;
  const size_t skip = shape.size() - view.sizes.size();
  bool fits = true;
  for (size_t a = 0; a < view.sizes.size(); ++a) {
    if (view.sizes[a] == shape[skip + a]) {
      strides[skip + a] = view.strides[a];
    } else if (view.sizes[a] != 1) {
      fits = false;
    }
  }
  if (fits) return strides;
  if (view.sizes.size() == 1 && shape.size() > 2 && view.sizes[0] == shape[1]) {
    std::fill(strides.begin(), strides.end(), 0);
    strides[1] = view.strides[0];
    return strides;
  }
  return std::nullopt;
}

// Nothing where the candidate does not fit into `shape`.
Result<std::optional<Operand>> OperandOf(const CauseCandidate& candidate,
                                         std::span<const int64_t> shape, const Window& window) {
  const std::optional<Operand> none;
  TensorView view = candidate.view;
  if (InfoOf(view.dtype).kind == DTypeKind::kComplex || view.element_count() == 0) return none;
  Tensor reshaped;
  std::vector<int64_t> strides;
  if (const auto expanded = ExpandedStrides(view, shape)) {
    strides = *expanded;
  } else if (view.element_count() == TensorView{view.dtype, nullptr, shape, {}}.element_count()) {
    PL_TRY_ASSIGN(reshaped, Tensor::Copy(view));  // the same elements in another shape
    view.data = reshaped.view().data;
    strides = ContiguousStrides(shape);
  } else {
    return none;
  }
  view.sizes = shape;
  view.strides = strides;
  PL_TRY_ASSIGN(Doubles values, Load<Doubles>(view, window));
  return std::optional(Operand{candidate.name, candidate.role, std::move(values)});
}

// All that fit, on all threads: reading them takes longer than most tests of them.
Status AddOperands(const CauseRequest& request, const Window& window, CausePair& pair) {
  const size_t count = request.candidates.size();
  std::vector<Result<std::optional<Operand>>> loaded(count, std::optional<Operand>());
  ParallelFor(count, [&](size_t i) {
    loaded[i] = OperandOf(request.candidates[i], request.target.sizes, window);
  });
  for (Result<std::optional<Operand>>& each : loaded) {
    PL_TRY_ASSIGN(std::optional<Operand> operand, std::move(each));
    if (operand && operand->values.size() == pair.size()) {
      pair.operands.push_back(std::move(*operand));
    }
  }
  return {};
}

int64_t FirstDifference(const CauseRequest& request) {
  const Result<Tensor> target = Tensor::Copy(request.target);
  const Result<Tensor> golden = Tensor::Copy(request.golden);
  if (!target || !golden) return 0;
  const kernels::Pairwise sums = kernels::PairwiseOf(
      {request.target.dtype, target->view().data, request.golden.dtype, golden->view().data,
       static_cast<size_t>(request.target.element_count())});
  return sums.mismatch_count > 0 ? static_cast<int64_t>(sums.first_mismatch) : 0;
}

std::string IndicesText(const std::vector<int64_t>& indices) {
  constexpr size_t kMostShown = 4;
  if (indices.size() > 1 &&
      indices.back() - indices.front() + 1 == static_cast<int64_t>(indices.size())) {
    return fmt::format("{}-{}", indices.front(), indices.back());
  }
  const size_t shown = std::min(indices.size(), kMostShown);
  std::string text;
  for (size_t i = 0; i < shown; ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", indices[i]);
  if (shown < indices.size()) text += fmt::format(" and {} more", indices.size() - shown);
  return text;
}

}  // namespace

double PairSums::error() const {
  const double scale = std::max(target_squares, golden_squares);
  return scale > 0 ? std::sqrt(difference_squares / scale) : 0;
}

Result<CausePair> LoadPair(const CauseRequest& request) {
  const std::span<const int64_t> sizes = request.target.sizes;
  const bool large = request.target.element_count() > kMostSampled;
  const Window window = WindowAround(sizes, large ? FirstDifference(request) : 0);
  CausePair pair;
  pair.is_window = large;
  pair.shape = window.count;
  pair.dtype = request.target.dtype;
  pair.roundoff = std::max(UnitRoundoff(request.target.dtype), UnitRoundoff(request.golden.dtype));
  const double explained = std::isfinite(request.explained) ? request.explained : 0;
  pair.tolerance =
      std::max({kNoiseMargin * explained, kRoundoffMargin * pair.roundoff, kSmallestTolerance});
  std::optional<Result<Doubles>> target, golden;
  RunBoth([&] { target = Load<Doubles>(request.target, window); },
          [&] { golden = Load<Doubles>(request.golden, window); });
  PL_TRY_ASSIGN(pair.target, std::move(*target));
  PL_TRY_ASSIGN(pair.golden, std::move(*golden));
  const bool complex = InfoOf(request.target.dtype).kind == DTypeKind::kComplex;
  if (complex) pair.shape.push_back(2);
  if (!complex) PL_TRY(AddOperands(request, window, pair));
  return pair;
}

Result<std::vector<double>> DoublesOf(const TensorView& view) {
  return Load<std::vector<double>>(
      view, {Shape(view.sizes.size(), 0), Shape(view.sizes.begin(), view.sizes.end())});
}

PairSums SumsOf(const CausePair& pair) {
  PairSums sums;
  for (size_t i = 0; i < pair.size(); ++i) {
    const double t = pair.target[i];
    const double g = pair.golden[i];
    if (!std::isfinite(t) || !std::isfinite(g)) {
      if (!Agree(t, g, 0)) ++sums.nonfinite_differs;
      continue;
    }
    ++sums.count;
    const double d = t - g;
    sums.target_squares += t * t;
    sums.golden_squares += g * g;
    sums.difference_squares += d * d;
    sums.dot += t * g;
    sums.target_sum += t;
    sums.golden_sum += g;
    sums.max_difference = std::max(sums.max_difference, std::abs(d));
  }
  if (sums.count > 0) {
    sums.golden_rms = std::sqrt(sums.golden_squares / static_cast<double>(sums.count));
  }
  for (size_t i = 0; i < pair.size(); ++i) {
    const double tolerance = ElementTolerance(pair, sums, i);
    if (!Agree(pair.target[i], pair.golden[i], tolerance)) ++sums.differing;
  }
  return sums;
}

double ElementTolerance(const CausePair& pair, const PairSums& sums, size_t index) {
  const double g = std::abs(pair.golden[index]);
  return pair.tolerance * std::max(std::isfinite(g) ? g : 0, sums.golden_rms);
}

bool Agree(double target, double golden, double tolerance) {
  if (std::isnan(target) || std::isnan(golden)) return std::isnan(target) && std::isnan(golden);
  if (target == golden) return true;
  return std::isfinite(target) && std::isfinite(golden) && std::abs(target - golden) <= tolerance;
}

bool IsRounding(const CausePair& pair, const PairSums& sums, double residual) {
  return residual * sums.error() <= pair.tolerance;
}

double MostSquaresLeft(const PairSums& sums) {
  constexpr double kMost = 1.001 * std::max(kRoundingResidual, kMostResidual);
  return kMost * kMost * sums.difference_squares;
}

std::optional<CauseConfidence> FitOfFactor(const CausePair& pair, const PairSums& sums,
                                           double residual) {
  if (!(sums.target_squares > 0)) return std::nullopt;
  const double of_target = residual * std::sqrt(sums.difference_squares / sums.target_squares);
  return FitOf(pair, sums, std::max(residual, of_target));
}

std::optional<CauseConfidence> FitOf(const CausePair& pair, const PairSums& sums, double residual) {
  const bool is_rounding = IsRounding(pair, sums, residual);
  if (residual <= kPlainResidual || (is_rounding && residual <= kRoundingResidual)) {
    return CauseConfidence::kHigh;
  }
  if (residual <= kMostResidual) return CauseConfidence::kMedium;
  return std::nullopt;
}

Region DifferingRegion(const CausePair& pair, const PairSums& sums) {
  std::vector<std::vector<bool>> hit(pair.shape.size());
  for (size_t a = 0; a < hit.size(); ++a) hit[a].resize(static_cast<size_t>(pair.shape[a]));
  const std::vector<int64_t> strides = ContiguousStrides(pair.shape);
  for (size_t i = 0; i < pair.size(); ++i) {
    if (Agree(pair.target[i], pair.golden[i], ElementTolerance(pair, sums, i))) continue;
    for (size_t a = 0; a < hit.size(); ++a) {
      hit[a][static_cast<size_t>(static_cast<int64_t>(i) / strides[a] % pair.shape[a])] = true;
    }
  }
  Region region(pair.shape.size());
  for (size_t a = 0; a < hit.size(); ++a) {
    for (size_t k = 0; k < hit[a].size(); ++k) {
      if (hit[a][k]) region[a].push_back(static_cast<int64_t>(k));
    }
  }
  return region;
}

size_t RegionSize(const Region& region) {
  size_t size = 1;
  for (const std::vector<int64_t>& indices : region) size *= indices.size();
  return size;
}

CausePair ExtractRegion(const CausePair& pair, const Region& region) {
  CausePair part;
  for (const std::vector<int64_t>& indices : region) {
    part.shape.push_back(static_cast<int64_t>(indices.size()));
  }
  part.dtype = pair.dtype;
  part.roundoff = pair.roundoff;
  part.tolerance = pair.tolerance;
  part.is_window = pair.is_window;
  const std::vector<int64_t> strides = ContiguousStrides(pair.shape);
  const std::vector<int64_t> inner = ContiguousStrides(part.shape);
  std::vector<size_t> sources(RegionSize(region));
  for (size_t i = 0; i < sources.size(); ++i) {
    int64_t source = 0;
    for (size_t a = 0; a < region.size(); ++a) {
      const int64_t at = static_cast<int64_t>(i) / inner[a] % part.shape[a];
      source += region[a][static_cast<size_t>(at)] * strides[a];
    }
    sources[i] = static_cast<size_t>(source);
  }
  const auto take = [&](std::span<const double> from) {
    Doubles values(sources.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = from[sources[i]];
    return values;
  };
  part.target = take(pair.target);
  part.golden = take(pair.golden);
  for (const Operand& operand : pair.operands) {
    part.operands.push_back({operand.name, operand.role, take(operand.values)});
  }
  return part;
}

std::string RegionText(const Region& region, std::span<const int64_t> shape) {
  std::string text;
  for (size_t a = 0; a < region.size(); ++a) {
    if (static_cast<int64_t>(region[a].size()) == shape[a]) continue;
    text += fmt::format("{}axis {} (of {}) at {}", text.empty() ? "" : ", ", a, shape[a],
                        IndicesText(region[a]));
  }
  return text;
}

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
