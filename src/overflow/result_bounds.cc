#include "overflow/result_bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/json/dump_json.h"
#include "load/rank_scan.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "tensor/float_range.h"

namespace plumbline {
namespace {

// What rounding to 8 significant bits, of each operand and of partial sums, adds at most.
constexpr double kRounding = 1.02, kRoundingOfSums = 4;
constexpr double kHalfStep = 1.0 / 256;

// An argument by its range; a number is one whose ends are equal.
struct Operand {
  double low = 0, high = 0;
  const TensorRecord* tensor = nullptr;

  [[nodiscard]] double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
};
using Operands = std::vector<Operand>;

std::optional<double> FiniteNumber(const Statistic& statistic) {
  const std::optional<double> number = NumberOf(statistic);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<Operand> OperandOf(const Value& value) {
  if (const auto* tensor = value.As<TensorRecord>()) {
    const std::optional<double> low = FiniteNumber(tensor->min), high = FiniteNumber(tensor->max);
    const bool is_bad = tensor->nan_count.value_or(0) > 0 || tensor->inf_count.value_or(0) > 0;
    if (!low || !high || is_bad) return std::nullopt;
    return Operand{*low, *high, tensor};
  }
  const Value* const member = value.Find("value");
  const Value& number = member == nullptr ? value : *member;
  std::optional<double> scalar;
  if (const auto* real = number.As<double>()) scalar = *real;
  if (const auto* integer = number.As<int64_t>()) scalar = static_cast<double>(*integer);
  if (!scalar || !std::isfinite(*scalar)) return std::nullopt;
  return Operand{*scalar, *scalar};
}

// All arguments; nothing when one is not finite or there are keywords, whose meaning differs.
std::optional<Operands> OperandsOf(const Call& call) {
  const Value* const keywords = call.Find(dump_json::kInputKwargs);
  const auto* const named = keywords == nullptr ? nullptr : keywords->As<ValueMap>();
  if (named != nullptr && !named->empty()) return std::nullopt;
  const Value* const arguments = call.Find(dump_json::kInputArgs);
  const auto* const list = arguments == nullptr ? nullptr : arguments->As<ValueList>();
  if (list == nullptr) return std::nullopt;
  Operands operands;
  for (const Value& value : *list) {
    if (value.is_null()) continue;  // no bias
    const std::optional<Operand> operand = OperandOf(value);
    if (!operand) return std::nullopt;
    operands.push_back(*operand);
  }
  return operands;
}

enum class Form : uint8_t { kProduct, kSum, kQuotient, kMatrix, kLinear, kSquare, kExp, kTotal };

// "__imul__" and "mul_" are "mul".
std::optional<Form> FormOf(std::string_view api) {
  constexpr std::array<std::pair<std::string_view, Form>, 18> kForms = {{
      {"mul", Form::kProduct},      {"multiply", Form::kProduct}, {"rmul", Form::kProduct},
      {"imul", Form::kProduct},     {"add", Form::kSum},          {"radd", Form::kSum},
      {"iadd", Form::kSum},         {"sub", Form::kSum},          {"rsub", Form::kSum},
      {"isub", Form::kSum},         {"div", Form::kQuotient},     {"truediv", Form::kQuotient},
      {"itruediv", Form::kQuotient}, {"square", Form::kSquare},   {"exp", Form::kExp},
      {"linear", Form::kLinear},    {"sum", Form::kTotal},        {"matmul", Form::kMatrix},
  }};
  while (api.starts_with('_')) api.remove_prefix(1);
  while (api.ends_with('_')) api.remove_suffix(1);
  if (api == "mm" || api == "bmm") return Form::kMatrix;
  for (const auto& [name, form] : kForms) {
    if (name == api) return form;
  }
  return std::nullopt;
}

std::optional<double> LastSize(const Operand& operand) {
  if (operand.tensor == nullptr || operand.tensor->shape.empty()) return std::nullopt;
  return static_cast<double>(operand.tensor->shape.back());
}

std::optional<double> CountOf(const Operand& operand) {
  if (operand.tensor == nullptr) return std::nullopt;
  double count = 1;
  for (const int64_t size : operand.tensor->shape) count *= static_cast<double>(size);
  return count;
}

// No element of a result is larger; nothing: not known.
std::optional<double> BoundOfTwo(Form form, const Operand& a, const Operand& b) {
  const double product = a.magnitude() * b.magnitude();
  switch (form) {
    case Form::kProduct:
      return product;
    case Form::kSum:
      return a.magnitude() + b.magnitude();
    case Form::kQuotient: {
      const bool reaches_zero = b.low <= 0 && b.high >= 0;
      const double smallest = std::min(std::abs(b.low), std::abs(b.high));
      return reaches_zero ? std::nullopt : std::optional(a.magnitude() / smallest);
    }
    case Form::kMatrix:
    case Form::kLinear: {
      const std::optional<double> terms = LastSize(a);
      return terms && b.tensor != nullptr ? std::optional(*terms * product) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> BoundOf(Form form, const Operands& operands) {
  const size_t count = operands.size();
  if (form == Form::kSquare && count == 1) return operands[0].magnitude() * operands[0].magnitude();
  if (form == Form::kTotal && count == 1) {
    const std::optional<double> terms = CountOf(operands[0]);
    return terms ? std::optional(*terms * operands[0].magnitude()) : std::nullopt;
  }
  if (count == 2) return BoundOfTwo(form, operands[0], operands[1]);
  if (form != Form::kLinear || count != 3) return std::nullopt;
  const std::optional<double> product = BoundOfTwo(form, operands[0], operands[1]);
  return product ? std::optional(*product + operands[2].magnitude()) : std::nullopt;
}

std::optional<bool> OfExponential(const Operand& operand, DType dtype) {
  // The largest element is one that occurs, so that both answers are sure.
  const double slack = std::abs(operand.high) * kHalfStep;
  const double limit = std::log(LargestFinite(dtype));
  if (operand.high + slack + kHalfStep < limit) return true;
  if (operand.high - slack - kHalfStep > limit) return false;
  return std::nullopt;
}

}  // namespace

std::optional<bool> StaysFinite(const Call& call, DType dtype) {
  const std::optional<CallName> name = ParseCallName(call.name);
  if (!name || name->form != CallName::Form::kApi || name->kind != CallKind::kForward) {
    return std::nullopt;
  }
  const std::optional<Form> form = FormOf(name->path);
  const std::optional<Operands> operands = form ? OperandsOf(call) : std::nullopt;
  if (!operands || operands->empty()) return std::nullopt;
  for (const Operand& operand : *operands) {
    if (RoundsToNonFinite(dtype, operand.magnitude())) return std::nullopt;
  }
  if (*form == Form::kExp) {
    return operands->size() == 1 ? OfExponential(operands->front(), dtype) : std::nullopt;
  }
  const std::optional<double> bound = BoundOf(*form, *operands);
  const bool is_sum =
      *form == Form::kMatrix || *form == Form::kLinear || *form == Form::kTotal;
  const double rounding = is_sum ? kRoundingOfSums : kRounding;
  if (!bound || !(*bound * rounding < LargestFinite(dtype))) return std::nullopt;
  return true;
}

}  // namespace plumbline
