// The named conditions of watchpoints: ids, parameters, defaults and the tensors they are for.

#ifndef PLUMBLINE_WATCH_RULES_CONDITIONS_H_
#define PLUMBLINE_WATCH_RULES_CONDITIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/shared_value.h"
#include "watch/rules/facts.h"
#include "watch/rules/interval.h"

namespace plumbline::watch {

// What a tensor is; one may be several.
enum TensorKind : uint8_t {
  kAnyTensor = 1,
  kWeight = 2,
  kGradient = 4,
  kActivation = 8,
  kOperator = 16
};
using TensorKinds = uint8_t;

// A number that a rule looks at.
enum class Quantity : uint8_t {
  kAbsMean,
  kMean,
  kMax,
  kMin,
  kMaxMin,
  kSd,
  kL2Norm,
  kCount,
  kZeroPercentage,
  kNanCount,
  kInfCount,
  kRangePercentage,
  kUpdateRatio,
  kUnchanged,  // 1 or 0
  kOverflow,   // NaN and infinities, counted
  kOperatorOverflow,
};
// "abs_mean", as expressions have it.
std::string_view QuantityName(Quantity quantity);
// Names that an expression may compare, those with brackets without them.
std::vector<std::string> QuantityNames();
std::optional<Quantity> QuantityNamed(std::string_view name);

// One question with yes or no: how a quantity stands to a threshold.
struct Check {
  std::string parameter;  // "abs_mean_lt"; of comparisons their left side
  Text shown{};           // the same, to be shared; set by Rules::Add()
  Quantity quantity = Quantity::kMean;
  Relation relation = Relation::kGreater;
  double threshold = 0;
  bool of_previous = false;
  ValueRange range;
  size_t place = 0;       // of the range or the closeness in ScanWishes
  double epsilon = 1e-9;  // of the update ratio
  Closeness closeness;

  [[nodiscard]] bool needs_previous() const {
    return of_previous || quantity == Quantity::kUpdateRatio || quantity == Quantity::kUnchanged;
  }
};

enum class ParameterKind : uint8_t { kCheck, kBound, kPercent, kPositive, kNotNegative, kTruth };

struct ConditionParameter {
  std::string_view name;
  ParameterKind kind = ParameterKind::kCheck;  // which values are allowed
  // Of parameters that ask something.
  std::optional<Quantity> quantity;
  Relation relation = Relation::kGreater;
  std::optional<double> preset;  // taken where nothing is given
};

struct ConditionInfo {
  std::string_view id, short_name;
  TensorKinds kinds = kAnyTensor;
  bool at_first_step = false;  // looks at the first recorded step alone
  std::span<const ConditionParameter> parameters;
};

std::span<const ConditionInfo> AllConditions();
// By id or short name (any case); null: there is none.
const ConditionInfo* FindCondition(std::string_view name);

struct GivenParameter {
  std::string name;
  double value = 0;
};
// The checks of a condition, which are alternatives. kInvalidArgument: an unknown parameter (with
// the nearest one), a value outside its range, none that asks anything.
Result<std::vector<Check>> ChecksOf(const ConditionInfo& condition,
                                    const std::vector<GivenParameter>& given);

// ", did you mean X?" as a part of a message, else the known words.
std::string KnownWords(std::string_view word, const std::vector<std::string>& known);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_RULES_CONDITIONS_H_
