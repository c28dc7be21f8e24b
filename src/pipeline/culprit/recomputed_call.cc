#include "pipeline/culprit/recomputed_call.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "measure/compared_row.h"
#include "measure/elementwise.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "pipeline/culprit/recorded_elements.h"
#include "record/recorded_number.h"
#include "tensor/half.h"

namespace plumbline::pipeline {
namespace {

using measure::ElementOperand;

constexpr double kSample = 1 << 14;  // elements of a part of one

bool IsOfTensors(const Comparison& comparison, const ComparedRow& row) {
  return comparison.mode == CompareMode::kTensor && row.target && row.target->is_tensor;
}

// `values` of shape `from`, repeated as PyTorch and NumPy broadcast them to `to`.
std::optional<std::vector<double>> Spread(std::vector<double> values, const Shape& from,
                                          const Shape& to) {
  if (from == to) return values;
  if (from.size() > to.size()) return std::nullopt;
  std::vector<size_t> steps(to.size(), 0);
  size_t step = 1, count = 1;
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t axis = to.size() - 1 - i;
    count *= static_cast<size_t>(to[axis]);
    const int64_t own = i < from.size() ? from[from.size() - 1 - i] : 1;
    if (own != 1 && own != to[axis]) return std::nullopt;
    if (own != 1) steps[axis] = step;
    step *= static_cast<size_t>(own);
  }
  std::vector<double> spread(count);
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i, place = 0;
    for (size_t axis = to.size(); axis-- > 0;) {
      const auto size = static_cast<size_t>(to[axis]);
      place += rest % size * steps[axis];
      rest /= size;
    }
    spread[i] = values[place];
  }
  return spread;
}

// The arguments of a call of one side in the order of its signature. Only `alpha` and `value`,
// which come last, may be given by name; nothing where another is.
std::optional<std::vector<const Item*>> ArgumentsOf(const Comparison& comparison,
                                                    const ComparedCall& call, bool of_target) {
  std::vector<const Item*> arguments;
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (!item || !measure::IsInput(*item)) continue;
    const std::string_view name = measure::ShortName(*item, measure::NameOn(call, of_target));
    if (!name.starts_with("input.") && !name.ends_with("alpha") && !name.ends_with("value")) {
      return std::nullopt;
    }
    arguments.push_back(&*item);
  }
  return arguments;
}

// What is known of how one side's call computes; a null function where nothing is.
template <class Function>
struct KnownCall {
  std::vector<const Item*> arguments;
  Function function = nullptr;
};

template <class Function>
KnownCall<Function> KnownCallOf(const Comparison& comparison, const ComparedRow& row,
                                bool of_target, Function (*find)(std::string_view, size_t)) {
  const ComparedCall& call = comparison.calls[row.call];
  auto arguments = ArgumentsOf(comparison, call, of_target);
  if (!arguments) return {};
  const Function function = find(measure::NameOn(call, of_target), arguments->size());
  return {std::move(*arguments), function};
}

// Reads the tensors of one side's calls, spread over the shape of a result: whole ones, or the
// first rows of them.
class Reader {
 public:
  Reader(const Comparison& comparison, bool of_target, const Shape& shape)
      : comparison_(comparison), of_target_(of_target), shape_(shape) {}

  // From now on only so many rows along the first dimension as a sample has elements; what is
  // spread over the result cannot be read any more.
  void TakeSample() {
    double row = 1;
    for (size_t i = 1; i < shape_.size(); ++i) row *= static_cast<double>(shape_[i]);
    if (shape_.empty() || row * static_cast<double>(shape_[0]) <= kSample) return;
    rows_ = std::max<int64_t>(1, static_cast<int64_t>(kSample / row));
  }

  [[nodiscard]] std::optional<std::vector<double>> ElementsOf(const Item& item) const {
    if (rows_ && item.shape != shape_) return std::nullopt;
    return RecordedElements(comparison_, item, of_target_, rows_);
  }

  [[nodiscard]] std::optional<std::vector<ElementOperand>> OperandsOf(
      std::span<const Item* const> arguments) const {
    std::vector<ElementOperand> operands;
    for (const Item* item : arguments) {
      std::optional<ElementOperand> operand = OperandOf(*item);
      if (!operand) return std::nullopt;
      operands.push_back(std::move(*operand));
    }
    return operands;
  }

 private:
  [[nodiscard]] std::optional<ElementOperand> OperandOf(const Item& item) const {
    ElementOperand operand;
    if (!item.is_tensor) {
      const std::optional<double> number = NumberOf(item.statistics[0]);
      if (!number) return std::nullopt;
      operand.number = *number;
      return operand;
    }
    std::optional<std::vector<double>> values = ElementsOf(item);
    if (values && !rows_) values = Spread(std::move(*values), item.shape, shape_);
    if (!values) return std::nullopt;
    operand.values = std::move(*values);
    return operand;
  }

  const Comparison& comparison_;
  const bool of_target_;
  const Shape& shape_;
  std::optional<int64_t> rows_;
};

double RoundedTo(DType dtype, double number) {
  if (const NarrowFormat* format = NarrowFormatOf(dtype)) {
    return NarrowToFloat(*format, FloatToNarrow(*format, static_cast<float>(number)));
  }
  return dtype == DType::kFloat32 ? static_cast<float>(number) : number;
}

// The widest type of the tensors among these arguments; nothing where none is of floating point.
std::optional<DType> ComputeTypeOf(std::span<const Item* const> arguments) {
  std::optional<DType> widest;
  for (const Item* item : arguments) {
    const auto dtype = item->is_tensor && item->dtype ? ParseDType(*item->dtype) : std::nullopt;
    if (!dtype || InfoOf(*dtype).kind != DTypeKind::kFloat) continue;
    if (!widest || UnitRoundoff(*dtype) < UnitRoundoff(*widest)) widest = dtype;
  }
  return widest;
}

// RoundingsOff() of a comparison. The numbers are rounded as the tensors are; beside narrow tensors
// some devices keep them in float32, so the whole result may be either.
std::optional<double> ComparisonOff(measure::ElementFunction function, DType dtype,
                                    std::span<const ElementOperand> operands,
                                    std::span<const double> result) {
  const bool is_narrow = UnitRoundoff(dtype) > UnitRoundoff(DType::kFloat32);
  std::optional<double> least;
  for (const DType type : std::array{dtype, is_narrow ? DType::kFloat32 : dtype}) {
    std::vector<ElementOperand> rounded(operands.begin(), operands.end());
    for (ElementOperand& each : rounded) {
      if (each.values.empty()) each.number = RoundedTo(type, each.number);
    }
    const auto off = measure::RoundingsOff(function, rounded, result, 0);
    if (off && (!least || *off < *least)) least = off;
    if (least == 0.0) break;
  }
  return least;
}

// How far one side's result is from what the call makes of that side's inputs, in roundings;
// nothing where that cannot be told.
std::optional<double> ElementsOff(const Comparison& comparison, const ComparedRow& row,
                                  bool of_target, bool of_sample) {
  const auto call = KnownCallOf(comparison, row, of_target, &measure::ElementFunctionOf);
  if (call.function == nullptr) return std::nullopt;
  const Item& item = *measure::SideOf(row, of_target);
  Reader reader(comparison, of_target, item.shape);
  if (of_sample) reader.TakeSample();
  const auto operands = reader.OperandsOf(call.arguments);
  const auto result = operands ? reader.ElementsOf(item) : std::nullopt;
  if (!result) return std::nullopt;
  const auto dtype = ComputeTypeOf(call.arguments);
  if (dtype && measure::IsComparison(call.function)) {
    return ComparisonOff(call.function, *dtype, *operands, *result);
  }
  return measure::RoundingsOff(call.function, *operands, *result, measure::RoundoffOf(item, item));
}

measure::RangeOperand NumberOperand(double number) {
  return {measure::RangeOfNumber(number), true};
}

// The same of the four statistics of the result, from those of the inputs.
std::optional<double> StatisticsOff(const Comparison& comparison, const ComparedRow& row,
                                    bool of_target) {
  const auto call = KnownCallOf(comparison, row, of_target, &measure::RangeFunctionOf);
  if (call.function == nullptr) return std::nullopt;
  const Item& result = *measure::SideOf(row, of_target);
  // Recorders keep mean and norm in the tensor's type, or in float32.
  double roundoff = std::max(measure::RoundoffOf(result, result), UnitRoundoff(DType::kFloat32));
  std::vector<measure::RangeOperand> operands;
  for (const Item* item : call.arguments) {
    if (item->is_tensor) {
      const auto range = measure::RangeOf(*item);
      if (!range) return std::nullopt;
      roundoff = std::max(roundoff, measure::RoundoffOf(*item, *item));
      operands.push_back({*range, measure::ElementsOf(*item) == 1});
    } else if (const auto number = NumberOf(item->statistics[0])) {
      operands.push_back(NumberOperand(*number));
    } else {
      return std::nullopt;
    }
  }
  const auto range = call.function(operands);
  return range ? measure::RoundingsOutside(*range, result, roundoff) : std::nullopt;
}

bool IsWrite(const ComparedCall& call) {
  return call.paired() && call.target_name.ends_with(".forward") &&
         measure::ApiOfCall(call.target_name) == "__setitem__";
}

// Whether the target does what its call does not, and golden does what it does. Where nothing is
// known of golden, nothing is of the call.
bool IsTargetAlone(const std::optional<double>& target, const std::optional<double>& golden) {
  return target && *target > measure::kNoiseFactor * measure::kCallRoundings && golden &&
         *golden <= measure::kCallRoundings;
}

}  // namespace

bool FollowsFromInputs(const Comparison& comparison, const ComparedRow& row) {
  if (!IsOfTensors(comparison, row)) return false;
  const std::optional<double> off = ElementsOff(comparison, row, true, false);
  return off && *off <= measure::kCallRoundings;
}

bool GoldenFollowsFromInputs(const Comparison& comparison, const ComparedRow& row) {
  if (!IsOfTensors(comparison, row) || !row.golden) return false;
  const std::optional<double> off = ElementsOff(comparison, row, false, false);
  return off && *off <= measure::kCallRoundings;
}

bool ContradictsInputs(const Comparison& comparison, const ComparedRow& row, bool of_sample) {
  if (!measure::HasTensors(row)) return false;
  const std::optional<double> statistics = StatisticsOff(comparison, row, true);
  if (statistics && *statistics > measure::kCallRoundings &&
      IsTargetAlone(statistics, StatisticsOff(comparison, row, false))) {
    return true;
  }
  // Narrow types lose small numbers altogether.
  const bool is_wide =
      measure::RoundoffOf(*row.target, *row.golden) <= UnitRoundoff(DType::kFloat32);
  if (!is_wide || !IsOfTensors(comparison, row)) return false;
  const std::optional<double> elements = ElementsOff(comparison, row, true, of_sample);
  return elements && *elements > measure::kCallRoundings &&
         IsTargetAlone(elements, ElementsOff(comparison, row, false, of_sample));
}

const ComparedCall* MaskedWriteBefore(const Comparison& comparison, const ComparedRow& row) {
  constexpr uint32_t kMostCalls = 16;  // between a write and what reads it
  constexpr size_t kArguments = 3;
  const uint32_t first = row.call > kMostCalls ? row.call - kMostCalls : 0;
  for (uint32_t i = row.call; i-- > first;) {
    const ComparedCall& call = comparison.calls[i];
    if (!IsWrite(call)) continue;
    const auto rows = measure::RowsOf(comparison, call);
    const bool fits = rows.size() >= kArguments && rows[0].target && rows[1].target &&
                      rows[0].target->is_tensor && rows[1].target->is_tensor &&
                      rows[0].target->shape == row.target->shape &&
                      rows[1].target->shape == row.target->shape;
    if (!fits) continue;
    const bool is_good = std::ranges::none_of(
        rows, [](const ComparedRow& each) { return measure::IsBad(each.verdict); });
    return is_good ? &call : nullptr;
  }
  return nullptr;
}

bool FollowsFromWrite(const Comparison& comparison, const ComparedCall& write,
                      const ComparedRow& row) {
  if (!IsOfTensors(comparison, row)) return false;
  const Reader reader(comparison, true, row.target->shape);
  const auto arguments = ArgumentsOf(comparison, write, true);
  const auto operands = arguments ? reader.OperandsOf(*arguments) : std::nullopt;
  const auto result = reader.ElementsOf(*row.target);
  constexpr size_t kArguments = 3;
  if (!operands || operands->size() != kArguments || !result) return false;
  // x[mask] = number: the number where the mask is true.
  const std::vector<ElementOperand> choice{(*operands)[1], (*operands)[2], (*operands)[0]};
  return measure::IsResultOf(measure::Select, choice, *result,
                             measure::RoundoffOf(*row.target, *row.target));
}

}  // namespace plumbline::pipeline
