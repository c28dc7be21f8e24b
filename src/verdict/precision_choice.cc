#include "verdict/precision_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/parallel.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "plumbline/tensor.h"
#include "verdict/meeting_points.h"

namespace plumbline::verdict {

namespace {

// Above this share of values in a narrower type the target's types are a choice.
constexpr double kNarrowedByChoice = 0.2;
// A stray cast ends at the next product, whose weight has another type.
constexpr double kOtherByChoice = 0.5;
constexpr size_t kBlock = 8192;  // of rows that one thread looks at in one go

double ShareNarrowed(const Comparison& comparison) {
  std::atomic<uint64_t> all{0}, narrowed{0};
  ParallelBlocks(comparison.rows.size(), kBlock, [&](size_t begin, size_t end) {
    uint64_t floating = 0, narrower = 0;
    for (size_t i = begin; i < end; ++i) {
      const ComparedRow& row = comparison.rows[i];
      if (!row.target || !row.golden) continue;
      const double golden = measure::RoundoffOf(*row.golden, *row.golden);
      if (golden == 0) continue;
      ++floating;
      if (row.target->dtype == row.golden->dtype && row.target->is_tensor) continue;
      if (measure::RoundoffOf(*row.target, *row.target) > golden) ++narrower;
    }
    all += floating;
    narrowed += narrower;
  });
  return all > 0 ? static_cast<double>(narrowed) / static_cast<double>(all) : 0;
}

bool IsFloating(const ComparedRow& row) {
  return row.golden && measure::RoundoffOf(*row.golden, *row.golden) > 0;
}

bool IsOfOtherType(const ComparedCall& call) {
  return !call.paired() && !call.target_name.empty() && call.unmatched_reason == "dtype-differs";
}

double ShareOfOtherTypes(const Comparison& comparison) {
  const auto other = static_cast<double>(
      std::count_if(comparison.calls.begin(), comparison.calls.end(), IsOfOtherType));
  if (other == 0) return 0;
  double paired = 0;
  for (const ComparedCall& call : comparison.calls) {
    if (!call.paired()) continue;
    const auto rows = measure::RowsOf(comparison, call);
    paired += std::any_of(rows.begin(), rows.end(), IsFloating) ? 1 : 0;
  }
  return other / (other + paired);
}

double RoundoffNamedBy(const Item& item) {
  const auto* name = item.is_tensor ? nullptr : item.statistics.As<Text>(0);
  const std::optional<DType> type =
      name == nullptr ? std::nullopt : ParseDType(std::string_view(*name));
  return type ? UnitRoundoff(*type) : 0;
}

bool IsNarrowerTensor(const ComparedRow& row) {
  return measure::HasTensors(row) && IsFloating(row) &&
         measure::RoundoffOf(*row.target, *row.target) >
             measure::RoundoffOf(*row.golden, *row.golden);
}

bool Computes(const ComparedCall& call) {
  const measure::CallClass known = measure::ClassOfCall(call.target_name);
  return known != measure::CallClass::kCopy && known != measure::CallClass::kUninitialised;
}

std::optional<uint32_t> StartOf(const Comparison& comparison) {
  const auto first = std::ranges::find_if(comparison.rows, IsNarrowerTensor);
  if (first == comparison.rows.end() || measure::IsInput(*first)) return std::nullopt;
  const ComparedCall& call = comparison.calls[first->call];
  const auto rows = measure::RowsOf(comparison, call);
  const bool reads = std::ranges::any_of(rows, [](const ComparedRow& row) {
    return measure::IsInput(row) && measure::HasTensors(row) && IsFloating(row);
  });
  return reads && call.paired() && Computes(call) ? std::optional(first->call) : std::nullopt;
}

}  // namespace

TypeChoice TypeChoiceOf(const Comparison& comparison) {
  TypeChoice choice{.is_narrower = ShareNarrowed(comparison) > kNarrowedByChoice,
                    .is_other = ShareOfOtherTypes(comparison) > kOtherByChoice,
                    .starts_at = {}};
  if (choice.is_narrower) choice.starts_at = StartOf(comparison);
  return choice;
}

void NoteNarrowed(Comparison& comparison) {
  const auto first = std::ranges::find_if(comparison.rows, IsNarrowerTensor);
  const bool is_of_calls = !comparison.of_saves && !comparison.of_graphs();
  if (first == comparison.rows.end() || !is_of_calls) return;
  if (!(ShareNarrowed(comparison) > kNarrowedByChoice)) return;
  const auto count = std::ranges::count_if(comparison.calls, [&](const ComparedCall& call) {
    return std::ranges::any_of(measure::RowsOf(comparison, call), IsNarrowerTensor);
  });
  const std::string_view dtype = first->target->dtype->view();
  first->AddNote({std::string(verdict::kNarrowed),
                  fmt::format("{} from {} on ({} call{})", dtype.substr(dtype.rfind('.') + 1),
                              comparison.calls[first->call].name(), count, count == 1 ? "" : "s")});
}

bool IsNarrowerType(const Item& target, const Item& golden) {
  const double roundoff = RoundoffNamedBy(golden);
  return roundoff > 0 && RoundoffNamedBy(target) > roundoff;
}

namespace {

using measure::Difference;

constexpr double kFloat = 0x1p-24;
// Input errors this much below the error of the result do not explain it.
constexpr double kFarBelow = 8;
// Share of products that may be exact in a lower precision too: those of small integers or zeros.
constexpr double kExactShare = 0.25;
// Calls that are measured before any counts, and how many of them by one thread in one go.
constexpr size_t kRowsOfBlock = 65'536, kShare = 2048;

struct Errors {
  double in = 0, out = 0, own = 0;
  bool is_spread = true;
};

// The largest element error of rounding is a few times the mean one; a fault in one place is not
// spread.
bool IsSpread(const ComparedRow& row, double error) {
  const double* max_abs = std::get_if<double>(&row.tensor->max_abs_error);
  const auto* norm = row.golden->statistics.As<double>(3);
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
struct RoundingEvidence {
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
  [[nodiscard]] bool IsAloneBeside(const RoundingEvidence& other) const {
    return rounded == 1 && other.exact > other.rounded;
  }
};

}  // namespace

ProductRoundoffs FindProductRoundoffs(const Comparison& comparison,
                                      const measure::PairContext& context) {
  if (comparison.mode == CompareMode::kDigest || comparison.of_saves) return {};
  RoundingEvidence matrix, convolution;
  const auto& calls = comparison.calls;
  std::vector<std::optional<Errors>> errors(std::min(kRowsOfBlock, calls.size()));
  for (size_t first = 0; first < calls.size(); first += kRowsOfBlock) {
    const size_t count = std::min(kRowsOfBlock, calls.size() - first);
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

}  // namespace plumbline::verdict
