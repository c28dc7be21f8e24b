#include "measure/propagation.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "record/recorded_number.h"

namespace plumbline::measure {
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
