#include "measure/cause_nonfinite.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace plumbline::measure {
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

}  // namespace plumbline::measure
