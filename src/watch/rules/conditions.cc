#include "watch/rules/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text/number_text.h"
#include "base/text/text_parts.h"

namespace plumbline::watch {
namespace {

using Kind = ParameterKind;
using Parameter = ConditionParameter;

constexpr std::array<Parameter, 4> kTooLarge = {
    {{"abs_mean_gt", Kind::kNotNegative, Quantity::kAbsMean, Relation::kGreater, {}},
     {"max_gt", Kind::kCheck, Quantity::kMax, Relation::kGreater, {}},
     {"min_gt", Kind::kCheck, Quantity::kMin, Relation::kGreater, {}},
     {"mean_gt", Kind::kCheck, Quantity::kMean, Relation::kGreater, {}}}};
constexpr std::array<Parameter, 4> kTooSmall = {
    {{"abs_mean_lt", Kind::kNotNegative, Quantity::kAbsMean, Relation::kLess, {}},
     {"max_lt", Kind::kCheck, Quantity::kMax, Relation::kLess, {}},
     {"min_lt", Kind::kCheck, Quantity::kMin, Relation::kLess, {}},
     {"mean_lt", Kind::kCheck, Quantity::kMean, Relation::kLess, {}}}};
constexpr std::array<Parameter, 1> kAllZero = {{{"zero_percentage_ge", Kind::kPercent,
                                                 Quantity::kZeroPercentage,
                                                 Relation::kGreaterEqual, 100.0}}};
constexpr std::array<Parameter, 6> kRange = {
    {{"range_start_inclusive", Kind::kBound, {}, Relation::kGreater, {}},
     {"range_end_inclusive", Kind::kBound, {}, Relation::kGreater, {}},
     {"range_percentage_lt", Kind::kPercent, Quantity::kRangePercentage, Relation::kLess, {}},
     {"range_percentage_gt", Kind::kPercent, Quantity::kRangePercentage, Relation::kGreater, {}},
     {"max_min_lt", Kind::kPositive, Quantity::kMaxMin, Relation::kLess, {}},
     {"max_min_gt", Kind::kNotNegative, Quantity::kMaxMin, Relation::kGreater, {}}}};
constexpr std::array<Parameter, 2> kChangeTooLarge = {
    {{"abs_mean_update_ratio_gt", Kind::kNotNegative, Quantity::kUpdateRatio, Relation::kGreater,
      0.1},
     {"epsilon", Kind::kNotNegative, {}, Relation::kGreater, {}}}};
constexpr std::array<Parameter, 2> kChangeTooSmall = {
    {{"abs_mean_update_ratio_lt", Kind::kNotNegative, Quantity::kUpdateRatio, Relation::kLess,
      1e-4},
     {"epsilon", Kind::kNotNegative, {}, Relation::kGreater, {}}}};
constexpr std::array<Parameter, 3> kNotChanged = {
    {{"rtol", Kind::kNotNegative, Quantity::kUnchanged, Relation::kGreater, 1e-5},
     {"atol", Kind::kNotNegative, {}, Relation::kGreater, {}},
     {"equal_nan", Kind::kTruth, {}, Relation::kGreater, {}}}};
constexpr std::array<Parameter, 3> kInitialization = {
    {{"zero_percentage_ge", Kind::kPercent, Quantity::kZeroPercentage, Relation::kGreaterEqual,
      100.0},
     {"max_gt", Kind::kCheck, Quantity::kMax, Relation::kGreater, {}},
     {"min_lt", Kind::kCheck, Quantity::kMin, Relation::kLess, {}}}};

constexpr std::array<ConditionInfo, 17> kConditions = {
    {{"tensor_overflow", "TO", kAnyTensor, false, {}},
     {"weight_overflow", "WO", kWeight, false, {}},
     {"gradient_exploding", "GE", kGradient, false, {}},
     {"tensor_too_large", "TL", kAnyTensor, false, kTooLarge},
     {"weight_too_large", "WL", kWeight, false, kTooLarge},
     {"gradient_too_large", "GL", kGradient, false, kTooLarge},
     {"tensor_too_small", "TS", kAnyTensor, false, kTooSmall},
     {"weight_too_small", "WS", kWeight, false, kTooSmall},
     {"gradient_vanishing", "GV", kGradient, false, kTooSmall},
     {"tensor_all_zero", "TZ", kAnyTensor, false, kAllZero},
     {"tensor_range", "TR", kAnyTensor, false, kRange},
     {"activation_range", "AR", kActivation, false, kRange},
     {"weight_change_too_large", "WCL", kWeight, false, kChangeTooLarge},
     {"weight_change_too_small", "WCS", kWeight, false, kChangeTooSmall},
     {"weight_not_changed", "WNC", kWeight, false, kNotChanged},
     {"weight_initialization", "WI", kWeight, true, kInitialization},
     {"operator_overflow", "OO", kOperator, false, {}}}};

constexpr std::array<std::string_view, 16> kQuantities = {
    "abs_mean", "mean",      "max",       "min",
    "max_min",  "sd",        "l2norm",    "count",
    "zero_percentage", "nan_count", "inf_count", "range_percentage",
    "abs_mean_update_ratio", "unchanged", "overflow", "operator_overflow"};
constexpr size_t kComparable = 13;  // the first ones

Error Bad(std::string problem) { return Error(ErrorCode::kInvalidArgument, std::move(problem)); }

// What a value has to be; empty: it is.
std::string_view Expectation(ParameterKind kind, double value) {
  constexpr double kMostPercent = 100;
  if (!std::isfinite(value)) return "a finite number";
  switch (kind) {
    case Kind::kCheck:
    case Kind::kBound:
      return "";
    case Kind::kPercent:
      return value >= 0 && value <= kMostPercent ? "" : "a percentage from 0 to 100";
    case Kind::kPositive:
      return value > 0 ? "" : "a number above 0";
    case Kind::kNotNegative:
      return value >= 0 ? "" : "a number from 0 on";
    case Kind::kTruth:
      return value == 0 || value == 1 ? "" : "true or false";
  }
  return "";
}

}  // namespace

std::string_view QuantityName(Quantity quantity) {
  return kQuantities[static_cast<size_t>(quantity)];
}

std::vector<std::string> QuantityNames() {
  std::vector<std::string> names;
  for (size_t i = 0; i < kComparable; ++i) names.emplace_back(kQuantities[i]);
  return names;
}

std::optional<Quantity> QuantityNamed(std::string_view name) {
  for (size_t i = 0; i < kComparable; ++i) {
    if (kQuantities[i] == name) return static_cast<Quantity>(i);
  }
  return std::nullopt;
}

std::span<const ConditionInfo> AllConditions() { return kConditions; }

const ConditionInfo* FindCondition(std::string_view name) {
  const std::string lower = LowerCase(name);
  for (const ConditionInfo& condition : kConditions) {
    if (condition.id == lower || LowerCase(condition.short_name) == lower) return &condition;
  }
  return nullptr;
}

std::string KnownWords(std::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = NearestText(word, known);
  if (!nearest.empty()) return fmt::format("did you mean {}?", nearest);
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  return list.empty() ? "it has none" : fmt::format("expected one of {}", list);
}

namespace {

// Makes the checks of one condition from what was given.
class CheckMaker {
 public:
  CheckMaker(const ConditionInfo& condition, const std::vector<GivenParameter>& given)
      : condition_(condition), given_(given) {}

  Result<std::vector<Check>> Run() {
    PL_TRY(CheckNames());
    if (condition_.parameters.empty()) return std::vector<Check>{Plain()};
    const bool has_question = std::ranges::any_of(condition_.parameters, [&](const auto& one) {
      return one.quantity && ValueOf(one.name);
    });
    std::vector<Check> checks;
    for (const ConditionParameter& one : condition_.parameters) {
      if (!one.quantity) continue;
      const auto value = ValueOf(one.name);
      const bool takes_preset = !value && one.preset && !has_question;
      if (!value && !takes_preset) continue;
      PL_TRY_ASSIGN(Check check, CheckFor(one, value ? *value : *one.preset));
      checks.push_back(std::move(check));
    }
    if (checks.empty()) return Bad(Needs());
    return checks;
  }

 private:
  [[nodiscard]] std::optional<double> ValueOf(std::string_view name) const {
    for (const GivenParameter& one : given_) {
      if (one.name == name) return one.value;
    }
    return std::nullopt;
  }

  [[nodiscard]] Status CheckNames() const {
    std::vector<std::string> known;
    for (const ConditionParameter& one : condition_.parameters) known.emplace_back(one.name);
    for (size_t i = 0; i < given_.size(); ++i) {
      const GivenParameter& one = given_[i];
      const auto found = std::ranges::find(condition_.parameters, std::string_view(one.name),
                                           &ConditionParameter::name);
      if (found == condition_.parameters.end()) {
        return Bad(fmt::format("{} has no parameter \"{}\"; {}", condition_.id, one.name,
                               KnownWords(one.name, known)));
      }
      const std::string_view expected = Expectation(found->kind, one.value);
      if (!expected.empty()) {
        return Bad(fmt::format("{}: {} is {} (expected {})", condition_.id, one.name,
                               PythonFloat(one.value), expected));
      }
      for (size_t k = 0; k < i; ++k) {
        if (given_[k].name == one.name) {
          return Bad(fmt::format("{}: {} is given twice", condition_.id, one.name));
        }
      }
    }
    return {};
  }

  [[nodiscard]] Check Plain() const {
    Check check;
    check.quantity = condition_.id == "operator_overflow" ? Quantity::kOperatorOverflow
                                                          : Quantity::kOverflow;
    check.parameter = "";
    return check;
  }

  [[nodiscard]] Result<Check> CheckFor(const ConditionParameter& one, double value) const {
    Check check;
    check.parameter = one.name;
    check.quantity = *one.quantity;
    check.relation = one.relation;
    check.threshold = value;
    if (check.quantity == Quantity::kUpdateRatio) {
      check.epsilon = ValueOf("epsilon").value_or(check.epsilon);
    }
    if (check.quantity == Quantity::kUnchanged) {
      check.closeness.rtol = value;
      check.closeness.atol = ValueOf("atol").value_or(check.closeness.atol);
      check.closeness.equal_nan = ValueOf("equal_nan").value_or(0) != 0;
      check.threshold = 0;  // 1 is above it
    }
    if (check.quantity != Quantity::kRangePercentage) return check;
    const auto start = ValueOf("range_start_inclusive"), end = ValueOf("range_end_inclusive");
    if (!start || !end) {
      return Bad(fmt::format("{}: {} needs range_start_inclusive and range_end_inclusive",
                             condition_.id, one.name));
    }
    if (*start > *end) {
      return Bad(fmt::format("{}: range_start_inclusive is {} (expected at most "
                             "range_end_inclusive, {})",
                             condition_.id, PythonFloat(*start), PythonFloat(*end)));
    }
    check.range = {*start, *end};
    return check;
  }

  [[nodiscard]] std::string Needs() const {
    std::string list;
    for (const ConditionParameter& one : condition_.parameters) {
      if (one.quantity) list += fmt::format("{}{}", list.empty() ? "" : ", ", one.name);
    }
    return fmt::format("{} needs one of {}", condition_.id, list);
  }

  const ConditionInfo& condition_;
  const std::vector<GivenParameter>& given_;
};

}  // namespace

Result<std::vector<Check>> ChecksOf(const ConditionInfo& condition,
                                    const std::vector<GivenParameter>& given) {
  return CheckMaker(condition, given).Run();
}

}  // namespace plumbline::watch
