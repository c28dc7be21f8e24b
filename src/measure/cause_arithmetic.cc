#include "measure/cause_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace plumbline::measure {
namespace {

constexpr size_t kFewestPerGroup = 4;  // elements that share one fitted number

Cause Make(std::string_view code, std::string text, CauseConfidence confidence) {
  return {std::string(code), std::move(text), confidence};
}

// What a fit leaves of the difference, for the sentence.
std::string ResidualText(double residual) {
  return fmt::format("{:.2g} of the difference stays unexplained", residual);
}

// Which group of elements shares one number.
struct Grouping {
  std::string name;  // "row along the last axis", "index of axis 1"
  size_t count = 1;
  size_t inner = 1, length = 1;  // group = i / inner % length

  [[nodiscard]] size_t GroupOf(size_t i) const { return i / inner % length; }
};

// One number per index of one axis, or per row of the last axis.
std::vector<Grouping> GroupingsOf(const Shape& shape) {
  std::vector<Grouping> groupings;
  size_t total = 1;
  for (const int64_t size : shape) total *= static_cast<size_t>(size);
  size_t inner = total;
  for (size_t a = 0; a < shape.size(); ++a) {
    const auto size = static_cast<size_t>(shape[a]);
    inner /= size;
    if (size >= 2 && total / size >= kFewestPerGroup) {
      groupings.push_back({fmt::format("index of axis {}", a), size, inner, size});
    }
  }
  // Leading axes together: rows of the last one, planes of the last two.
  inner = 1;
  for (size_t a = shape.size(); a-- > 1;) {
    inner *= static_cast<size_t>(shape[a]);
    if (inner < kFewestPerGroup || a < 2 || total / inner < 2) continue;
    groupings.push_back({fmt::format("slice of axes {}-{}", a, shape.size() - 1), total / inner,
                         inner, total / inner});
  }
  return groupings;
}

bool BothFinite(const CausePair& pair, size_t i) {
  return std::isfinite(pair.target[i]) && std::isfinite(pair.golden[i]);
}

bool IsOfRank(const Operand& operand) {
  return operand.role == CauseCandidate::Role::kRankShare ||
         operand.role == CauseCandidate::Role::kOtherRank;
}

struct Range {
  double low = 0, high = 0;
};

Range RangeOf(std::span<const double> values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high};
}

std::optional<Cause> FindOneFactor(const CausePair& pair, const PairSums& sums) {
  if (!(sums.golden_squares > 0) || !(sums.target_squares > 0)) return std::nullopt;
  const double factor = sums.dot / sums.golden_squares;
  const double residual = ResidualOf(pair, sums, [&](size_t i) { return factor * pair.golden[i]; });
  std::optional<CauseConfidence> fit = FitOfFactor(pair, sums, residual);
  if (!fit || factor == 0) return std::nullopt;
  const double slack = std::max(1e-4, 2 * pair.roundoff);
  const std::string name = FactorName(factor, pair.shape, slack);
  if (sums.count < kFewestPerGroup) {  // any two single numbers have a factor
    if (name.empty() && std::abs(factor + 1) > slack) return std::nullopt;
    fit = CauseConfidence::kLow;
  }
  if (std::abs(factor + 1) <= std::max(slack, pair.tolerance)) {
    return Make("sign",
                fmt::format("target is golden with the opposite sign (factor {:.6g}, {})", factor,
                            ResidualText(residual)),
                *fit);
  }
  return Make("scale",
              fmt::format("target is golden times {}, {}", FactorText(factor, pair.shape, slack),
                          ResidualText(residual)),
              *fit);
}

std::optional<Cause> FindOperandFactor(const CausePair& pair, const PairSums& sums) {
  for (const Operand& operand : pair.operands) {
    const Doubles& c = operand.values;
    if (IsOfRank(operand)) continue;
    const double times = ResidualOf(pair, sums, [&](size_t i) { return pair.golden[i] * c[i]; });
    if (const auto fit = FitOfFactor(pair, sums, times)) {
      return Make("scale",
                  fmt::format("target is golden times {}: a factor too many ({})", operand.name,
                              ResidualText(times)),
                  *fit);
    }
    const double over = ResidualOf(
        pair, sums, [&](size_t i) { return c[i] == 0 ? pair.target[i] : pair.golden[i] / c[i]; });
    const bool has_zero = std::any_of(c.begin(), c.end(), [](double v) { return v == 0; });
    const auto fit = has_zero ? std::nullopt : FitOfFactor(pair, sums, over);
    if (fit) {
      return Make("scale",
                  fmt::format("target is golden without the factor {} ({})", operand.name,
                              ResidualText(over)),
                  *fit);
    }
  }
  return std::nullopt;
}

std::optional<Cause> FindGroupFactors(const CausePair& pair, const PairSums& sums) {
  for (const Grouping& grouping : GroupingsOf(pair.shape)) {
    std::vector<double> dot(grouping.count), squares(grouping.count);
    for (size_t i = 0; i < pair.size(); ++i) {
      if (!BothFinite(pair, i)) continue;
      dot[grouping.GroupOf(i)] += pair.target[i] * pair.golden[i];
      squares[grouping.GroupOf(i)] += pair.golden[i] * pair.golden[i];
    }
    std::vector<double> factors(grouping.count);
    for (size_t k = 0; k < factors.size(); ++k) {
      factors[k] = squares[k] > 0 ? dot[k] / squares[k] : 1;
    }
    const double residual = ResidualOf(
        pair, sums, [&](size_t i) { return factors[grouping.GroupOf(i)] * pair.golden[i]; });
    const auto fit = FitOfFactor(pair, sums, residual);
    if (!fit) continue;
    const Range range = RangeOf(factors);
    return Make("scale",
                fmt::format("target is golden times one factor per {}, from {:.6g} to "
                            "{:.6g} ({})",
                            grouping.name, range.low, range.high, ResidualText(residual)),
                *fit);
  }
  return std::nullopt;
}

std::optional<Cause> FindGroupOffsets(const CausePair& pair, const PairSums& sums) {
  for (const Grouping& grouping : GroupingsOf(pair.shape)) {
    std::vector<double> sum(grouping.count), count(grouping.count);
    for (size_t i = 0; i < pair.size(); ++i) {
      if (!BothFinite(pair, i)) continue;
      sum[grouping.GroupOf(i)] += pair.target[i] - pair.golden[i];
      ++count[grouping.GroupOf(i)];
    }
    for (size_t k = 0; k < sum.size(); ++k) sum[k] = count[k] > 0 ? sum[k] / count[k] : 0;
    const double residual =
        ResidualOf(pair, sums, [&](size_t i) { return pair.golden[i] + sum[grouping.GroupOf(i)]; });
    const auto fit = FitOf(pair, sums, residual);
    if (!fit) continue;
    const Range range = RangeOf(sum);
    return Make("offset",
                fmt::format("target is golden plus one constant per {}, from {:.6g} to "
                            "{:.6g} ({})",
                            grouping.name, range.low, range.high, ResidualText(residual)),
                *fit);
  }
  return std::nullopt;
}

// Elements at `bound` that lie beyond it on the other side, and what clamping there leaves.
struct Clamping {
  size_t beyond = 0;  // elements, all of which are at the bound in the other tensor
  double residual = 1;
};

// How well clamping `open` at its extremes yields `clamped`; nothing where it does not. Ends at the
// first element that says so: most tensors are no clamped ones.
std::optional<Clamping> ClampingOf(const CausePair& pair, const PairSums& sums,
                                   bool target_is_clamped, Range bounds) {
  const Doubles& clamped = target_is_clamped ? pair.target : pair.golden;
  const Doubles& open = target_is_clamped ? pair.golden : pair.target;
  const double most_squares = MostSquaresLeft(sums);
  Clamping result;
  double squares = 0;
  for (size_t i = 0; i < pair.size(); ++i) {
    if (!BothFinite(pair, i)) continue;
    const double wanted = std::clamp(open[i], bounds.low, bounds.high);
    squares += (clamped[i] - wanted) * (clamped[i] - wanted);
    if (squares > most_squares) return std::nullopt;
    if (wanted == open[i] || Agree(open[i], clamped[i], ElementTolerance(pair, sums, i))) continue;
    // A single outlier on the other side looks like a bound, as does a smaller scale.
    if (clamped[i] != wanted) return std::nullopt;
    ++result.beyond;
  }
  if (sums.difference_squares > 0) result.residual = std::sqrt(squares / sums.difference_squares);
  return result;
}

// The extremes of `values` where both sides are finite. Requires: there are any.
Range RangeOfFinite(const CausePair& pair, std::span<const double> values) {
  size_t i = 0;
  while (!BothFinite(pair, i)) ++i;
  Range range{values[i], values[i]};
  for (; i < pair.size(); ++i) {
    if (!BothFinite(pair, i)) continue;
    if (values[i] < range.low) range.low = values[i];
    if (values[i] >= range.high) range.high = values[i];
  }
  return range;
}

std::string RoleText(const Operand& operand) {
  switch (operand.role) {
    case CauseCandidate::Role::kOperand:
      return fmt::format("target equals {}: the operation had no effect", operand.name);
    case CauseCandidate::Role::kEarlier:
      return fmt::format("target equals the earlier {}", operand.name);
    case CauseCandidate::Role::kEarlierStep:
    case CauseCandidate::Role::kOtherRank:
    case CauseCandidate::Role::kRankShare:
      break;
  }
  return fmt::format("target equals {}", operand.name);
}

std::string_view CodeOfEqual(CauseCandidate::Role role) {
  if (role == CauseCandidate::Role::kOperand) return "not-applied";
  return role == CauseCandidate::Role::kOtherRank ? "other-rank" : "stale";
}

bool EqualsTarget(const CausePair& pair, const PairSums& sums, const Operand& operand) {
  for (size_t i = 0; i < pair.size(); ++i) {
    const double tolerance =
        std::min(ElementTolerance(pair, sums, i), 2 * pair.roundoff * std::abs(pair.target[i]));
    if (!Agree(pair.target[i], operand.values[i], tolerance)) return false;
  }
  return true;
}

// Golden is the sum or the mean of all ranks' values in the target.
std::optional<Cause> FindRankSum(const CausePair& pair, const PairSums& sums) {
  const auto is_share = [](const Operand& operand) {
    return operand.role == CauseCandidate::Role::kRankShare;
  };
  if (std::none_of(pair.operands.begin(), pair.operands.end(), is_share)) return std::nullopt;
  Doubles total = pair.target;
  size_t ranks = 1;
  for (const Operand& operand : pair.operands) {
    if (!is_share(operand)) continue;
    ++ranks;
    for (size_t i = 0; i < total.size(); ++i) total[i] += operand.values[i];
  }
  const auto n = static_cast<double>(ranks);
  for (const double factor : {1.0, 1 / n}) {
    const double residual = ResidualOf(
        pair, sums, [&](size_t i) { return pair.golden[i] + pair.target[i] - factor * total[i]; });
    const auto fit = FitOf(pair, sums, residual);
    if (!fit) continue;
    return Make("not-reduced",
                fmt::format("golden is the {} of the target's {} ranks; the target holds this "
                            "rank's share ({})",
                            factor == 1 ? "sum" : "mean", ranks, ResidualText(residual)),
                *fit);
  }
  return std::nullopt;
}

}  // namespace

bool IsReduction(std::string_view api) {
  if (api.starts_with('_')) api.remove_prefix(1);
  return api.starts_with("all_reduce") || api.starts_with("reduce");
}

std::string FactorText(double factor, const Shape& shape, double tolerance) {
  constexpr double kNearOne = 1e-4;  // six digits would say little more than 1
  const double off = factor - 1;
  const bool is_near_one = off != 0 && std::abs(off) < kNearOne;
  const std::string number = is_near_one
                                 ? fmt::format("1 {} {:.3g}", off < 0 ? '-' : '+', std::abs(off))
                                 : fmt::format("{:.6g}", factor);
  const std::string name = FactorName(factor, shape, tolerance);
  return name.empty() || name == number ? number : fmt::format("{} (near {})", number, name);
}

std::string FactorName(double factor, const Shape& shape, double tolerance) {
  const auto near = [&](double value) {
    return std::abs(factor - value) <= tolerance * std::abs(value);
  };
  constexpr int kLargestNumber = 16;
  for (int n = 2; n <= kLargestNumber; ++n) {
    if (near(n)) return fmt::format("{}", n);
    if (near(1.0 / n)) return fmt::format("1/{}", n);
  }
  std::vector<double> sizes;
  double total = 1;
  for (const int64_t size : shape) {
    sizes.push_back(static_cast<double>(size));
    total *= static_cast<double>(size);
  }
  sizes.push_back(total);
  for (double power = 2; power <= 4096; power *= 2) sizes.push_back(power);
  for (const double size : sizes) {
    if (size < 2) continue;
    if (near(size)) return fmt::format("{}", size);
    if (near(1 / size)) return fmt::format("1/{}", size);
    if (near(std::sqrt(size))) return fmt::format("sqrt({})", size);
    if (near(1 / std::sqrt(size))) return fmt::format("1/sqrt({})", size);
  }
  for (const double size : sizes) {
    if (size >= 2 && near((size - 1) / size)) return fmt::format("{}/{}", size - 1, size);
    if (size >= 2 && near(size / (size - 1))) return fmt::format("{}/{}", size, size - 1);
  }
  return {};
}

std::optional<Cause> FindFactor(const CausePair& pair, const PairSums& sums) {
  return sums.nonfinite_differs > 0 ? std::nullopt : FindOneFactor(pair, sums);
}

std::optional<Cause> FindFactors(const CausePair& pair, const PairSums& sums) {
  if (sums.nonfinite_differs > 0 || sums.count < kFewestPerGroup) return std::nullopt;
  if (auto cause = FindOperandFactor(pair, sums)) return cause;
  return FindGroupFactors(pair, sums);
}

std::optional<Cause> FindAddend(const CausePair& pair, const PairSums& sums) {
  if (sums.nonfinite_differs > 0 || sums.count < kFewestPerGroup) return std::nullopt;
  for (const Operand& operand : pair.operands) {
    const bool recorded_here = operand.role == CauseCandidate::Role::kOperand ||
                               operand.role == CauseCandidate::Role::kEarlier;
    if (!recorded_here) continue;
    const Doubles& c = operand.values;
    double squares = 0;
    double dot = 0;
    for (size_t i = 0; i < pair.size(); ++i) {
      if (!BothFinite(pair, i)) continue;
      squares += c[i] * c[i];
      dot += (pair.target[i] - pair.golden[i]) * c[i];
    }
    if (!(squares > 0)) continue;
    const double factor = dot / squares;
    const double residual =
        ResidualOf(pair, sums, [&](size_t i) { return pair.golden[i] + factor * c[i]; });
    const auto fit = FitOf(pair, sums, residual);
    if (!fit) continue;
    const double slack = std::max({1e-3, 2 * pair.roundoff, residual});
    // A multiple of one number throughout (a gain of ones) is any constant.
    const Range range = RangeOf(c);
    if (range.low == range.high && std::abs(std::abs(factor) - 1) > slack) continue;
    std::string_view code = factor < 0 ? "missing-addend" : "extra-addend";
    std::string times;
    if (std::abs(std::abs(factor) - 1) > slack) times = fmt::format("{:.6g} times ", factor);
    std::string text = fmt::format("target is golden {} {}{} ({})",
                                   times.empty() && factor < 0 ? "without" : "plus", times,
                                   operand.name, ResidualText(residual));
    Cause cause = Make(code, std::move(text), *fit);
    cause.leaves_rounding = IsRounding(pair, sums, residual);
    return cause;
  }
  return std::nullopt;
}

std::optional<Cause> FindConstant(const CausePair& pair, const PairSums& sums) {
  if (sums.nonfinite_differs > 0 || sums.count < kFewestPerGroup) return std::nullopt;
  const double offset = (sums.target_sum - sums.golden_sum) / static_cast<double>(sums.count);
  const double residual = ResidualOf(pair, sums, [&](size_t i) { return pair.golden[i] + offset; });
  if (const auto fit = FitOf(pair, sums, residual)) {
    return Make("offset",
                fmt::format("target is golden plus the constant {:.6g} ({})", offset,
                            ResidualText(residual)),
                *fit);
  }
  return std::nullopt;
}

std::optional<Cause> FindConstants(const CausePair& pair, const PairSums& sums) {
  if (sums.nonfinite_differs > 0 || sums.count < kFewestPerGroup) return std::nullopt;
  return FindGroupOffsets(pair, sums);
}

std::optional<Cause> FindBound(const CausePair& pair, const PairSums& sums) {
  if (sums.nonfinite_differs > 0 || sums.count < kFewestPerGroup) return std::nullopt;
  for (const bool of_target : {true, false}) {
    const Range bounds = RangeOfFinite(pair, of_target ? pair.target : pair.golden);
    if (bounds.low == bounds.high) continue;
    const std::optional<Clamping> clamping = ClampingOf(pair, sums, of_target, bounds);
    const auto fit = clamping ? FitOf(pair, sums, clamping->residual) : std::nullopt;
    if (!fit || clamping->beyond < 2) continue;
    return Make(of_target ? "saturated" : "not-saturated",
                fmt::format("{} is {} clamped to [{:.6g}, {:.6g}]; {} of {} elements lie beyond",
                            of_target ? "target" : "golden", of_target ? "golden" : "target",
                            bounds.low, bounds.high, clamping->beyond, pair.size()),
                *fit);
  }
  return std::nullopt;
}

std::optional<Cause> FindZeroed(const CausePair& pair, const PairSums& sums) {
  size_t zeroed = 0;
  for (size_t i = 0; i < pair.size(); ++i) {
    if (Agree(pair.target[i], pair.golden[i], ElementTolerance(pair, sums, i))) continue;
    if (pair.target[i] != 0) return std::nullopt;
    ++zeroed;
  }
  if (zeroed == 0) return std::nullopt;
  const Region region = DifferingRegion(pair, sums);
  const size_t size = RegionSize(region);
  // Elements of the block that were zero or small before do not show.
  const bool is_block = zeroed * 10 >= size * 6;
  if (!is_block) {
    return std::nullopt;
  }
  const std::string where = RegionText(region, pair.shape);
  const std::string share =
      fmt::format("{} of {} elements are zero in the target only", zeroed, pair.size());
  return Make("zeroed-block", where.empty() ? share : fmt::format("{}: {}", share, where),
              zeroed > 1 ? CauseConfidence::kHigh : CauseConfidence::kMedium);
}

std::optional<Cause> FindEqual(const CausePair& pair, const PairSums& sums) {
  for (const Operand& operand : pair.operands) {
    if (operand.role == CauseCandidate::Role::kRankShare) continue;
    if (!EqualsTarget(pair, sums, operand)) continue;
    Cause cause = Make(CodeOfEqual(operand.role), RoleText(operand), CauseConfidence::kHigh);
    // Plainer than what two unrelated tensors look like.
    cause.is_history = operand.role == CauseCandidate::Role::kEarlierStep ||
                       operand.role == CauseCandidate::Role::kOtherRank;
    return cause;
  }
  return std::nullopt;
}

std::optional<Cause> FindUnreduced(const CausePair& pair, const PairSums& sums,
                                   std::string_view api) {
  for (const Operand& operand : pair.operands) {
    const bool is_share = IsReduction(api) && operand.role == CauseCandidate::Role::kOperand &&
                          EqualsTarget(pair, sums, operand);
    if (!is_share) continue;
    return Make("not-reduced", fmt::format("target equals {}: this rank's own share", operand.name),
                CauseConfidence::kHigh);
  }
  return FindRankSum(pair, sums);
}

}  // namespace plumbline::measure
