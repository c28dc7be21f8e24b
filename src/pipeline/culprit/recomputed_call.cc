#include "pipeline/culprit/recomputed_call.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "load/recorded_tensor.h"
#include "measure/cause_values.h"
#include "measure/compared_row.h"
#include "measure/elementwise.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"
#include "record/run_files.h"

namespace plumbline::pipeline {
namespace {

using measure::ElementOperand;

constexpr double kMostElements = 1 << 20;  // of one tensor

std::optional<std::vector<double>> ElementsOf(const Comparison& comparison, const Item& item) {
  if (item.data_name.empty() || measure::ElementsOf(item) > kMostElements) return std::nullopt;
  const auto file = load::OpenTensorIn(
      JoinPath(DirectoryOf(comparison.target_path), run_files::kTensorDirectory), item.data_name);
  if (!file) return std::nullopt;
  Result<std::vector<double>> values = measure::DoublesOf(file->view());
  if (!values || static_cast<double>(values->size()) != measure::ElementsOf(item)) {
    return std::nullopt;
  }
  return std::move(*values);
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

std::optional<ElementOperand> OperandOf(const Comparison& comparison, const Item& item,
                                        const Shape& shape) {
  ElementOperand operand;
  if (!item.is_tensor) {
    const std::optional<double> number = NumberOf(item.statistics[0]);
    if (!number) return std::nullopt;
    operand.number = *number;
    return operand;
  }
  std::optional<std::vector<double>> values = ElementsOf(comparison, item);
  if (values) values = Spread(std::move(*values), item.shape, shape);
  if (!values) return std::nullopt;
  operand.values = std::move(*values);
  return operand;
}

// The arguments of a call of the target in the order of its signature, spread over `shape`. Only
// `alpha` and `value`, which come last, may be given by name.
std::optional<std::vector<ElementOperand>> OperandsOf(const Comparison& comparison,
                                                      const ComparedCall& call,
                                                      const Shape& shape) {
  std::vector<ElementOperand> operands;
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    if (!row.target || !measure::IsInput(*row.target)) continue;
    const std::string_view name = measure::ShortName(*row.target, call.target_name);
    if (!name.starts_with("input.") && !name.ends_with("alpha") && !name.ends_with("value")) {
      return std::nullopt;
    }
    std::optional<ElementOperand> operand = OperandOf(comparison, *row.target, shape);
    if (!operand) return std::nullopt;
    operands.push_back(std::move(*operand));
  }
  return operands;
}

bool IsWrite(const ComparedCall& call) {
  return call.paired() && call.target_name.ends_with(".forward") &&
         measure::ApiOfCall(call.target_name) == "__setitem__";
}

}  // namespace

bool FollowsFromInputs(const Comparison& comparison, const ComparedRow& row) {
  if (comparison.mode != CompareMode::kTensor || !row.target || !row.target->is_tensor) {
    return false;
  }
  const ComparedCall& call = comparison.calls[row.call];
  const auto rows = measure::RowsOf(comparison, call);
  const auto arguments = static_cast<size_t>(std::ranges::count_if(
      rows, [](const ComparedRow& each) { return each.target && measure::IsInput(*each.target); }));
  const measure::ElementFunction function = measure::ElementFunctionOf(call.target_name, arguments);
  if (function == nullptr) return false;
  const auto operands = OperandsOf(comparison, call, row.target->shape);
  const auto result = ElementsOf(comparison, *row.target);
  return operands && result &&
         measure::IsResultOf(function, *operands, *result,
                             measure::RoundoffOf(*row.target, *row.target));
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
  if (comparison.mode != CompareMode::kTensor) return false;
  auto operands = OperandsOf(comparison, write, row.target->shape);
  const auto result = ElementsOf(comparison, *row.target);
  constexpr size_t kArguments = 3;
  if (!operands || operands->size() != kArguments || !result) return false;
  // x[mask] = number: the number where the mask is true.
  const std::vector<ElementOperand> choice{(*operands)[1], (*operands)[2], (*operands)[0]};
  return measure::IsResultOf(measure::Select, choice, *result,
                             measure::RoundoffOf(*row.target, *row.target));
}

}  // namespace plumbline::pipeline
