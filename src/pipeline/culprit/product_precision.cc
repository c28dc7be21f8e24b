#include "pipeline/culprit/product_precision.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/parallel.h"
#include "measure/compared_row.h"
#include "measure/standards.h"

namespace plumbline::pipeline {
namespace {

using measure::Difference;

constexpr double kFloat = 0x1p-24;
// Input errors this much below the error of the result do not explain it.
constexpr double kFarBelow = 8;
// Share of products that may be exact in a lower precision too: those of small integers or zeros.
constexpr double kExactShare = 0.25;
// Calls that are measured before any counts, and how many of them by one thread in one go.
constexpr size_t kBlock = 65'536, kShare = 2048;

struct Errors {
  double in = 0, out = 0, own = 0;
  bool is_spread = true;
};

// The largest element error of rounding is a few times the mean one; a fault in one place is not
// spread.
bool IsSpread(const ComparedRow& row, double error) {
  const double* max_abs = std::get_if<double>(&row.tensor->max_abs_error);
  const auto* norm = std::get_if<double>(&row.golden->statistics[3]);
  if (max_abs == nullptr || norm == nullptr || row.tensor->element_count == 0) return true;
  const auto count = static_cast<double>(row.tensor->element_count);
  constexpr double kTail = 16;
  return *max_abs <= kTail * error * *norm / std::sqrt(count);
}

bool IsFloat32(const Item& item) {
  return item.is_tensor && item.dtype && ParseDType(*item.dtype) == DType::kFloat32;
}

// Nothing where the call says nothing about the precision of products.
std::optional<Errors> ErrorsOf(const Comparison& comparison, const ComparedCall& call,
                               const measure::PairContext& context) {
  if (!call.paired() || !call.target_name.ends_with(".forward") ||
      measure::ClassOfCall(call.target_name) != measure::CallClass::kProduct) {
    return std::nullopt;
  }
  Errors errors;
  measure::InputSizes inputs;
  double output = 0;
  for (uint32_t k = 0; k < call.row_count; ++k) {
    const ComparedRow& row = comparison.rows[call.first_row + k];
    if (!IsFloat32(*row.target) || !IsFloat32(*row.golden)) continue;
    const bool real = comparison.mode == CompareMode::kTensor;
    const Difference difference =
        measure::DifferenceOf(*row.target, *row.golden, context, real ? &*row.tensor : nullptr);
    const bool is_numeric =
        difference.kind == Difference::Kind::kNumeric && std::isfinite(difference.error);
    if (!is_numeric && difference.verdict == Verdict::kBroken) return std::nullopt;
    const double error = is_numeric ? difference.error : 0;
    const double elements = measure::ElementsOf(*row.golden);
    if (row.target->role == ItemRole::kOutput) {
      errors.out = std::max(errors.out, error);
      errors.is_spread = errors.is_spread && IsSpread(row, error);
      output = elements;
    } else {
      errors.in = std::max(errors.in, error);
      inputs.Add(elements);
    }
  }
  if (output == 0) return std::nullopt;
  errors.own =
      measure::OwnError(measure::CallClass::kProduct, kFloat, inputs.ReductionLengthTo(output));
  return errors;
}

// What the products of one kind show.
struct Evidence {
  double level = 0;  // largest error
  size_t exact = 0, rounded = 0;
  bool is_spread = true;

  void Add(const Errors& errors) {
    if (errors.in > std::max(measure::kNoiseFactor * kFloat, level / kFarBelow)) return;
    if (errors.out <= measure::kNoiseFactor * errors.own) {
      ++exact;
      return;
    }
    is_spread = is_spread && errors.is_spread;
    ++rounded;
    level = std::max(level, errors.out);
  }

  // `hidden`: how much of an error may stay unseen.
  [[nodiscard]] double Roundoff(double hidden) const {
    if (rounded == 0 || !is_spread) return 0;
    const auto share = static_cast<double>(exact) / static_cast<double>(exact + rounded);
    if (share > kExactShare) return 0;
    for (const double roundoff : {0x1p-11, 0x1p-8}) {
      if (level * hidden <= 2 * roundoff) return roundoff;
    }
    return 0;
  }

  // One inexact product proves no precision where those of the other kind are exact.
  [[nodiscard]] bool IsAloneBeside(const Evidence& other) const {
    return rounded == 1 && other.exact > other.rounded;
  }
};

}  // namespace

ProductRoundoffs FindProductRoundoffs(const Comparison& comparison,
                                      const measure::PairContext& context) {
  if (comparison.mode == CompareMode::kDigest || comparison.of_saves) return {};
  Evidence matrix, convolution;
  const auto& calls = comparison.calls;
  std::vector<std::optional<Errors>> errors(std::min(kBlock, calls.size()));
  for (size_t first = 0; first < calls.size(); first += kBlock) {
    const size_t count = std::min(kBlock, calls.size() - first);
    ParallelBlocks(count, kShare, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        errors[i] = ErrorsOf(comparison, calls[first + i], context);
      }
    });
    for (size_t i = 0; i < count; ++i) {
      if (!errors[i]) continue;
      const bool is_convolution = measure::IsConvolution(calls[first + i].target_name);
      (is_convolution ? convolution : matrix).Add(*errors[i]);
    }
  }
  // Statistics show a part of the error only.
  const double hidden = comparison.mode == CompareMode::kTensor ? 1 : 4;
  ProductRoundoffs found{matrix.Roundoff(hidden), convolution.Roundoff(hidden)};
  if (matrix.IsAloneBeside(convolution)) found.matrix = 0;
  if (convolution.IsAloneBeside(matrix)) found.convolution = 0;
  return found;
}

double ProductRoundoffs::Of(std::string_view call_name) const {
  if (measure::IsConvolution(call_name)) return convolution;
  const bool is_product = measure::ClassOfCall(call_name) == measure::CallClass::kProduct;
  return is_product ? matrix : largest();
}

}  // namespace plumbline::pipeline
