#include "overflow/overflow_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/text/number_text.h"
#include "formats/json/dump_json.h"
#include "overflow/result_bounds.h"
#include "plumbline/record.h"
#include "record/recorded_number.h"
#include "tensor/float_range.h"

namespace plumbline {
namespace {

// The statistic where it is finite, else that of the finite elements.
std::optional<double> FiniteOf(const Statistic& statistic,
                               const std::optional<Statistic>& of_finite) {
  const std::optional<double> number = NumberOf(statistic);
  if (number && std::isfinite(*number)) return number;
  const std::optional<double> finite = of_finite ? NumberOf(*of_finite) : std::nullopt;
  return finite && std::isfinite(*finite) ? finite : std::nullopt;
}

void AddOperand(const TensorRecord& tensor, const std::string& path, OverflowHints& hints) {
  hints.has_tensors = hints.has_tensors || tensor.data_name.has_value();
  const std::optional<DType> dtype = ParseDType(tensor.dtype_text);
  if (!dtype || InfoOf(*dtype).kind != DTypeKind::kFloat) return;
  OperandRange operand;
  operand.path = path;
  operand.dtype = *dtype;
  operand.low = FiniteOf(tensor.min, tensor.min_finite);
  operand.high = FiniteOf(tensor.max, tensor.max_finite);
  const bool is_counted = tensor.nan_count.value_or(0) > 0 || tensor.inf_count.value_or(0) > 0;
  operand.is_finite =
      !is_counted && BadKindOf(tensor.max).empty() && BadKindOf(tensor.min).empty();
  hints.operands.push_back(std::move(operand));
}

void AddOperands(const Value& value, const std::string& path, OverflowHints& hints) {
  if (const auto* tensor = value.As<TensorRecord>()) AddOperand(*tensor, path, hints);
  if (const auto* list = value.As<ValueList>()) {
    for (size_t i = 0; i < list->size(); ++i) {
      AddOperands((*list)[i], fmt::format("{}.{}", path, i), hints);
    }
  }
  if (const auto* map = value.As<ValueMap>()) {
    for (const auto& [key, item] : *map) {
      AddOperands(item, fmt::format("{}.{}", path, key), hints);
    }
  }
}

// The key of the member whose value begins at `begin`; empty: there is none. Going backwards is
// safe: a quote within a key has a backslash before it.
std::string KeyBefore(std::string_view text, size_t begin) {
  if (begin == 0 || begin > text.size()) return {};
  const size_t close = text.find_last_not_of(" \t\r\n:", begin - 1);
  if (close == text.npos || close == 0 || text[close] != '"') return {};
  size_t open = text.rfind('"', close - 1);
  while (open != text.npos && open > 0 && text[open - 1] == '\\') open = text.rfind('"', open - 1);
  if (open == text.npos) return {};
  json::Reader in(text.substr(open, close + 1 - open));
  std::string_view key;
  return in.ReadString(key) ? std::string(key) : std::string();
}

void AddNumber(std::string_view key, const std::optional<double>& number, json::Document& out) {
  out.Key(key);
  if (!number) return out.Raw("null");
  std::string text;
  AppendJsonFloat(*number, text);
  out.Raw(text);
}

void AddOperandText(const OperandRange& operand, json::Document& out) {
  out.Open('{');
  out.Member("path", operand.path);
  out.Member("dtype", InfoOf(operand.dtype).name);
  AddNumber("min", operand.low, out);
  AddNumber("max", operand.high, out);
  out.Truth("finite", operand.is_finite);
  AddNumber("largest", LargestFinite(operand.dtype), out);
  AddNumber("log2_to_overflow", operand.doublings_left(), out);
  out.Close('}');
}

void AddOtherType(const OtherType& other, json::Document& out) {
  out.Open('{');
  out.Member("dtype", other.dtype);
  out.Key("stays_finite");
  out.Raw(!other.stays_finite ? "null" : *other.stays_finite ? "true" : "false");
  out.Member("by", other.is_by_ranges ? "ranges" : "replay");
  if (!other.problem.empty()) out.Member("problem", other.problem);
  out.Close('}');
}

std::string Short(double number) {
  std::string text;
  AppendGeneral(number, 6, text);
  return text;
}

}  // namespace

std::optional<double> OperandRange::doublings_left() const {
  if (!low || !high) return std::nullopt;
  const double magnitude = std::max(std::abs(*low), std::abs(*high));
  if (magnitude == 0) return std::nullopt;
  // Of logarithms, because the quotient may be beyond the doubles.
  return std::log2(LargestFinite(dtype)) - std::log2(magnitude);
}

OverflowHints HintsOf(const std::string& name, const EntryPlace& place,
                      std::string_view dump_text) {
  OverflowHints hints;
  for (size_t i = place.previous.size(); i-- > 0;) {
    std::string before = KeyBefore(dump_text, place.previous[i]);
    if (!before.empty()) hints.previous.push_back(std::move(before));
  }
  const bool is_inside = place.begin <= place.end && place.end <= dump_text.size();
  if (!is_inside) return hints;
  const Result<Call> call =
      dump_json::ParseEntry(name, dump_text.substr(place.begin, place.end - place.begin));
  if (!call) return hints;
  const Value* const recorded = call->Find("overflow_origin");
  const auto* const word = recorded == nullptr ? nullptr : recorded->As<std::string>();
  if (word != nullptr) hints.recorded_class = *word;
  for (const DType dtype : {DType::kBFloat16, DType::kFloat32}) {
    const std::optional<bool> stays_finite = StaysFinite(*call, dtype);
    if (!stays_finite) continue;
    hints.other_types.push_back({std::string(InfoOf(dtype).name), stays_finite, {}, true});
  }
  for (const std::string_view key :
       {dump_json::kInputArgs, dump_json::kInputKwargs, dump_json::kInput}) {
    const Value* const value = call->Find(key);
    if (value != nullptr) AddOperands(*value, std::string(key), hints);
  }
  return hints;
}

std::string RangeText(const OperandRange& operand) {
  const std::string_view type = InfoOf(operand.dtype).name;
  const std::string_view which = operand.is_finite ? "" : ", besides NaN or Inf";
  if (!operand.low || !operand.high) {
    return fmt::format("{}, {}", type,
                       operand.is_finite ? "range not recorded" : "no finite range recorded");
  }
  const std::optional<double> left = operand.doublings_left();
  const std::string distance =
      left ? fmt::format("2^{} below the largest, {}", Short(*left),
                         Short(LargestFinite(operand.dtype)))
           : "all zero";
  return fmt::format("{} in [{}, {}]{}, {}", type, Short(*operand.low), Short(*operand.high), which,
                     distance);
}

std::string OtherTypeText(const OtherType& other) {
  if (!other.stays_finite) return fmt::format("not known: {}", other.problem);
  return fmt::format("{}{}", *other.stays_finite ? "stays finite" : "overflows too",
                     other.is_by_ranges ? " (by the ranges of its operands)" : "");
}

std::string AdviceOf(const OverflowHints& hints) {
  constexpr size_t kTypes = 2;
  const bool was_run = std::any_of(hints.other_types.begin(), hints.other_types.end(),
                                   [](const OtherType& other) { return !other.is_by_ranges; });
  if (was_run || !hints.problem.empty() || hints.other_types.size() == kTypes) return {};
  if (hints.has_tensors) return "the ranges do not tell: --replay runs the saved inputs";
  return "the ranges do not tell, and no inputs were saved: record task overflow_check or tensor, "
         "then --replay";
}

void AddHints(const OverflowHints& hints, json::Document& out) {
  out.Key("operands");
  out.Open('[');
  for (const OperandRange& operand : hints.operands) AddOperandText(operand, out);
  out.Close(']');
  out.Texts("previous", hints.previous);
  if (!hints.recorded_class.empty()) out.Member("overflow_origin", hints.recorded_class);
  if (!hints.problem.empty()) out.Member("replay_problem", hints.problem);
  if (hints.other_types.empty()) return;
  out.Key("other_types");
  out.Open('[');
  for (const OtherType& other : hints.other_types) AddOtherType(other, out);
  out.Close(']');
}

}  // namespace plumbline
