#include "pipeline/arrays/checkpoint_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <variant>

#include "base/number_text.h"

namespace plumbline {
namespace {

using torch_pt::PlainValue;

// As the rule for arrays has it: a few roundings are no difference.
constexpr double kNoise = 8 * std::numeric_limits<double>::epsilon() / 2;

bool IsInteger(const PlainValue& value) {
  return std::holds_alternative<bool>(value) || std::holds_alternative<int64_t>(value);
}

int64_t IntegerOf(const PlainValue& value) {
  const bool* truth = std::get_if<bool>(&value);
  return truth != nullptr ? static_cast<int64_t>(*truth) : std::get<int64_t>(value);
}

std::optional<double> NumberOf(const PlainValue& value) {
  if (IsInteger(value)) return static_cast<double>(IntegerOf(value));
  const auto* number = std::get_if<double>(&value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

bool Agree(const PlainValue& target, const PlainValue& golden) {
  if (IsInteger(target) && IsInteger(golden)) return IntegerOf(target) == IntegerOf(golden);
  const std::optional<double> t = NumberOf(target), g = NumberOf(golden);
  if (!t || !g) return target == golden;
  if (*t == *g || (std::isnan(*t) && std::isnan(*g))) return true;
  return std::isfinite(*t) && std::isfinite(*g) &&
         std::abs(*t - *g) <= kNoise * std::max(std::abs(*t), std::abs(*g));
}

std::string OtherText(const ComparedValues& values) {
  if (values.target_other == 0 && values.golden_other == 0) return "";
  if (values.target_other == values.golden_other) {
    return fmt::format("{} not compared", CountText(values.target_other, "other value"));
  }
  return fmt::format("{} and {} of the golden not compared",
                     CountText(values.target_other, "other value"), values.golden_other);
}

}  // namespace

ComparedValues CompareValues(const load::Checkpoint& target, const load::Checkpoint& golden) {
  ComparedValues compared;
  compared.target_other = target.left_out();
  compared.golden_other = golden.left_out();
  auto t = target.values().begin();
  auto g = golden.values().begin();
  while (t != target.values().end() && g != golden.values().end()) {
    const int order = t->name.compare(g->name);
    if (order == 0) {
      ++compared.common;
      if (!Agree(t->value, g->value)) compared.differing.push_back({t->name, t->value, g->value});
    }
    if (order <= 0) ++t;
    if (order >= 0) ++g;
  }
  compared.target_only = target.values().size() - compared.common;
  compared.golden_only = golden.values().size() - compared.common;
  return compared;
}

std::string PlainText(const PlainValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return "None";
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "True" : "False";
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value)) return PythonFloat(*number);
  return fmt::format("'{}'", std::get<std::string>(value));
}

std::string ValuesText(const ComparedValues& values) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const std::string common = CountText(values.common, "plain value");
  if (!values.differing.empty()) {
    add(fmt::format("{} of {} {}", values.differing.size(), common,
                    values.differing.size() == 1 ? "differs" : "differ"));
  } else if (values.common > 0) {
    add(fmt::format("{} equal", common));
  }
  for (const auto& [count, side] :
       {std::pair(values.target_only, "target"), std::pair(values.golden_only, "golden")}) {
    if (count == 0) continue;
    add(fmt::format("{} only in the {} not compared", CountText(count, "plain value"), side));
  }
  if (const std::string other = OtherText(values); !other.empty()) add(other);
  return text;
}

}  // namespace plumbline
