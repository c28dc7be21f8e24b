#include "pipeline/overflow/bad_value.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <variant>

#include "base/number_text.h"
#include "plumbline/tensor.h"

namespace plumbline {
namespace {

std::string_view KindOfNumber(double value) {
  if (std::isnan(value)) return "NaN";
  if (!std::isinf(value)) return {};
  return value > 0 ? "Inf" : "-Inf";
}

std::string TextOf(const Statistic& statistic) {
  if (const auto* real = std::get_if<double>(&statistic)) return PythonFloat(*real);
  if (const auto* integer = std::get_if<int64_t>(&statistic)) return std::to_string(*integer);
  if (const auto* truth = std::get_if<bool>(&statistic)) return *truth ? "true" : "false";
  return "null";
}

bool IsAbsent(const Statistic& statistic) {
  return std::holds_alternative<std::monostate>(statistic);
}

// Whether a tensor could hold NaN or Inf at all.
bool MayBeBad(const TensorRecord& tensor) {
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) return false;
  const std::optional<DType> dtype = ParseDType(tensor.dtype_text);
  if (!dtype) return true;
  const DTypeKind kind = InfoOf(*dtype).kind;
  return kind == DTypeKind::kFloat || kind == DTypeKind::kComplex;
}

// "nan", "-Infinity", "1e400"; what is no number stays unknown.
Statistic StatisticOfText(const std::string& text) {
  if (text.empty()) return std::monostate();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size()) return std::monostate();
  return value;
}

void JudgeTensor(const TensorRecord& tensor, const std::string& path, ValueJudgement& judgement) {
  ++judgement.tensors;
  const std::string_view max = BadKindOf(tensor.max), min = BadKindOf(tensor.min);
  const bool nans = tensor.nan_count.value_or(0) > 0, infs = tensor.inf_count.value_or(0) > 0;
  if (max.empty() && min.empty() && !nans && !infs) {
    const bool counted = tensor.nan_count && tensor.inf_count;
    // One extreme alone says nothing about the other.
    const bool judged = (!IsAbsent(tensor.max) && !IsAbsent(tensor.min)) || counted;
    if (!judged && MayBeBad(tensor)) ++judgement.not_judged;
    return;
  }
  BadValue bad{.path = path, .what = {}, .max = TextOf(tensor.max), .min = TextOf(tensor.min)};
  bad.only_negative = !nans && max != "NaN" && min == "-Inf" && max != "Inf";
  if (nans || max == "NaN" || min == "NaN") {
    bad.what = "NaN";
  } else if (!max.empty()) {
    bad.what = max;
  } else {
    bad.what = min.empty() ? "Inf" : min;
  }
  // The first one, unless a later one is worse.
  const bool worse = judgement.bad && judgement.bad->only_negative && !bad.only_negative;
  if (!judgement.bad || worse) judgement.bad = std::move(bad);
}

}  // namespace

std::string_view BadKindOf(const Statistic& statistic) {
  const auto* real = std::get_if<double>(&statistic);
  return real != nullptr ? KindOfNumber(*real) : std::string_view();
}

// Statistics of something that lacks a tensor's "type" or "dtype": still Max and Min decide.
// Members of that name which are values of their own (keyword arguments) are no statistics.
std::optional<TensorRecord> UntypedTensor(const Value& value) {
  const auto statistic = [&](std::string_view key) -> std::optional<Statistic> {
    const Value* member = value.Find(key);
    if (member == nullptr) return std::nullopt;
    if (const auto* real = member->As<double>()) return *real;
    if (const auto* integer = member->As<int64_t>()) return *integer;
    if (const auto* truth = member->As<bool>()) return *truth;
    if (const auto* text = member->As<std::string>()) return StatisticOfText(*text);
    const bool nested = member->As<ValueMap>() != nullptr || member->As<ValueList>() != nullptr ||
                        member->As<TensorRecord>() != nullptr;
    return nested ? std::nullopt : std::optional<Statistic>(std::monostate());
  };
  const auto max = statistic("Max"), min = statistic("Min");
  const bool described = value.Find("shape") != nullptr && value.Find("dtype") != nullptr;
  if (!max && !min && !described) return std::nullopt;
  TensorRecord record;
  record.max = max.value_or(std::monostate());
  record.min = min.value_or(std::monostate());
  return record;
}

// Depth is bounded by the reader.
void Judge(const Value& value, const std::string& path, ValueJudgement& judgement) {
  if (const auto* tensor = value.As<TensorRecord>()) {
    JudgeTensor(*tensor, path, judgement);
  } else if (const auto* list = value.As<ValueList>()) {
    for (size_t i = 0; i < list->size(); ++i) {
      Judge((*list)[i], path + "." + std::to_string(i), judgement);
    }
  } else if (const auto untyped = UntypedTensor(value)) {
    JudgeTensor(*untyped, path, judgement);
  } else if (const auto* map = value.As<ValueMap>()) {
    // {"type": "float", "value": NaN} is named by its own path.
    const bool scalar = value.Find("type") != nullptr && value.Find("value") != nullptr;
    for (const auto& [key, member] : *map) {
      Judge(member, scalar && key == "value" ? path : path + "." + key, judgement);
    }
  } else if (const auto* number = value.As<double>()) {
    const std::string_view kind = KindOfNumber(*number);
    if (kind.empty() || !judgement.number.empty()) return;
    judgement.number = path;
    judgement.number_text = kind;
  }
}

}  // namespace plumbline
