#include "measure/propagation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "plumbline/tensor.h"
#include "record/recorded_number.h"

namespace plumbline::measure {

namespace {

// Roundings of a few operations in a row, with margin.
constexpr double kRoundings = 4;

// Sums over one group.
struct Group {
  double count = 0, mean = 0, variance = 0;
  // Of the gradient g that comes in times w: means of g w, of |g w|, of g w and |g w| times x less
  // its mean over the deviation.
  double gradient = 0, size = 0, along = 0, size_along = 0;
};

class Groups {
 public:
  explicit Groups(const Normalisation& call) : call_(call) {
    const size_t count = call.block == 0 ? call.channels : call.x.size() / call.block;
    groups_.resize(count);
    for (size_t i = 0; i < call.x.size(); ++i) {
      ++Of(i).count;
      Of(i).mean += call.x[i];
    }
    for (Group& group : groups_) group.mean /= group.count;
    for (size_t i = 0; i < call.x.size(); ++i) {
      const double centred = call.x[i] - Of(i).mean;
      Of(i).variance += centred * centred;
    }
    for (Group& group : groups_) group.variance /= group.count;
  }

  [[nodiscard]] Group& Of(size_t i) { return groups_[GroupOf(i)]; }
  [[nodiscard]] const Group& Of(size_t i) const { return groups_[GroupOf(i)]; }
  [[nodiscard]] double WeightOf(size_t i) const { return At(call_.w, i, 1); }
  [[nodiscard]] double BiasOf(size_t i) const { return At(call_.b, i, 0); }
  [[nodiscard]] double InverseOf(size_t i) const {
    return 1 / std::sqrt(Of(i).variance + call_.epsilon);
  }
  [[nodiscard]] double NormalOf(size_t i) const { return (call_.x[i] - Of(i).mean) * InverseOf(i); }
  // Size of what is subtracted over what is left.
  [[nodiscard]] double ConditionOf(size_t i) const {
    return (std::abs(call_.x[i]) + std::abs(Of(i).mean)) * InverseOf(i);
  }
  // The same of all elements of the group, on which its deviation hangs.
  [[nodiscard]] double GroupConditionOf(size_t i) const {
    return 1 + std::abs(Of(i).mean) * InverseOf(i);
  }
  // Errors of sums over the group, in roundoffs.
  [[nodiscard]] double DepthOf(size_t i) const { return 1 + std::log2(Of(i).count); }

  void AddGradient(std::span<const double> incoming) {
    for (size_t i = 0; i < incoming.size(); ++i) {
      Group& group = Of(i);
      const double gradient = incoming[i] * WeightOf(i) / group.count;
      group.gradient += gradient;
      group.size += std::abs(gradient);
      group.along += gradient * NormalOf(i);
      group.size_along += std::abs(gradient * NormalOf(i));
    }
  }

 private:
  [[nodiscard]] size_t ChannelOf(size_t i) const { return i / call_.places % call_.channels; }
  [[nodiscard]] size_t GroupOf(size_t i) const {
    return call_.block == 0 ? ChannelOf(i) : i / call_.block;
  }
  [[nodiscard]] double At(std::span<const double> values, size_t i, double otherwise) const {
    return values.empty() ? otherwise : values[ChannelOf(i)];
  }

  const Normalisation& call_;
  std::vector<Group> groups_;
};

bool Fits(const Normalisation& call, std::span<const double> result) {
  const auto is_of_channels = [&](std::span<const double> values) {
    return values.empty() || values.size() == call.channels;
  };
  const size_t row = call.channels * call.places;
  return !call.x.empty() && call.x.size() == result.size() && row > 0 && call.x.size() % row == 0 &&
         (call.block == 0 || call.x.size() % call.block == 0) && is_of_channels(call.w) &&
         is_of_channels(call.b);
}

}  // namespace

bool IsNormalised(const Normalisation& call, std::span<const double> y, double unit_roundoff) {
  if (!Fits(call, y)) return false;
  const Groups groups(call);
  const double sum_roundoff = std::min(unit_roundoff, UnitRoundoff(DType::kFloat32));
  for (size_t i = 0; i < y.size(); ++i) {
    const double scaled = groups.NormalOf(i) * groups.WeightOf(i);
    const double value = scaled + groups.BiasOf(i);
    const double of_sums = groups.ConditionOf(i) * std::abs(groups.WeightOf(i)) +
                           groups.GroupConditionOf(i) * std::abs(scaled);
    const double rounding = unit_roundoff * (std::abs(scaled) + std::abs(groups.BiasOf(i))) +
                            sum_roundoff * groups.DepthOf(i) * of_sums;
    if (!(std::abs(y[i] - value) <= kRoundings * rounding)) return false;  // also for NaN
  }
  return true;
}

bool IsGradientOfNormalised(const Normalisation& call, std::span<const double> incoming,
                            std::span<const double> gradient, double unit_roundoff) {
  if (!Fits(call, gradient) || incoming.size() != gradient.size()) return false;
  Groups groups(call);
  groups.AddGradient(incoming);
  const double sum_roundoff = std::min(unit_roundoff, UnitRoundoff(DType::kFloat32));
  for (size_t i = 0; i < gradient.size(); ++i) {
    const Group& group = groups.Of(i);
    const double own = incoming[i] * groups.WeightOf(i), normal = groups.NormalOf(i);
    const double value = groups.InverseOf(i) * (own - group.gradient - normal * group.along);
    const double condition = groups.GroupConditionOf(i);
    const double terms = std::abs(own) + group.size + std::abs(normal) * group.size_along;
    // `normal` itself is off by its condition, in every element.
    const double of_normal =
        groups.ConditionOf(i) * std::abs(group.along) + std::abs(normal) * condition * group.size;
    const double of_sums = groups.InverseOf(i) * (terms + of_normal) + condition * std::abs(value);
    const double rounding =
        unit_roundoff * std::abs(value) + sum_roundoff * groups.DepthOf(i) * of_sums;
    if (!(std::abs(gradient[i] - value) <= kRoundings * rounding)) return false;
  }
  return true;
}

namespace {

// Something that is added: its size, and how much of it is rounding.
struct Term {
  double size = 0, residue = 0;
};

// Of its forward call.
bool IsModule(std::string_view call_name) {
  const bool is_forward = call_name.find(".forward.") != std::string_view::npos;
  return is_forward && (call_name.starts_with("Module.") || call_name.starts_with("Cell."));
}

double RootMeanSquare(const Item& item) { return RmsOf(item).value_or(0); }
double NormOf(const Item& item) { return RootMeanSquare(item) * std::sqrt(ElementsOf(item)); }

double LargestMagnitude(const Item& item) {
  const double max = NumberOf(item.statistics[0]).value_or(0);
  const double min = NumberOf(item.statistics[1]).value_or(0);
  return std::max(std::abs(max), std::abs(min));
}

// Of divisors of one sign; 0 where some may be zero.
double LeastMagnitude(const Item& item) {
  const double max = NumberOf(item.statistics[0]).value_or(0);
  const double min = NumberOf(item.statistics[1]).value_or(0);
  return max * min > 0 ? std::min(std::abs(max), std::abs(min)) : 0;
}

// What a term adds to the relative error of the result. It is no larger than the result and all
// other terms together, whatever factors it has.
double ShareOf(const Term& term, double all, double result) {
  return term.residue * std::min(term.size, result + all - term.size) / result;
}

double OfTerms(std::span<const Term> terms, double result) {
  double all = 0, error = 0;
  for (const Term& term : terms) all += term.size;
  for (const Term& term : terms) error += ShareOf(term, all, result);
  return error;
}

Term ProductOf(const InputError& a, const InputError& b) {
  const double size = std::min(RootMeanSquare(*a.golden) * LargestMagnitude(*b.golden),
                               LargestMagnitude(*a.golden) * RootMeanSquare(*b.golden));
  return {size, a.residue + b.residue};
}

Term QuotientOf(const InputError& a, const InputError& b) {
  const double least = LeastMagnitude(*b.golden);
  return least > 0 ? Term{RootMeanSquare(*a.golden) / least, a.residue + b.residue} : Term();
}

std::vector<Term> TermsOf(Mixing mixing, std::span<const InputError> operands, double factor) {
  std::vector<Term> terms;
  switch (mixing) {
    case Mixing::kNone:
    case Mixing::kFactors:
      break;
    case Mixing::kSelection:
      for (const InputError& operand : operands) {
        terms.push_back({NormOf(*operand.golden), operand.residue});
      }
      break;
    case Mixing::kSum:
      for (const InputError& operand : operands) {
        const double times = terms.empty() ? 1 : std::abs(factor);
        terms.push_back({RootMeanSquare(*operand.golden) * times, operand.residue});
      }
      break;
    case Mixing::kQuotient:
      if (operands.size() == 2) terms.push_back(QuotientOf(operands[0], operands[1]));
      break;
    case Mixing::kAddedProduct:
    case Mixing::kAddedQuotient: {
      if (operands.size() != 3) break;
      Term added = mixing == Mixing::kAddedProduct ? ProductOf(operands[1], operands[2])
                                                   : QuotientOf(operands[1], operands[2]);
      added.size *= std::abs(factor);
      terms = {{RootMeanSquare(*operands[0].golden), operands[0].residue}, added};
      break;
    }
    case Mixing::kBias:
      if (operands.size() == 3) {
        terms.push_back({RootMeanSquare(*operands[2].golden), operands[2].residue});
      }
      break;
  }
  return terms;
}

// What a module adds to its result, as the bias of a layer: parameters that are rounding alone.
double OfParameters(std::span<const InputError> operands, double result) {
  double error = 0;
  for (const InputError& operand : operands) {
    if (operand.golden->role != ItemRole::kParameter) continue;
    error += operand.residue * RootMeanSquare(*operand.golden);
  }
  return result > 0 ? error / result : 0;
}

}  // namespace

bool HasResidue(std::span<const InputError> operands) {
  return std::any_of(operands.begin(), operands.end(),
                     [](const InputError& operand) { return operand.residue > 0; });
}

double ResidueError(const Item& output, std::string_view call_name,
                    std::span<const InputError> operands, double factor) {
  if (!HasResidue(operands)) return 0;
  if (IsModule(call_name)) return OfParameters(operands, RootMeanSquare(output));
  // What is done to a residue alone changes its size, not its error.
  if (operands.size() == 1) return operands.front().residue;
  const Mixing mixing = MixingOfCall(call_name);
  if (mixing == Mixing::kFactors) {
    double error = 0;
    for (const InputError& operand : operands) error += operand.residue;
    return error;
  }
  const std::vector<Term> terms = TermsOf(mixing, operands, factor);
  const double result = mixing == Mixing::kSelection ? NormOf(output) : RootMeanSquare(output);
  if (mixing == Mixing::kBias && !terms.empty()) {
    return result > 0 ? terms.front().residue * terms.front().size / result : 0;
  }
  const double error = terms.empty() || !(result > 0) ? 0 : OfTerms(terms, result);
  return std::isfinite(error) ? error : 0;
}

double HiddenByElements(const Item& output, std::string_view call_name,
                        std::span<const InputError> operands, double factor) {
  if (!call_name.ends_with(".forward") || operands.empty()) return 0;
  if (IsSign(call_name)) {
    // The largest elements make the norm; all others may be small.
    const Item& item = *operands.front().golden;
    const double large = NormOf(item) / LargestMagnitude(item);
    const double count = ElementsOf(item);
    const double share = (count - large * large) / count;
    return share > 0 ? 2 * std::sqrt(share) : 0;
  }
  if (MixingOfCall(call_name) != Mixing::kAddedQuotient || operands.size() != 3) return 0;
  const Item& a = *operands[1].golden;
  const Item& b = *operands[2].golden;
  const double least = LeastMagnitude(b);
  const double size = RootMeanSquare(output);
  if (!(least > 0) || !(size > 0)) return 0;
  // The largest quotient is about that of the largest elements: b is the size of a.
  const double quotient = LargestMagnitude(a) / LargestMagnitude(b);
  const double error =
      operands[1].error * RootMeanSquare(a) + quotient * operands[2].error * RootMeanSquare(b);
  return std::abs(factor) * std::min(error / least, 2 * quotient) / size;
}

bool ShareResidues(const Item& output, std::string_view call_name, double factor,
                   std::span<InputError> operands) {
  const Mixing mixing = MixingOfCall(call_name);
  const bool adds = mixing == Mixing::kSum || mixing == Mixing::kSelection;
  const bool adds_two = mixing == Mixing::kAddedProduct || mixing == Mixing::kAddedQuotient;
  if (!(adds || adds_two) || operands.size() < 2 || !HasResidue(operands)) return false;
  const std::vector<Term> terms = TermsOf(mixing, operands, factor);
  if (terms.empty()) return false;
  const double result = mixing == Mixing::kSelection ? NormOf(output) : RootMeanSquare(output);
  if (!(result > 0)) return false;
  double all = 0;
  for (const Term& term : terms) all += term.size;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!(operands[i].residue > 0)) continue;
    const Term& term = terms[adds_two ? std::min<size_t>(i, 1) : i];
    operands[i].error = std::min(operands[i].error, ShareOf(term, all, result));
  }
  return true;
}

namespace {

double Clamped(double amplification) {
  return amplification > 1 ? std::min(amplification, kMostAmplification) : 1;  // 1 for NaN
}

// The operand with the most elements, or null.
const InputError* Largest(std::span<const InputError> operands) {
  const auto found = std::max_element(operands.begin(), operands.end(),
                                      [](const InputError& a, const InputError& b) {
                                        return ElementsOf(*a.golden) < ElementsOf(*b.golden);
                                      });
  return found == operands.end() ? nullptr : &*found;
}

double LargestError(std::span<const InputError> operands) {
  double error = 0;
  for (const InputError& operand : operands) error = std::max(error, operand.error);
  return error;
}

// y = a + b: absolute errors add up.
double OfSum(const Item& output, std::span<const InputError> operands) {
  const std::optional<double> y = RmsOf(output);
  if (!y) return 0;
  double total = 0;
  for (const InputError& operand : operands) {
    if (const std::optional<double> x = RmsOf(*operand.golden)) total += operand.error * *x / *y;
  }
  return total;
}

// y is a part of x: where it is small beside the rest, so may its relative error be large.
double OfPart(const Item& output, std::span<const InputError> operands) {
  const InputError* input = Largest(operands);
  if (input == nullptr || !(ElementsOf(*input->golden) > ElementsOf(output))) return 0;
  const std::optional<double> whole = NumberOf(input->golden->statistics[3]);
  const std::optional<double> part = NumberOf(output.statistics[3]);
  if (!whole || !part || !(*part > 0)) return 0;
  return input->error * *whole / *part;
}

// y = a b with k terms each: without cancellation y is sqrt(k) a b.
double OfProduct(const Item& output, std::span<const InputError> operands) {
  const InputError* first = Largest(operands);
  const InputError* second = nullptr;
  for (const InputError& operand : operands) {
    if (&operand == first) continue;
    if (second == nullptr || ElementsOf(*operand.golden) > ElementsOf(*second->golden))
      second = &operand;
  }
  if (second == nullptr) return 1;
  const std::optional<double> a = RmsOf(*first->golden);
  const std::optional<double> b = RmsOf(*second->golden);
  const std::optional<double> y = RmsOf(output);
  if (!a || !b || !y) return 1;
  const double length =
      ReductionLength(ElementsOf(*first->golden), ElementsOf(*second->golden), ElementsOf(output));
  return std::sqrt(length) * *a * *b / *y;
}

// A mean or sum over k terms that nearly cancel.
double OfReduction(const Item& output, std::span<const InputError> operands, bool is_mean) {
  const InputError* input = Largest(operands);
  const std::optional<double> x = input == nullptr ? std::nullopt : RmsOf(*input->golden);
  const std::optional<double> y = RmsOf(output);
  if (!x || !y) return 1;
  const double root = std::sqrt(std::max(ElementsOf(*input->golden) / ElementsOf(output), 1.0));
  return is_mean ? *x / (root * *y) : root * *x / *y;
}

// Whether a tensor of shape `small` is spread over `large` as PyTorch and NumPy broadcast it.
bool IsBroadcast(const Shape& small, const Shape& large) {
  if (small.size() > large.size()) return false;
  return std::equal(small.rbegin(), small.rend(), large.rbegin(),
                    [](int64_t a, int64_t b) { return a == b || a == 1; });
}

// The gradient of a bias is the sum of the gradients that come in, along all axes but one; that of
// an operand that was spread in an addition, along the axes where it was spread. Before a batch
// norm or a softmax these cancel.
double OfGradientSum(const Item& output, std::string_view call_name,
                     std::span<const InputError> operands) {
  const InputError* input = Largest(operands);
  if (input == nullptr || !(ElementsOf(*input->golden) > ElementsOf(output))) return 1;
  const Shape& shape = input->golden->shape;
  const bool is_axis = output.shape.empty() ||
                       (output.shape.size() == 1 &&
                        std::find(shape.begin(), shape.end(), output.shape[0]) != shape.end());
  if (!is_axis && !(IsAddition(call_name) && IsBroadcast(output.shape, shape))) return 1;
  return OfReduction(output, operands, false);
}

// a / b: small divisors make large results, and their relative errors are larger than that of all.
// Between the smallest and the largest divisor the middle one counts (geometric mean).
double OfQuotient(std::string_view call_name, std::span<const InputError> operands) {
  const bool is_inverse = call_name.find("reciprocal") != call_name.npos ||
                          call_name.find("rsqrt") != call_name.npos ||
                          call_name.find("__rtruediv__") != call_name.npos;
  const size_t divisor = is_inverse ? 0 : 1;
  if (operands.size() <= divisor) return 1;
  const Item& item = *operands[divisor].golden;
  const std::optional<double> rms = RmsOf(item);
  const std::optional<double> max = NumberOf(item.statistics[0]);
  const std::optional<double> min = NumberOf(item.statistics[1]);
  if (!rms || !max || !min || !(*max * *min >= 0)) return 1;  // across zero: not known
  const double high = std::max(std::abs(*max), std::abs(*min));
  const double low = std::min(std::abs(*max), std::abs(*min));
  return low > 0 ? Clamped(*rms / std::sqrt(low * high)) : 1;
}

// The element that is furthest from zero; nothing beside NaN or where it is zero.
std::optional<double> LargestOf(const Item& item) {
  const std::optional<double> max = NumberOf(item.statistics[0]);
  const std::optional<double> min = NumberOf(item.statistics[1]);
  if (!max || !min) return std::nullopt;
  const double size = std::max(std::abs(*max), std::abs(*min));
  return std::isfinite(size) && size > 0 ? std::optional(size) : std::nullopt;
}

// y = 0 + s a / b with divisors of one sign: the absolute error of a is divided by divisors that
// may all be the smallest, where a / b is as large as elsewhere if b is the size of a (Adam). The
// largest a, over no more than the largest b, gave no more than the largest y: that limits s.
double OfAddedQuotient(const Item& output, std::span<const InputError> operands) {
  if (operands.size() != 3 || RmsOf(*operands[0].golden)) return 0;
  const Item& a = *operands[1].golden;
  const Item& b = *operands[2].golden;
  const std::optional<double> y = RmsOf(output);
  const std::optional<double> rms_a = RmsOf(a);
  const std::optional<double> rms_b = RmsOf(b);
  const std::optional<double> most_y = LargestOf(output);
  const std::optional<double> most_a = LargestOf(a);
  const std::optional<double> most_b = LargestOf(b);
  if (!y || !rms_a || !rms_b || !most_y || !most_a || !most_b) return 0;
  const double max = NumberOf(b.statistics[0]).value_or(0);
  const double min = NumberOf(b.statistics[1]).value_or(0);
  if (!(max * min > 0)) return 0;
  const double least_b = std::min(std::abs(max), std::abs(min));
  const double scale = *most_y * *most_b / *most_a;
  const double of_a = scale * operands[1].error * *rms_a / least_b;
  const double of_b = *most_y * operands[2].error * *rms_b / least_b;
  return (of_a + of_b) / *y;
}

// (x - mean) / deviation: what is left after the mean is taken away carries the error of all.
double OfNormalisation(std::span<const InputError> operands) {
  const InputError* input = Largest(operands);
  if (input == nullptr) return 1;
  const std::optional<double> x = RmsOf(*input->golden);
  const std::optional<double> mean = NumberOf(input->golden->statistics[2]);
  if (!x || !mean) return 1;
  const double variance = *x * *x - *mean * *mean;
  return variance > 0 ? Clamped(*x / std::sqrt(variance)) : 1;
}

// exp(x), cos(x): a relative error of x is |x| times as large in the result.
double OfArgument(std::span<const InputError> operands, bool is_upper_only) {
  const InputError* input = Largest(operands);
  if (input == nullptr) return 1;
  double size = 1;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (is_upper_only && i == 1) continue;  // far below the largest: no weight
    const std::optional<double> value = NumberOf(input->golden->statistics[i]);
    if (value && std::isfinite(*value)) size = std::max(size, std::abs(*value));
  }
  return Clamped(size);
}

// A x = b: the error of x is at most |A| |x| / |b| times those of A and b, at least as |A^-1| |A|
// can be known from one solution.
double OfSolution(const Item& output, std::span<const InputError> operands,
                  std::string_view call_name) {
  const InputError* matrix = Largest(operands);
  if (matrix == nullptr || operands.size() != 2) return 1;
  const InputError& side = matrix == &operands[0] ? operands[1] : operands[0];
  const auto norm_of = [](const Item& item) {
    return RmsOf(item).value_or(0) * std::sqrt(ElementsOf(item));
  };
  double norm = norm_of(*matrix->golden);
  if (call_name.find("cholesky_solve") != call_name.npos) norm *= norm;  // a root was given
  return Clamped(norm * norm_of(output) / norm_of(*side.golden));
}

// softmax(x): an absolute error of an argument is a relative one of its share. It is the relative
// error of all arguments times their size, arguments of -100 in a mask included: their own shares
// are nothing, but they make the relative error small.
double OfShares(std::span<const InputError> operands) {
  const InputError* input = Largest(operands);
  if (input == nullptr || IsFilled(*input->golden)) return 0;
  return input->error * Clamped(RmsOf(*input->golden).value_or(1));
}

// log x: relative errors of x are absolute ones, large beside results near zero. Of functions that
// are made of exponentials around one: their rounding likewise.
double OfSmallResult(const Item& output) {
  const std::optional<double> y = RmsOf(output);
  return y ? Clamped(1 / *y) : 1;
}

// The extreme that is further from zero; nothing beside NaN.
std::optional<double> FarEnd(const Item& item) {
  const std::optional<double> max = NumberOf(item.statistics[0]);
  const std::optional<double> min = item.is_tensor ? NumberOf(item.statistics[1]) : max;
  if (!max || !min || std::isnan(*max) || std::isnan(*min)) return std::nullopt;
  return std::abs(*min) > std::abs(*max) ? *min : *max;
}

}  // namespace

// Recorders write a single number's own value as its norm, with its sign.
std::optional<double> RmsOf(const Item& item) {
  const std::optional<double> norm = NumberOf(item.statistics[3]);
  const double count = ElementsOf(item);
  if (!norm || !std::isfinite(*norm) || *norm == 0 || !(count > 0)) return std::nullopt;
  return std::abs(*norm) / std::sqrt(count);
}

bool AreOtherFills(const Item& target, const Item& golden) {
  if (target.is_tensor != golden.is_tensor) return false;
  if (target.is_tensor && (!IsFilled(target) || !IsFilled(golden))) return false;
  const std::optional<double> a = FarEnd(target);
  const std::optional<double> b = FarEnd(golden);
  if (!a || !b || *a == *b) return false;
  constexpr double kLeast = 1e4;  // what masks in 16 bits are filled with
  constexpr double kFar = 1e8;
  const double low = std::min(std::abs(*a), std::abs(*b));
  const double high = std::max(std::abs(*a), std::abs(*b));
  return (*a < 0) == (*b < 0) && low >= kLeast && high >= kFar;
}

bool IsFilled(const Item& item) {
  constexpr double kLarge = 1e3;
  const std::optional<double> max = NumberOf(item.statistics[0]);
  const std::optional<double> min = NumberOf(item.statistics[1]);
  if (!max || !min) return false;
  const double low = std::min(std::abs(*max), std::abs(*min));
  const double high = std::max(std::abs(*max), std::abs(*min));
  return !(high < kLarge * std::max(low, 1.0));  // also for NaN
}

Propagation PropagationTo(const Item& golden, std::string_view call_name,
                          std::span<const InputError> operands) {
  Propagation result;
  result.from_inputs = LargestError(operands);
  switch (AmplifierOfCall(call_name)) {
    case Amplifier::kNone:
    case Amplifier::kContraction:  // of single elements
      break;
    case Amplifier::kSum:
      result.from_inputs = std::max(result.from_inputs, OfSum(golden, operands));
      break;
    case Amplifier::kPart:
      result.from_inputs = std::max(result.from_inputs, OfPart(golden, operands));
      break;
    case Amplifier::kProduct:
      result.cancellation = OfProduct(golden, operands);
      break;
    case Amplifier::kMean:
    case Amplifier::kTotal:
      result.cancellation =
          OfReduction(golden, operands, AmplifierOfCall(call_name) == Amplifier::kMean);
      break;
    case Amplifier::kQuotient:
      result.amplification = OfQuotient(call_name, operands);
      break;
    case Amplifier::kAddedQuotient:
      result.from_inputs = std::max(result.from_inputs, OfAddedQuotient(golden, operands));
      break;
    case Amplifier::kNormalisation:
      result.amplification = OfNormalisation(operands);
      break;
    case Amplifier::kArgument:
      result.amplification = OfArgument(operands, false);
      break;
    case Amplifier::kLogarithm:
      result.amplification = OfSmallResult(golden);
      break;
    case Amplifier::kBounded:
      result.own_factor = OfSmallResult(golden);
      break;
    case Amplifier::kSolution:
      result.amplification = OfSolution(golden, operands, call_name);
      break;
    case Amplifier::kSoftmax:
      result.amplification = OfArgument(operands, true);
      result.from_inputs = std::max(result.from_inputs, OfShares(operands));
      break;
  }
  if (SumsGradients(call_name)) result.cancellation = OfGradientSum(golden, call_name, operands);
  const bool is_known = std::isfinite(result.cancellation) && result.cancellation > 1;
  if (!is_known) result.cancellation = 1;
  result.amplification = std::max(result.amplification, Clamped(result.cancellation));
  result.from_inputs = std::max(result.from_inputs, LargestError(operands) * result.amplification);
  if (!std::isfinite(result.from_inputs)) result.from_inputs = LargestError(operands);
  return result;
}

}  // namespace plumbline::measure
