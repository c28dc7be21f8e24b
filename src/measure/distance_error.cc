#include "measure/distance_error.h"

#include <algorithm>
#include <cmath>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "record/recorded_number.h"

namespace plumbline::measure {
namespace {

// Nearer than this, in sizes of the tensors, rounding of these counts in the distance.
constexpr double kNear = 0.125;

double SizeOf(const Item& item) { return RmsOf(item).value_or(0); }
double NormOf(const Item& item) { return SizeOf(item) * std::sqrt(ElementsOf(item)); }

// What is compared: the larger size, the larger relative error, the errors of both as a size.
struct Compared {
  explicit Compared(std::span<const InputError> operands) {
    for (const InputError& operand : operands) {
      size = std::max(size, SizeOf(*operand.golden));
      error = std::max(error, operand.error);
      moved += operand.error * SizeOf(*operand.golden);
    }
  }
  double size = 0, error = 0, moved = 0;
};

// Root mean square of the elements of a - b that lead to a result of this size.
double DifferenceOf(Distance distance, const Item& output, const Item& compared) {
  const double result = SizeOf(output);
  if (distance == Distance::kSquare) return std::sqrt(result);
  if (distance != Distance::kNorm) return result;
  return result / std::sqrt(std::max(ElementsOf(compared) / ElementsOf(output), 1.0));
}

// Distances of all pairs, |a|^2 + |b|^2 - 2 a b: each square is off as a number of the size of
// |a|^2 is, its root by that over the distance, and by the root of it where no distance is left.
struct Pairs {
  Pairs(const Item& output, const Item& rows, const Compared& compared, double rounding) {
    const double columns = rows.shape.empty() ? 1 : static_cast<double>(rows.shape->back());
    const double square = compared.size * compared.size * columns;
    const double error = rounding + compared.error;
    const double least = std::sqrt(square * error);
    const double smallest = std::abs(NumberOf(output.statistics[1]).value_or(0));
    const double result = SizeOf(output);
    of_all = result > 0 ? square * error / (result * result) : 0;
    nearest = std::max(smallest, least);
    of_nearest = square * error / nearest;
    // Each row may have one other as near as the nearest pair.
    double longest = 1;
    const std::span<const int64_t> sizes(*output.shape);
    for (const int64_t each : sizes.last(std::min<size_t>(sizes.size(), 2))) {
      longest = std::max(longest, static_cast<double>(each));
    }
    share = std::sqrt(1 / longest);
  }
  double of_all = 0;                   // relative error of most
  double nearest = 0, of_nearest = 0;  // size and absolute error
  double share = 0;                    // of such pairs, the root of it
};

}  // namespace

double DistanceError(const Item& output, std::string_view call_name,
                     std::span<const InputError> operands, double rounding) {
  const Distance distance = DistanceOfCall(call_name);
  const double result = SizeOf(output);
  if (distance == Distance::kNone || operands.size() < 2 || !(result > 0)) return 0;
  const Compared compared(operands.first(2));
  if (distance == Distance::kCosine || distance == Distance::kLogistic) return 0;
  if (distance == Distance::kAngle) {
    return result <= kNear ? (rounding + compared.error) / result : 0;
  }
  if (distance == Distance::kOfPairs) {
    const Pairs pairs(output, *operands[0].golden, compared, rounding);
    return std::max(pairs.of_all, pairs.share * pairs.of_nearest / result);
  }
  const double apart = DifferenceOf(distance, output, *operands[0].golden);
  if (!(apart <= kNear * compared.size)) return 0;
  const double relative = compared.moved / apart;
  return distance == Distance::kSquare ? 2 * relative + relative * relative : relative;
}

double DistanceGradientError(const DistanceGradient& of, std::string_view call_name,
                             std::span<const InputError> operands, double rounding) {
  const Distance distance = DistanceOfCall(call_name);
  const double size = NormOf(of.gradient), from = NormOf(of.incoming);
  if (distance == Distance::kNone || operands.size() < 2 || !(size > 0)) return 0;
  const Compared compared(operands.first(2));
  // Of a loss of one number, that of each element or row is a share of what comes in.
  const double each = from * std::sqrt(ElementsOf(of.incoming)) / size;
  const double error = rounding + compared.error;
  switch (distance) {
    case Distance::kAngle:
    case Distance::kCosine:
      return error * each / NormOf(*operands[0].golden);
    case Distance::kLogistic:
      return (rounding + compared.moved) * each / std::sqrt(ElementsOf(of.gradient));
    case Distance::kOfPairs: {
      const Pairs pairs(of.output, *operands[0].golden, compared, rounding);
      const double near = std::min(1.0, (pairs.of_nearest + compared.moved) / pairs.nearest);
      return std::max(pairs.of_all, near * from / size);
    }
    case Distance::kDifference:
      return 0;  // the incoming one itself
    default:
      break;
  }
  const double apart = DifferenceOf(distance, of.output, *operands[0].golden);
  if (!(apart <= kNear * compared.size)) return 0;
  const double relative = compared.moved / apart;
  // As many signs are not told as elements are no larger than their error.
  return distance == Distance::kAbsolute ? 2 * std::sqrt(std::min(relative, 1.0)) : relative;
}

}  // namespace plumbline::measure
