#include "view/merge/merged_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/text/number_text.h"
#include "formats/json/dump_json.h"
#include "record/recorded_number.h"

namespace plumbline::view {
namespace {

using StatisticOf = Statistic TensorRecord::*;

constexpr std::array<std::string_view, 11> kMergeableTypes = {
    "torch.int8",    "torch.int32",   "torch.int64",   "torch.bfloat16",
    "torch.float16", "torch.float32", "torch.float64", "Float16",
    "Float32",       "BFloat16",      "Float64"};

// The members of an entry that hold values, and what their places begin with.
struct MemberPlace {
  std::string_view member, place;
  bool is_output;
};
constexpr std::array<MemberPlace, 5> kPlaces = {
    MemberPlace{dump_json::kInputArgs, "input", false},
    MemberPlace{dump_json::kInputKwargs, "input", false},
    MemberPlace{dump_json::kInput, "input", false},
    MemberPlace{dump_json::kParameters, "parameters", false},
    MemberPlace{dump_json::kOutput, "output", true}};

class PlaceWalker {
 public:
  explicit PlaceWalker(std::vector<PlacedValue>& out) : out_(out) {}

  void Walk(Value& value, std::string& place, bool is_output, int depth) {
    constexpr int kMostLevels = 400;  // that a recorder writes
    if (value.is_null() || depth > kMostLevels) return;
    if (auto* const tensor = value.As<TensorRecord>()) {
      out_.push_back({place, is_output, tensor});
    } else if (auto* const list = value.As<ValueList>()) {
      for (size_t i = 0; i < list->size(); ++i) {
        Step((*list)[i], fmt::format(".{}", i), place, is_output, depth);
      }
    } else if (auto* const map = value.As<ValueMap>()) {
      if (value.Find(dump_json::kType) != nullptr) {
        out_.push_back({place, is_output, nullptr});
        return;
      }
      for (auto& [key, member] : *map) Step(member, "." + key, place, is_output, depth);
    }
  }

 private:
  void Step(Value& value, const std::string& part, std::string& place, bool is_output, int depth) {
    const size_t size = place.size();
    place += place.empty() ? std::string_view(part).substr(1) : std::string_view(part);
    Walk(value, place, is_output, depth + 1);
    place.resize(size);
  }

  std::vector<PlacedValue>& out_;
};

bool IsGradients(const Part& part) { return part.name.find(".parameters_grad") != part.name.npos; }

bool AreNear(double first, double other) {
  const double distance = std::abs(first - other);
  if (std::isnan(distance)) return first == other || (std::isnan(first) && std::isnan(other));
  if (std::isinf(distance)) return std::isinf(first) && std::isinf(other);
  return (first == 0 ? distance : std::abs(distance / first)) < kSameStatistic;
}

bool AgreeIn(const TensorRecord& a, const TensorRecord& b, StatisticOf which, Sameness sameness) {
  const auto x = NumberOf(a.*which), y = NumberOf(b.*which);
  if (!x || !y) return true;
  if (sameness == Sameness::kNearly) return AreNear(*x, *y);
  return *x == *y || (std::isnan(*x) && std::isnan(*y));
}

// A statistic of all parts; nothing if one lacks it.
std::optional<std::vector<double>> NumbersOf(const TensorsAt& parts, StatisticOf which) {
  std::vector<double> numbers;
  for (const TensorRecord* const tensor : parts.tensors) {
    const auto number = NumberOf(tensor->*which);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

double Largest(const std::vector<double>& numbers) {
  double most = numbers.front();
  for (const double number : numbers) {
    if (std::isnan(most)) break;
    if (std::isnan(number) || number > most) most = number;
  }
  return most;
}

double Smallest(const std::vector<double>& numbers) {
  double least = numbers.front();
  for (const double number : numbers) {
    if (std::isnan(least)) break;
    if (std::isnan(number) || number < least) least = number;
  }
  return least;
}

double MeanOf(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum / static_cast<double>(numbers.size());
}

// Without overflow where the norms themselves do not.
double JointNorm(const std::vector<double>& numbers) {
  double norm = 0;
  for (const double number : numbers) norm = std::hypot(norm, number);
  return norm;
}

std::string Listed(const std::vector<double>& numbers, std::string_view between,
                   std::string_view behind = {}) {
  std::string text;
  for (const double number : numbers) {
    if (!text.empty()) text += between;
    text += PythonFloat(number);
    text += behind;
  }
  return text;
}

// Two parts are added as squares directly, so that the result is the one that the line spells.
double NormOf(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number * number;
  const bool is_usual = std::isnormal(sum) || sum == 0;
  return is_usual ? std::sqrt(sum) : JointNorm(numbers);
}

// Maxima of whole numbers stay whole.
Statistic Spelled(double number, const Statistic& like) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (std::holds_alternative<int64_t>(like) && std::abs(number) < kExact &&
      number == std::floor(number)) {
    return static_cast<int64_t>(number);
  }
  return number;
}

void AddCounts(const TensorsAt& parts, std::optional<int64_t> TensorRecord::*which) {
  std::optional<int64_t> sum = 0;
  for (const TensorRecord* const tensor : parts.tensors) {
    const std::optional<int64_t>& count = tensor->*which;
    sum = sum && count ? std::optional(*sum + *count) : std::nullopt;
  }
  parts.tensors.front()->*which = sum;
}

// The extremes of the finite elements, which stand beside those that are not finite.
void MergeFinite(const TensorsAt& parts, std::optional<Statistic> TensorRecord::*finite,
                 StatisticOf all, double (*choose)(const std::vector<double>&)) {
  std::vector<double> numbers;
  bool is_needed = false;
  for (const TensorRecord* const tensor : parts.tensors) {
    is_needed = is_needed || (tensor->*finite).has_value();
    const Statistic& own = (tensor->*finite) ? *(tensor->*finite) : tensor->*all;
    const auto number = NumberOf(own);
    if (number && std::isfinite(*number)) numbers.push_back(*number);
  }
  TensorRecord& first = *parts.tensors.front();
  if (!is_needed) return;
  if (numbers.empty()) {
    (first.*finite).reset();
  } else {
    first.*finite = Statistic(choose(numbers));
  }
}

struct Rule {
  std::string_view name;
  StatisticOf which;
  double (*merge)(const std::vector<double>&);
  bool keeps_whole_numbers;
};
constexpr std::array<Rule, 4> kRules = {
    Rule{dump_json::kMax, &TensorRecord::max, &Largest, true},
    Rule{dump_json::kMin, &TensorRecord::min, &Smallest, true},
    Rule{dump_json::kMean, &TensorRecord::mean, &MeanOf, false},
    Rule{dump_json::kNorm, &TensorRecord::norm, &NormOf, false}};

std::string Formula(const Rule& rule, const std::vector<double>& numbers) {
  if (rule.which == &TensorRecord::max) return fmt::format("max({})", Listed(numbers, ", "));
  if (rule.which == &TensorRecord::min) return fmt::format("min({})", Listed(numbers, ", "));
  if (rule.which == &TensorRecord::mean) {
    return fmt::format("({}) / {}", Listed(numbers, " + "), numbers.size());
  }
  return fmt::format("({}) ** 0.5", Listed(numbers, " + ", " ** 2"));
}

}  // namespace

void TakeStatistics(const TensorRecord& from, TensorRecord& tensor) {
  tensor.max = from.max;
  tensor.min = from.min;
  tensor.mean = from.mean;
  tensor.norm = from.norm;
  tensor.max_finite = from.max_finite;
  tensor.min_finite = from.min_finite;
  tensor.nan_count = from.nan_count;
  tensor.inf_count = from.inf_count;
  tensor.zero_count = from.zero_count;
  ForgetContents(tensor);
}

std::vector<PlacedValue> PlacedValuesOf(Part& part) {
  std::vector<PlacedValue> values;
  PlaceWalker walker(values);
  std::string place;
  if (IsGradients(part)) {
    for (auto& [key, member] : part.members) {
      if (key == dump_json::kMergeLines) continue;
      place = key;
      // The one gradient of a parameter stands in a list.
      auto* const list = member.As<ValueList>();
      Value& value = list != nullptr && list->size() == 1 ? list->front() : member;
      walker.Walk(value, place, false, 0);
    }
    return values;
  }
  for (const MemberPlace& each : kPlaces) {
    for (auto& [key, member] : part.members) {
      if (key != each.member) continue;
      place = each.place;
      walker.Walk(member, place, each.is_output, 0);
    }
  }
  return values;
}

bool IsMergeable(const TensorRecord& tensor) {
  return std::ranges::find(kMergeableTypes, std::string_view(tensor.dtype_text)) !=
         kMergeableTypes.end();
}

bool AgreeIn(const TensorRecord& a, const TensorRecord& b, Sameness sameness) {
  return AgreeIn(a, b, &TensorRecord::max, Sameness::kExact) &&
         AgreeIn(a, b, &TensorRecord::min, Sameness::kExact) &&
         AgreeIn(a, b, &TensorRecord::mean, sameness) &&
         AgreeIn(a, b, &TensorRecord::norm, sameness);
}

bool HasNaN(const TensorRecord& tensor) {
  return std::ranges::any_of(kRules, [&](const Rule& rule) {
    const auto number = NumberOf(tensor.*rule.which);
    return number && std::isnan(*number);
  });
}

DifferingTensors TensorsThat(Which which, Part& first, std::span<Part* const> others) {
  DifferingTensors found;
  if (others.empty()) return found;
  std::vector<std::unordered_map<std::string, TensorRecord*>> by_place;
  for (Part* const other : others) {
    auto& places = by_place.emplace_back();
    for (PlacedValue& value : PlacedValuesOf(*other)) {
      places.emplace(std::move(value.place), value.tensor);
    }
  }
  for (PlacedValue& value : PlacedValuesOf(first)) {
    if (value.tensor == nullptr || !IsMergeable(*value.tensor)) continue;
    TensorsAt at{value.place, {value.tensor}};
    bool is_wanted = which == Which::kAll;
    for (const auto& places : by_place) {
      const auto other = places.find(value.place);
      if (other == places.end() || other->second == nullptr || !IsMergeable(*other->second)) break;
      at.tensors.push_back(other->second);
      is_wanted = is_wanted || !AgreeIn(*value.tensor, *other->second, Sameness::kNearly);
    }
    if (is_wanted) (value.is_output ? found.outputs : found.inputs).push_back(std::move(at));
  }
  return found;
}

std::vector<std::string> MergeTensors(const TensorsAt& parts) {
  std::vector<std::string> lines;
  if (parts.tensors.size() < 2) return lines;
  TensorRecord& first = *parts.tensors.front();
  MergeFinite(parts, &TensorRecord::max_finite, &TensorRecord::max, &Largest);
  MergeFinite(parts, &TensorRecord::min_finite, &TensorRecord::min, &Smallest);
  for (const Rule& rule : kRules) {
    const auto numbers = NumbersOf(parts, rule.which);
    Statistic& merged = first.*rule.which;
    if (!numbers) {
      merged = std::monostate();
      continue;
    }
    const double number = rule.merge(*numbers);
    merged = rule.keeps_whole_numbers ? Spelled(number, merged) : Statistic(number);
    lines.push_back(fmt::format("{} of {}: {} = {}", rule.name, parts.place,
                                Formula(rule, *numbers), PythonFloat(number)));
  }
  AddCounts(parts, &TensorRecord::nan_count);
  AddCounts(parts, &TensorRecord::inf_count);
  AddCounts(parts, &TensorRecord::zero_count);
  ForgetContents(first);
  return lines;
}

void ForgetContents(TensorRecord& tensor) {
  tensor.digest.reset();
  tensor.data_name.reset();
}

}  // namespace plumbline::view
