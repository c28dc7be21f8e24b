#include "pipeline/culprit/recomputed_norm.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/compared_row.h"
#include "measure/normalised.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "pipeline/culprit/call_arguments.h"
#include "pipeline/culprit/recorded_elements.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
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
bool Read(const Comparison& comparison, const Item* item, std::vector<double>& values) {
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
  if (!Read(comparison, x, operands.x) ||
      !Read(comparison, arguments.At(signature->weight, "weight"), operands.w) ||
      !Read(comparison, arguments.At(signature->bias, "bias"), operands.b)) {
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

}  // namespace plumbline::pipeline
