#include "verdict/recomputed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measure/compared_row.h"
#include "measure/elementwise.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "tensor/half.h"
#include "verdict/call_rows.h"
#include "verdict/contents.h"

namespace plumbline::verdict {

namespace {

using measure::ElementOperand;

constexpr double kSample = 1 << 14;  // elements of a part of one

bool IsOfTensors(const Comparison& comparison, const ComparedRow& row) {
  return comparison.mode == CompareMode::kTensor && row.target && row.target->is_tensor;
}

// `values` of shape `from`, repeated as PyTorch and NumPy broadcast them to `to`.
std::optional<std::vector<double>> SpreadTo(std::vector<double> values, const Shape& from,
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
    if (values && !rows_) values = SpreadTo(std::move(*values), item.shape, shape_);
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
  constexpr uint32_t kMostCallsBetween = 16;  // between a write and what reads it
  constexpr size_t kArguments = 3;
  const uint32_t first = row.call > kMostCallsBetween ? row.call - kMostCallsBetween : 0;
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

namespace {

// What the target gives to a call.
struct Arguments {
  std::span<const ComparedRow> rows;
  std::string_view call_name;

  // By place or keyword; null where it is left out or is none.
  [[nodiscard]] const Item* At(size_t place, std::string_view keyword) const {
    return ArgumentOf(rows, call_name, true, place, keyword);
  }
};

// The product of the numbers in the tuple at a place, or of a keyword.
double ProductAt(const Arguments& arguments, size_t place, std::string_view keyword) {
  const std::string positional = "input." + std::to_string(place) + ".";
  const std::string named = "." + std::string(keyword) + ".";
  double product = 1;
  for (const ComparedRow& row : arguments.rows) {
    if (!row.target || !measure::IsInput(row)) continue;
    const std::string_view own = measure::ShortName(*row.target, arguments.call_name);
    if (!own.starts_with(positional) && own.find(named) == own.npos) continue;
    product *= NumberOf(row.target->statistics[0]).value_or(0);
  }
  return product;
}

// Where a function has its arguments.
struct Signature {
  std::string_view api;
  size_t weight, bias, epsilon;
};
constexpr Signature kSignatures[] = {{"batch_norm", 3, 4, 7},
                                     {"group_norm", 2, 3, 4},
                                     {"instance_norm", 3, 4, 7},
                                     {"layer_norm", 2, 3, 4}};

const Signature* SignatureOf(std::string_view call_name) {
  // torch.batch_norm has another order of arguments.
  if (call_name.find("Functional.") == call_name.npos) return nullptr;
  const auto* found =
      std::ranges::find(kSignatures, measure::ApiOfCall(call_name), &Signature::api);
  return found == std::end(kSignatures) ? nullptr : found;
}

struct Operands {
  std::vector<double> x, w, b;
  measure::Normalisation call;
};

// The groups that the function takes; false where it takes none of what it reads.
bool SetGroups(const Signature& signature, const Arguments& arguments, const Shape& shape,
               measure::Normalisation& call) {
  if (signature.api == "layer_norm") {
    call.channels = static_cast<size_t>(ProductAt(arguments, 1, "normalized_shape"));
    call.block = call.channels;
    return call.channels > 1;
  }
  if (shape.size() < 2) return false;
  call.channels = static_cast<size_t>(shape[1]);
  for (size_t axis = 2; axis < shape.size(); ++axis) {
    call.places *= static_cast<size_t>(shape[axis]);
  }
  const bool is_own = TakesOwnStatistics(arguments.rows, arguments.call_name, true);
  if (signature.api == "batch_norm") return is_own;
  size_t groups = call.channels;
  if (signature.api == "group_norm") {
    const Item* number = arguments.At(1, "num_groups");
    groups =
        number == nullptr ? 0 : static_cast<size_t>(NumberOf(number->statistics[0]).value_or(0));
  } else if (!is_own) {
    return false;
  }
  if (groups == 0 || call.channels % groups != 0) return false;
  call.block = call.channels / groups * call.places;
  return call.block > 0;
}

// The elements of a tensor, none for none; false where they cannot be read.
bool ReadItem(const Comparison& comparison, const Item* item, std::vector<double>& values) {
  if (item == nullptr || !item->is_tensor) return true;
  auto read = RecordedElements(comparison, *item, true);
  if (!read) return false;
  values = std::move(*read);
  return true;
}

bool ReadOperands(const Comparison& comparison, const ComparedCall& forward, Operands& operands) {
  const Signature* signature = SignatureOf(forward.target_name);
  if (signature == nullptr) return false;
  const Arguments arguments{measure::RowsOf(comparison, forward), forward.target_name};
  const Item* x = arguments.At(0, "input");
  if (x == nullptr || !x->is_tensor) return false;
  if (!SetGroups(*signature, arguments, x->shape, operands.call)) return false;
  const Item* epsilon = arguments.At(signature->epsilon, "eps");
  constexpr double kUsualEpsilon = 1e-5;
  operands.call.epsilon =
      epsilon == nullptr ? kUsualEpsilon : NumberOf(epsilon->statistics[0]).value_or(-1);
  if (!(operands.call.epsilon >= 0)) return false;
  if (!ReadItem(comparison, x, operands.x) ||
      !ReadItem(comparison, arguments.At(signature->weight, "weight"), operands.w) ||
      !ReadItem(comparison, arguments.At(signature->bias, "bias"), operands.b)) {
    return false;
  }
  operands.call.x = operands.x;
  operands.call.w = operands.w;
  operands.call.b = operands.b;
  return true;
}

// What the target's backward call got.
const Item* IncomingOf(const Comparison& comparison, const ComparedCall& call) {
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    if (row.target && row.target->is_tensor && measure::IsInput(*row.target)) return &*row.target;
  }
  return nullptr;
}

}  // namespace

bool FollowsFromNormalised(const Comparison& comparison, const ComparedRow& row,
                           std::optional<uint32_t> forward) {
  if (comparison.mode != CompareMode::kTensor || !row.target || !row.target->is_tensor) {
    return false;
  }
  const ComparedCall& call = comparison.calls[row.call];
  const bool is_forward = KindOfCall(call.target_name) == CallKind::kForward;
  if (!is_forward && !forward) return false;
  const ComparedCall& computed = is_forward ? call : comparison.calls[*forward];
  // Golden may have been given another epsilon than the target's default, or the reverse.
  if (computed.paired() && !computed.unmatched_detail.empty()) return false;
  Operands operands;
  if (!ReadOperands(comparison, computed, operands)) return false;
  const auto result = RecordedElements(comparison, *row.target, true);
  if (!result) return false;
  const double roundoff = measure::RoundoffOf(*row.target, *row.target);
  if (is_forward) return measure::IsNormalised(operands.call, *result, roundoff);
  const Item* gradient = IncomingOf(comparison, call);
  const auto incoming =
      gradient == nullptr ? std::nullopt : RecordedElements(comparison, *gradient, true);
  return incoming && measure::IsGradientOfNormalised(operands.call, *incoming, *result, roundoff);
}

namespace {

constexpr size_t kMeanPlace = 1;  // of the running mean, in torch.nn.functional

// What a call in training reads, of which it makes the next running mean.
struct BufferUpdate {
  const ComparedRow* x = nullptr;
  const ComparedRow* mean = nullptr;
  double momentum = 0;
  bool is_training = false;
};

BufferUpdate UpdateOf(const Comparison& comparison, const ComparedCall& call) {
  BufferUpdate update;
  const auto rows = measure::RowsOf(comparison, call);
  const std::string_view name = call.target_name;
  for (const ComparedRow& row : rows) {
    if (!row.target || !row.golden) continue;
    if (IsArgument(row, name, 0, "input")) update.x = &row;
    if (IsArgument(row, name, kMeanPlace, "running_mean")) update.mean = &row;
  }
  update.is_training = TakesOwnStatistics(rows, name, false);
  const Item* momentum = ArgumentOf(rows, name, false, 6, "momentum");
  if (momentum != nullptr) update.momentum = NumberOf(momentum->statistics[0]).value_or(0);
  return update;
}

bool HasGoodTensors(const ComparedRow* row) {
  return row != nullptr && measure::HasTensors(*row) && !measure::IsBad(row->verdict);
}

double SizeOf(const Item& item) { return measure::RmsOf(item).value_or(0); }
double ErrorOf(const ComparedRow& row) { return std::isfinite(row.error) ? row.error : 0; }

// Whether `item` has the mean that the update makes on that side: the mean of all elements is that
// of the channels' means.
bool IsMadeBy(const BufferUpdate& update, const Item& item, bool of_target) {
  const Item& x = *measure::SideOf(*update.x, of_target);
  const Item& old = *measure::SideOf(*update.mean, of_target);
  const double kept = 1 - update.momentum;
  const double mean = kept * measure::MeanOf(old) + update.momentum * measure::MeanOf(x);
  const double size = SizeOf(item) + kept * SizeOf(old) + update.momentum * SizeOf(x);
  const double most = measure::kNoiseFactor * measure::RoundoffOf(item, item) * size;
  return std::abs(measure::MeanOf(item) - mean) <= most;  // false for NaN
}

}  // namespace

std::optional<double> ExplainedAsRunningMean(const Comparison& comparison, const ComparedRow& row) {
  const ComparedCall& own = comparison.calls[row.call];
  const std::string_view api = measure::ApiOfCall(own.target_name);
  const bool is_known = api == "batch_norm" || api == "instance_norm";
  if (!is_known ||
      std::string_view(own.target_name).find("Functional.") == std::string_view::npos ||
      !row.golden->is_tensor || !IsArgument(row, own.target_name, kMeanPlace, "running_mean")) {
    return std::nullopt;
  }
  const double size = SizeOf(*row.golden);
  for (uint32_t i = row.call; size > 0 && i-- > 0;) {
    const ComparedCall& call = comparison.calls[i];
    if (!call.paired() || KindOfCall(call.target_name) != CallKind::kForward ||
        measure::ApiOfCall(call.target_name) != api) {
      continue;
    }
    const BufferUpdate update = UpdateOf(comparison, call);
    if (!update.is_training || !HasGoodTensors(update.x) || !HasGoodTensors(update.mean) ||
        update.mean->golden->shape != row.golden->shape || !(update.momentum > 0) ||
        !IsMadeBy(update, *row.target, true) || !IsMadeBy(update, *row.golden, false)) {
      continue;
    }
    const double kept = 1 - update.momentum;
    return (kept * ErrorOf(*update.mean) * SizeOf(*update.mean->golden) +
            update.momentum * ErrorOf(*update.x) * SizeOf(*update.x->golden)) /
           size;
  }
  return std::nullopt;
}

}  // namespace plumbline::verdict
