#include "measure/cause_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

#include "measure/cause_arithmetic.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"

namespace plumbline::measure {

namespace {

constexpr size_t kMostAxes = 6;
constexpr size_t kMostTries = 16;  // golden slices compared with one target slice
constexpr size_t kMostSorted = size_t{1} << 22;

// The slices of a tensor along one axis.
struct Slices {
  size_t outer = 1, count = 1, inner = 1;

  [[nodiscard]] size_t elements() const { return outer * inner; }
  [[nodiscard]] size_t At(size_t slice, size_t k) const {
    return (k / inner * count + slice) * inner + k % inner;
  }
};

Slices SlicesAlong(const Shape& shape, size_t axis) {
  Slices slices;
  for (size_t a = 0; a < shape.size(); ++a) {
    size_t& part = a < axis ? slices.outer : a == axis ? slices.count : slices.inner;
    part *= static_cast<size_t>(shape[a]);
  }
  return slices;
}

// Slice matching of one pair along one axis.
class SliceMatch {
 public:
  SliceMatch(const CausePair& pair, const PairSums& sums, size_t axis)
      : pair_(pair), sums_(sums), axis_(axis), slices_(SlicesAlong(pair.shape, axis)) {}

  std::optional<Cause> Find() {
    if (slices_.count < 2) return std::nullopt;
    CollectDiffering();
    if (differing_.empty()) return std::nullopt;
    FindSources();
    if (auto cause = Shift()) return cause;
    return Permutation();
  }

 private:
  static constexpr size_t kNone = ~size_t{0};

  bool Same(size_t target_slice, size_t golden_slice) const {
    for (size_t k = 0; k < slices_.elements(); ++k) {
      const size_t t = slices_.At(target_slice, k);
      const size_t g = slices_.At(golden_slice, k);
      if (!Agree(pair_.target[t], pair_.golden[g], ElementTolerance(pair_, sums_, g))) return false;
    }
    return true;
  }

  void CollectDiffering() {
    for (size_t i = 0; i < slices_.count; ++i) {
      if (!Same(i, i)) differing_.push_back(i);
    }
  }

  static constexpr size_t kSideBySide = 8;

  // Adds the weighted elements of consecutive runs to the sum of each.
  template <size_t count>
  static void AddRuns(const double* runs, const std::vector<double>& weights,
                      std::span<double, count> sums) {
    std::array<double, count> local;
    std::copy(sums.begin(), sums.end(), local.begin());
    for (size_t i = 0; i < weights.size(); ++i) {
      for (size_t j = 0; j < count; ++j) {
        const double value = runs[j * weights.size() + i];
        if (std::isfinite(value)) local[j] += weights[i] * value;
      }
    }
    std::copy(local.begin(), local.end(), sums.begin());
  }

  // Per slice a projection on fixed weights: slices that agree have nearly the same one. Elements
  // are read as they lie in memory; each sum is in the order of the slice.
  std::vector<double> Signatures(std::span<const double> values) const {
    std::vector<double> sums(slices_.count, 0);
    std::vector<double> weights(slices_.inner);
    const double* value = values.data();
    for (size_t outer = 0, k = 0; outer < slices_.outer; ++outer) {
      for (size_t i = 0; i < slices_.inner; ++i, ++k) {
        weights[i] = static_cast<double>((k * 2654435761U) % 1021U) / 510 - 1;
      }
      // Several slices side by side: each sum waits for its own last addition only.
      size_t j = 0;
      for (; j + kSideBySide <= slices_.count;
           j += kSideBySide, value += kSideBySide * slices_.inner) {
        AddRuns(value, weights, std::span(sums).subspan(j).first<kSideBySide>());
      }
      for (; j < slices_.count; ++j, value += slices_.inner) {
        AddRuns(value, weights, std::span(sums).subspan(j).first<1>());
      }
    }
    return sums;
  }

  void FindSources() {
    const std::vector<double> signatures = Signatures(pair_.golden);
    std::vector<std::pair<double, size_t>> golden(slices_.count);
    for (size_t j = 0; j < slices_.count; ++j) golden[j] = {signatures[j], j};
    std::sort(golden.begin(), golden.end());
    const std::vector<double> wanted = Signatures(pair_.target);
    source_.assign(slices_.count, kNone);
    for (const size_t i : differing_) source_[i] = NearestSame(golden, i, wanted[i]);
  }

  // The golden slice equal to target slice `i` among those with the nearest signatures.
  size_t NearestSame(const std::vector<std::pair<double, size_t>>& golden, size_t i,
                     double wanted) const {
    auto above = std::lower_bound(golden.begin(), golden.end(), std::pair(wanted, size_t{0}));
    auto below = above;
    for (size_t tries = 0; tries < kMostTries; ++tries) {
      const bool has_below = below != golden.begin();
      const bool has_above = above != golden.end();
      if (!has_below && !has_above) break;
      const bool take_above =
          has_above &&
          (!has_below || std::abs(above->first - wanted) <= std::abs((below - 1)->first - wanted));
      const size_t j = take_above ? (above++)->second : (--below)->second;
      if (Same(i, j)) return j;
    }
    return kNone;
  }

  std::optional<Cause> Shift() const {
    std::map<int64_t, size_t> offsets;
    for (const size_t i : differing_) {
      if (source_[i] != kNone) {
        ++offsets[static_cast<int64_t>(source_[i]) - static_cast<int64_t>(i)];
      }
    }
    const auto best =
        std::max_element(offsets.begin(), offsets.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == offsets.end()) return std::nullopt;
    const auto count = static_cast<int64_t>(slices_.count);
    for (const int64_t offset :
         {best->first, best->first > 0 ? best->first - count : best->first + count}) {
      // Two slices in exchanged places are a permutation.
      if (std::abs(offset) * 2 >= count) continue;
      if (auto cause = ShiftBy(offset)) return cause;
    }
    return std::nullopt;
  }

  std::optional<Cause> ShiftBy(int64_t offset) const {
    const auto count = static_cast<int64_t>(slices_.count);
    bool wraps = true;
    size_t explained = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from = i + offset;
      const bool inside = from >= 0 && from < count;
      const bool same = Same(static_cast<size_t>(i), static_cast<size_t>((from + count) % count));
      if (inside && !same) return std::nullopt;
      if (!inside) wraps = wraps && same;
      if (inside && source_[static_cast<size_t>(i)] != kNone) ++explained;
    }
    // A single slice that happens to equal its neighbour proves nothing.
    if (explained == 0 || (explained == 1 && !wraps && count > 3)) return std::nullopt;
    // A part of the axis moved to its other end: blocks in another order.
    constexpr int64_t kFar = 8;
    const bool is_rotation = wraps && std::abs(offset) > kFar && std::abs(offset) * 4 >= count;
    Cause cause;
    cause.code = is_rotation ? "permuted" : "shifted";
    cause.text = fmt::format(
        "target at position i of axis {} is golden at i{:+}, for all {} "
        "positions that have one; the edge {}",
        axis_, offset, count - std::abs(offset), wraps ? "wraps around" : "holds other values");
    cause.confidence = CauseConfidence::kHigh;
    return cause;
  }

  std::optional<Cause> Permutation() const {
    size_t found = 0;
    std::vector<size_t> uses(slices_.count, 0);
    for (const size_t i : differing_) {
      if (source_[i] == kNone) continue;
      ++found;
      ++uses[source_[i]];
    }
    // Nearly all must be found; one element per slice is found by chance.
    if (found * 10 < differing_.size() * 9) return std::nullopt;
    const bool is_bijection =
        found == differing_.size() &&
        std::all_of(differing_.begin(), differing_.end(), [&](size_t i) { return uses[i] == 1; });
    if (!is_bijection && (slices_.elements() < 4 || AreSourcesConstant())) return std::nullopt;
    Cause cause;
    cause.code = "permuted";
    cause.text = fmt::format("{} of {} slices along axis {} hold the golden values of other ones",
                             found, slices_.count, axis_);
    const size_t first = differing_[0];
    if (is_bijection && differing_.size() == 2) {
      cause.text += fmt::format(": {} and {} are exchanged", first, differing_[1]);
    } else if (source_[first] != kNone) {
      cause.text += fmt::format(": target {} is golden {}", first, source_[first]);
    }
    if (!is_bijection) cause.text += "; some are taken twice";
    cause.confidence = is_bijection ? CauseConfidence::kHigh : CauseConfidence::kMedium;
    return cause;
  }

  // Whether the slices that were found hold one value each (all zeros, all masked).
  bool AreSourcesConstant() const {
    for (const size_t i : differing_) {
      if (source_[i] == kNone) continue;
      const double first = pair_.golden[slices_.At(source_[i], 0)];
      for (size_t k = 1; k < slices_.elements(); ++k) {
        if (!Agree(pair_.golden[slices_.At(source_[i], k)], first, 0)) return false;
      }
    }
    return true;
  }

  const CausePair& pair_;
  const PairSums& sums_;
  const size_t axis_;
  const Slices slices_;
  std::vector<size_t> differing_;
  std::vector<size_t> source_;  // of a target slice: the golden slice it equals
};

// Whether the target in row-major order is the golden tensor with two axes exchanged, in row-major
// order: a transposition, or a view where a transposition was meant.
bool IsTransposed(const CausePair& pair, const PairSums& sums, size_t first, size_t second) {
  Shape shape = pair.shape;
  std::vector<int64_t> strides = ContiguousStrides(shape);
  std::swap(shape[first], shape[second]);
  std::swap(strides[first], strides[second]);
  const std::vector<int64_t> order = ContiguousStrides(shape);
  for (size_t i = 0; i < pair.size(); ++i) {
    int64_t from = 0;
    for (size_t a = 0; a < shape.size(); ++a) {
      from += static_cast<int64_t>(i) / order[a] % shape[a] * strides[a];
    }
    const auto g = static_cast<size_t>(from);
    if (!Agree(pair.target[i], pair.golden[g], ElementTolerance(pair, sums, g))) return false;
  }
  return true;
}

std::optional<Cause> FindTransposition(const CausePair& pair, const PairSums& sums) {
  for (size_t a = 0; a < pair.shape.size(); ++a) {
    for (size_t b = a + 1; b < pair.shape.size(); ++b) {
      if (pair.shape[a] < 2 || pair.shape[b] < 2 || !IsTransposed(pair, sums, a, b)) continue;
      Cause cause;
      cause.code = "transposed";
      cause.text = pair.shape[a] == pair.shape[b]
                       ? fmt::format("target is golden with axes {} and {} exchanged", a, b)
                       : fmt::format(
                             "target holds the elements of golden in the order of axes {} "
                             "and {} exchanged (a view where a transposition was meant, or "
                             "the reverse)",
                             a, b);
      cause.confidence = CauseConfidence::kHigh;
      return cause;
    }
  }
  return std::nullopt;
}

// Equal values in unknown order.
std::optional<Cause> FindSameMultiset(const CausePair& pair, const PairSums& sums) {
  if (pair.size() > kMostSorted || sums.count != pair.size()) return std::nullopt;
  const double most = std::min(pair.tolerance / 4, 1e-3 * sums.error());
  const double scale = std::sqrt(std::max(sums.golden_squares, 1e-300));
  // Norms further apart than that leave more however the values are ordered; sorting takes long.
  constexpr double kSummation = 1e-9;  // rounding of the norms themselves
  if (std::abs(std::sqrt(sums.target_squares) - scale) > (most + kSummation) * scale) {
    return std::nullopt;
  }
  Doubles target = pair.target;
  Doubles golden = pair.golden;
  std::sort(target.begin(), target.end());
  std::sort(golden.begin(), golden.end());
  double squares = 0;
  size_t distinct = 1;
  for (size_t i = 0; i < target.size(); ++i) {
    squares += (target[i] - golden[i]) * (target[i] - golden[i]);
    if (i > 0 && golden[i] != golden[i - 1]) ++distinct;
  }
  // Two samples of one distribution sort alike: only rounding may be left.
  if (std::sqrt(squares) / scale > most) return std::nullopt;
  if (distinct < 8 || distinct * 2 < target.size()) return std::nullopt;
  Cause cause;
  cause.code = "permuted";
  cause.text = fmt::format(
      "{} elements differ, yet both sides hold the same values in another "
      "order",
      sums.differing);
  cause.confidence = CauseConfidence::kMedium;
  return cause;
}

}  // namespace

std::optional<Cause> FindLayoutCause(const CausePair& pair, const PairSums& sums) {
  if (pair.shape.empty() || pair.shape.size() > kMostAxes || sums.differing < 2) {
    return std::nullopt;
  }
  if (auto cause = FindTransposition(pair, sums)) return cause;
  std::optional<Cause> permuted;
  for (size_t axis = 0; axis < pair.shape.size(); ++axis) {
    std::optional<Cause> cause = SliceMatch(pair, sums, axis).Find();
    if (cause && cause->code == "shifted") return cause;  // says more than a permutation
    const bool is_better = cause && (!permuted || cause->confidence > permuted->confidence);
    if (is_better) permuted = std::move(cause);
  }
  return permuted ? permuted : FindSameMultiset(pair, sums);
}

namespace {

// The four numbers of one side.
struct Four {
  double max = 0, min = 0, mean = 0, norm = 0;
};

std::optional<Four> FourOf(const Item& item) {
  std::array<double, 4> values{};
  for (size_t i = 0; i < values.size(); ++i) {
    const std::optional<double> value = NumberOf(item.statistics[i]);
    if (!value) return std::nullopt;
    values[i] = *value;
  }
  return Four{values[0], values[1], values[2], values[3]};
}

bool IsFinite(const Four& four) {
  return std::isfinite(four.max) && std::isfinite(four.min) && std::isfinite(four.mean) &&
         std::isfinite(four.norm);
}

struct Sides {
  Four target, golden;
  double count = 0;
  double tolerance = 0;

  [[nodiscard]] bool Near(double a, double b, double scale) const {
    return std::abs(a - b) <= tolerance * scale;
  }
};

std::optional<Cause> FindFactor(const Sides& sides, const Shape& shape) {
  const Four& t = sides.target;
  const Four& g = sides.golden;
  if (!(g.norm > 0) || !(t.norm > 0)) return std::nullopt;
  const double size = t.norm / g.norm;
  const double largest = std::max(std::abs(t.max), std::abs(t.min));
  const double root = t.norm / std::sqrt(std::max(sides.count, 1.0));
  for (const double factor : {size, -size}) {
    const double max = factor * (factor > 0 ? g.max : g.min);
    const double min = factor * (factor > 0 ? g.min : g.max);
    const bool fits = sides.Near(t.max, max, largest) && sides.Near(t.min, min, largest) &&
                      sides.Near(t.mean, factor * g.mean, std::max(root, std::abs(t.mean)));
    if (!fits || sides.Near(factor, 1, 1)) continue;
    if (sides.Near(factor, -1, 1)) {
      return Cause{"sign", "all four statistics are those of golden with the opposite sign",
                   CauseConfidence::kMedium};
    }
    const double slack = std::max(1e-4, sides.tolerance / 4);
    return Cause{"scale",
                 fmt::format("all four statistics are those of golden times {}",
                             FactorText(factor, shape, slack)),
                 CauseConfidence::kMedium};
  }
  return std::nullopt;
}

std::optional<Cause> FindConstant(const Sides& sides) {
  const Four& t = sides.target;
  const Four& g = sides.golden;
  const double offset = t.mean - g.mean;
  const double scale =
      std::max({std::abs(t.max), std::abs(t.min), std::abs(g.max), std::abs(offset)});
  if (std::abs(offset) <= 4 * sides.tolerance * scale) return std::nullopt;
  const double norm = std::sqrt(std::max(
      0.0, g.norm * g.norm + 2 * offset * sides.count * g.mean + sides.count * offset * offset));
  const bool fits = sides.Near(t.max - g.max, offset, 2 * scale) &&
                    sides.Near(t.min - g.min, offset, 2 * scale) &&
                    sides.Near(t.norm, norm, 2 * std::max(t.norm, g.norm));
  if (!fits) return std::nullopt;
  return Cause{
      "offset",
      fmt::format("max, min, mean and norm are those of golden plus the constant {:.6g}", offset),
      CauseConfidence::kMedium};
}

std::optional<Cause> FindFacts(const Four& target, const Four& golden, DType dtype) {
  if (!IsFinite(target) && IsFinite(golden)) {
    return Cause{"nonfinite",
                 fmt::format("statistics of the target are not finite (max {}, min {}), those of "
                             "golden are",
                             target.max, target.min),
                 CauseConfidence::kHigh};
  }
  if (IsFinite(target) && !IsFinite(golden)) {
    if (std::max(std::abs(target.max), std::abs(target.min)) == LargestFinite(dtype)) {
      return Cause{"saturated",
                   "the target holds the largest number of its type where golden "
                   "is infinite",
                   CauseConfidence::kMedium};
    }
    return Cause{"nonfinite", "statistics of golden are not finite, those of the target are",
                 CauseConfidence::kHigh};
  }
  if (!IsFinite(target)) return std::nullopt;
  if (target.norm == 0 && target.max == 0 && golden.norm > 0) {
    return Cause{"zeroed-block",
                 fmt::format("the whole target is zero (golden norm {:.6g})", golden.norm),
                 CauseConfidence::kHigh};
  }
  return std::nullopt;
}

// Max and min are elements: where both have few digits and golden's do not, all have.
std::optional<Cause> FindFewDigits(const Sides& sides) {
  const auto fits = [](double value, int bits) {
    int exponent = 0;
    const double scaled = std::ldexp(std::frexp(value, &exponent), bits);
    return scaled == std::nearbyint(scaled);
  };
  for (const auto& [bits, name] : {std::pair(8, "bfloat16"), std::pair(11, "float16")}) {
    const bool narrow = fits(sides.target.max, bits) && fits(sides.target.min, bits);
    const bool golden = fits(sides.golden.max, bits) || fits(sides.golden.min, bits);
    const double scale = std::max(std::abs(sides.golden.max), std::abs(sides.golden.min));
    const double error = std::max(std::abs(sides.target.max - sides.golden.max),
                                  std::abs(sides.target.min - sides.golden.min));
    if (narrow && !golden && error <= std::ldexp(4 * scale, -bits)) {
      return Cause{
          "narrowed",
          fmt::format("max and min of the target are {} numbers, those of golden are not", name),
          CauseConfidence::kMedium};
    }
  }
  return std::nullopt;
}

}  // namespace

Cause ClassifyStatistics(const Item& target, const Item& golden, double explained) {
  const std::optional<Four> t = FourOf(target);
  const std::optional<Four> g = FourOf(golden);
  Cause unexplained;
  unexplained.text = "four statistics do not show the kind of error; record tensors";
  if (!t || !g) return unexplained;
  const std::optional<DType> dtype = ParseDType(target.dtype.value_or(""));
  if (auto cause = FindFacts(*t, *g, dtype.value_or(DType::kFloat32))) return *cause;
  if (!IsFinite(*t) || !IsFinite(*g)) return unexplained;
  const double roundoff = RoundoffOf(target, golden);
  const Result<int64_t> count = ElementCount(golden.shape);
  const double noise = std::isfinite(explained) ? explained : 0;
  const Sides sides{*t, *g, count ? static_cast<double>(*count) : 1,
                    std::max({8 * noise, 4 * roundoff, 1e-6})};
  if (auto cause = FindFactor(sides, golden.shape)) return *cause;
  if (auto cause = FindConstant(sides)) return *cause;
  if (roundoff > 0 && roundoff < 1e-5) {
    if (auto cause = FindFewDigits(sides)) return *cause;
  }
  return unexplained;
}

}  // namespace plumbline::measure
