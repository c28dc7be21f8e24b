#include "measure/cause_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace plumbline::measure {

namespace {

constexpr size_t kSamples = 512;
constexpr double kMostFactors = 1 << 23;  // of one operand
constexpr double kReproduced = 0.3;       // what may be left of the difference
constexpr double kLargestRounding = 0.1;  // a larger error is no rounding

// y[b, m, n] = bias[n] + sum over k of x[b, m, k] w[b, k, n], or w[n, k] when it is transposed.
struct MatrixProduct {
  std::vector<double> x, w, bias;
  size_t inner = 0;    // k
  size_t rows = 0;     // m of one matrix of the batch
  size_t columns = 0;  // n
  bool is_transposed = false;
  bool is_batched = false;  // w has a matrix per batch

  // One output element with `round` applied to both operands.
  template <class Round>
  [[nodiscard]] double At(size_t index, const Round& round) const {
    const size_t n = index % columns;
    const size_t row = index / columns;
    const size_t matrix = is_batched ? row / rows * inner * columns : 0;
    double sum = 0;
    for (size_t k = 0; k < inner; ++k) {
      const double weight = is_transposed ? w[n * inner + k] : w[matrix + k * columns + n];
      sum += round(x[row * inner + k]) * round(weight);
    }
    return bias.empty() ? sum : sum + bias[n];
  }
};

double RoundedTo(double value, int bits) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, bits)), exponent - bits);
}

bool Fits(const TensorView& view) {
  return static_cast<double>(view.element_count()) <= kMostFactors &&
         InfoOf(view.dtype).kind == DTypeKind::kFloat;
}

// Sizes of a product, checked against those of its result.
bool SetSizes(const TensorView& x, const TensorView& w, std::span<const int64_t> y,
              MatrixProduct& product) {
  if (x.sizes.empty() || w.sizes.size() < 2 || y.empty()) return false;
  const std::span<const int64_t> last = w.sizes.last(2);
  const int64_t inner = x.sizes.back();
  const int64_t columns = product.is_transposed ? last[0] : last[1];
  if ((product.is_transposed ? last[1] : last[0]) != inner || y.back() != columns) return false;
  product.is_batched = w.sizes.size() > 2;
  if (product.is_batched && product.is_transposed) return false;
  // The batches of x, w and y must be the same ones.
  const auto lead = x.sizes.first(x.sizes.size() - 1);
  const auto result = y.first(y.size() - 1);
  if (!std::equal(lead.begin(), lead.end(), result.begin(), result.end())) return false;
  if (product.is_batched) {
    const auto batch = w.sizes.first(w.sizes.size() - 2);
    if (lead.empty() || !std::equal(batch.begin(), batch.end(), lead.begin(), lead.end() - 1)) {
      return false;
    }
  }
  product.inner = static_cast<size_t>(inner);
  product.columns = static_cast<size_t>(columns);
  product.rows = lead.empty() ? 1 : static_cast<size_t>(lead.back());
  return inner > 1;
}

std::optional<MatrixProduct> ProductOf(const CauseRequest& request) {
  const std::string_view api = request.api;
  const bool is_linear = api == "linear" || api == "Linear";
  const bool has_addend = api == "addmm";
  const bool is_product = is_linear || has_addend || api == "matmul" || api == "mm" ||
                          api == "bmm" || api == "__matmul__";
  std::vector<const CauseCandidate*> operands;
  for (const CauseCandidate& candidate : request.candidates) {
    if (candidate.role == CauseCandidate::Role::kOperand) operands.push_back(&candidate);
  }
  if (!is_product || operands.size() < 2 || (has_addend && operands.size() != 3)) {
    return std::nullopt;
  }
  const size_t first = has_addend ? 1 : 0;
  const TensorView& x = operands[first]->view;
  const TensorView& w = operands[first + 1]->view;
  MatrixProduct product;
  product.is_transposed = is_linear;
  if (!Fits(x) || !Fits(w) || !SetSizes(x, w, request.target.sizes, product)) return std::nullopt;
  const CauseCandidate* bias = has_addend                          ? operands[0]
                               : is_linear && operands.size() == 3 ? operands[2]
                                                                   : nullptr;
  if (bias != nullptr) {
    const bool is_row =
        bias->view.sizes.size() == 1 && bias->view.sizes[0] == request.target.sizes.back();
    if (!is_row) return std::nullopt;
    product.bias = DoublesOf(bias->view).value_or(std::vector<double>());
  }
  product.x = DoublesOf(x).value_or(std::vector<double>());
  product.w = DoublesOf(w).value_or(std::vector<double>());
  const bool is_loaded =
      !product.x.empty() && !product.w.empty() && (bias == nullptr || !product.bias.empty());
  return is_loaded ? std::optional(std::move(product)) : std::nullopt;
}

struct Sample {
  std::vector<size_t> indices;
  double golden_squares = 0;
  double difference_squares = 0;  // of target and golden
};

Sample SampleOf(const CausePair& pair) {
  Sample sample;
  const size_t step = std::max<size_t>(1, pair.size() / kSamples);
  for (size_t i = step / 2; i < pair.size(); i += step) {
    const double d = pair.target[i] - pair.golden[i];
    if (!std::isfinite(d)) continue;
    sample.indices.push_back(i);
    sample.golden_squares += pair.golden[i] * pair.golden[i];
    sample.difference_squares += d * d;
  }
  return sample;
}

// |values - product| over |target - golden|, over the sample.
template <class Round>
double LeftOf(const MatrixProduct& product, const Sample& sample, std::span<const double> values,
              const Round& round) {
  double squares = 0;
  for (const size_t i : sample.indices) {
    const double left = values[i] - product.At(i, round);
    squares += left * left;
  }
  return std::sqrt(squares / sample.difference_squares);
}

}  // namespace

std::optional<Cause> FindProductCause(const CauseRequest& request, const CausePair& pair,
                                      const PairSums& sums) {
  const bool is_whole = std::equal(pair.shape.begin(), pair.shape.end(),
                                   request.target.sizes.begin(), request.target.sizes.end());
  if (!is_whole || sums.nonfinite_differs > 0 || sums.error() > kLargestRounding) {
    return std::nullopt;
  }
  const std::optional<MatrixProduct> product = ProductOf(request);
  if (!product) return std::nullopt;
  const Sample sample = SampleOf(pair);
  if (!(sample.difference_squares > 0) || !(sample.golden_squares > 0)) return std::nullopt;
  const auto keep = [](double value) { return value; };
  const double golden_left = LeftOf(*product, sample, pair.golden, keep);
  if (!(golden_left <= kReproduced)) return std::nullopt;  // golden is not this product
  for (const auto& [bits, name] :
       {std::pair(8, "bfloat16"), std::pair(11, "float16 or tf32"), std::pair(4, "float8_e4m3")}) {
    const auto round = [bits = bits](double value) { return RoundedTo(value, bits); };
    const double left = LeftOf(*product, sample, pair.target, round);
    if (!(left <= kReproduced)) continue;
    return Cause{"narrowed",
                 fmt::format("the product of the operands rounded to {} reproduces the target "
                             "({:.2g} of the difference stays unexplained)",
                             name, left),
                 CauseConfidence::kHigh};
  }
  return Cause{"accumulation",
               fmt::format("golden is the product of its operands to {:.2g} of the difference; the "
                           "target is off by {:.2g}, which no rounding of the operands reproduces: "
                           "another order or a narrower accumulator of {} terms",
                           golden_left, sums.error(), product->inner),
               CauseConfidence::kMedium};
}

namespace {

std::string IndexText(size_t index, const Shape& shape) {
  const std::vector<int64_t> strides = ContiguousStrides(shape);
  std::string text = "[";
  for (size_t a = 0; a < shape.size(); ++a) {
    text +=
        fmt::format("{}{}", a > 0 ? ", " : "", static_cast<int64_t>(index) / strides[a] % shape[a]);
  }
  return text + "]";
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What makes an elementwise function of `value` infinite or NaN; empty when nothing does.
std::string_view FaultOf(std::string_view api, double value, bool is_first) {
  if (Contains(api, "div") && !is_first && value == 0) return "division by zero";
  if (Contains(api, "reciprocal") && value == 0) return "division by zero";
  if (Contains(api, "rsqrt") && value == 0) return "division by zero";
  if (Contains(api, "log") && value < 0) return "logarithm of a negative number";
  if (Contains(api, "log") && value == 0) return "logarithm of zero";
  if (Contains(api, "sqrt") && value < 0) return "square root of a negative number";
  if (Contains(api, "exp") && value > 88) return "overflow of exp";
  if (Contains(api, "pow") && value < 0) return "power of a negative number";
  if (Contains(api, "pow") && value == 0) return "power of zero";
  if ((Contains(api, "acos") || Contains(api, "asin")) && std::abs(value) > 1) {
    return "argument outside [-1, 1]";
  }
  return {};
}

// The operand element behind element `index`: "input.1 is 0 there: division by zero".
std::string SourceText(const CausePair& pair, size_t index, std::string_view api) {
  bool is_first = true;
  for (const Operand& operand : pair.operands) {
    if (operand.role != CauseCandidate::Role::kOperand) continue;
    const double value = operand.values[index];
    if (!std::isfinite(value)) return fmt::format("{} is {} there", operand.name, value);
    const std::string_view fault = FaultOf(api, value, is_first);
    if (!fault.empty()) return fmt::format("{} is {:.6g} there: {}", operand.name, value, fault);
    is_first = false;
  }
  const double golden = pair.golden[index];
  const double largest = LargestFinite(pair.dtype);
  if (std::isfinite(golden) && std::abs(golden) > largest) {
    return fmt::format("golden is {:.6g} there, beyond {:.6g}, the largest {}: overflow", golden,
                       largest, InfoOf(pair.dtype).name);
  }
  return {};
}

struct NonFiniteCounts {
  size_t nan = 0, infinite = 0;
};

NonFiniteCounts CountsWhereOther(std::span<const double> values, std::span<const double> other) {
  NonFiniteCounts counts;
  for (size_t i = 0; i < values.size(); ++i) {
    if (Agree(values[i], other[i], 0)) continue;
    if (std::isnan(values[i])) ++counts.nan;
    if (std::isinf(values[i])) ++counts.infinite;
  }
  return counts;
}

// The other side holds the largest finite number wherever this one is infinite.
std::optional<Cause> FindClampedInfinity(const CausePair& pair) {
  const double largest = LargestFinite(pair.dtype);
  size_t clamped = 0;
  for (size_t i = 0; i < pair.size(); ++i) {
    if (Agree(pair.target[i], pair.golden[i], 0)) continue;
    if (!std::isinf(pair.golden[i]) && std::isfinite(pair.golden[i])) continue;
    if (pair.target[i] != std::copysign(largest, pair.golden[i])) return std::nullopt;
    ++clamped;
  }
  if (clamped == 0) return std::nullopt;
  return Cause{"saturated",
               fmt::format("{} elements are {:.6g}, the largest {}, where golden is infinite",
                           clamped, largest, InfoOf(pair.dtype).name),
               CauseConfidence::kHigh};
}

std::string CountsText(const NonFiniteCounts& counts) {
  std::string text;
  if (counts.nan > 0) text += fmt::format("{} NaN", counts.nan);
  if (counts.infinite > 0) {
    text += fmt::format("{}{} infinite", text.empty() ? "" : " and ", counts.infinite);
  }
  return text;
}

}  // namespace

double LargestFinite(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return 3.3895313892515355e38;
    case DType::kFloat32:
    case DType::kComplex64:
      return 3.4028234663852886e38;
    case DType::kFloat64:
    case DType::kComplex128:
      return std::numeric_limits<double>::max();
    case DType::kFloat8E4M3FN:
      return 448;
    case DType::kFloat8E4M3FNUZ:
      return 240;
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
      return 57344;
    default:
      return std::numeric_limits<double>::infinity();
  }
}

std::optional<Cause> FindNonFinite(const CausePair& pair, const PairSums& sums,
                                   std::string_view api) {
  if (sums.nonfinite_differs == 0) return std::nullopt;
  if (auto cause = FindClampedInfinity(pair)) return cause;
  const NonFiniteCounts target = CountsWhereOther(pair.target, pair.golden);
  const NonFiniteCounts golden = CountsWhereOther(pair.golden, pair.target);
  const bool in_target = target.nan + target.infinite > 0;
  size_t first = pair.size();
  CausePair marks;  // where the classes differ, to name the block
  marks.shape = pair.shape;
  marks.target.resize(pair.size());
  marks.golden.resize(pair.size());
  for (size_t i = pair.size(); i-- > 0;) {
    const double here = in_target ? pair.target[i] : pair.golden[i];
    if (std::isfinite(here) || Agree(pair.target[i], pair.golden[i], 0)) continue;
    first = i;
    marks.target[i] = 1;
  }
  Cause cause;
  cause.code = "nonfinite";
  cause.confidence = CauseConfidence::kHigh;
  cause.text = fmt::format("{} of {} elements in the {} only, first at {}",
                           CountsText(in_target ? target : golden), pair.size(),
                           in_target ? "target" : "golden tensor", IndexText(first, pair.shape));
  const std::string where = RegionText(DifferingRegion(marks, SumsOf(marks)), pair.shape);
  if (!where.empty()) cause.text += fmt::format(" ({})", where);
  const std::string source = in_target ? SourceText(pair, first, api) : std::string();
  if (!source.empty()) cause.text += "; " + source;
  return cause;
}

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
