#include "pipeline/culprit/without_inputs.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "measure/array_verdict.h"
#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/recorded_elements.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

constexpr double kRoundings = 64;  // of others, that a gradient of nothing but rounding has
constexpr double kLeft = 0.05;     // of a difference that is the same along an axis
constexpr double kFewestElements = 2;

CallKind KindOf(const Comparison& comparison, const ComparedRow& row) {
  return KindOfCall(comparison.calls[row.call].name());
}

// Parameters of modules are recorded in any case.
bool HasInputs(const Comparison& comparison) {
  return std::ranges::any_of(comparison.rows, [&](const ComparedRow& row) {
    return (row.target || row.golden) && row.item().role == ItemRole::kInput;
  });
}

bool IsWrongNumber(const Comparison& comparison, const ComparedRow& row) {
  return measure::HasTensors(row) && comparison.calls[row.call].paired() &&
         measure::IsBad(row.verdict) && std::isfinite(row.error);
}

// Whether the gradient is no larger than what rounding leaves of the largest beside it: of one
// module, or returned by one call.
bool MayBeResidue(const Comparison& comparison, const ComparedRow& row) {
  if (measure::IsMultiple(*row.target, *row.golden)) return false;
  double largest = 0;
  for (const ComparedRow& each : measure::RowsOf(comparison, comparison.calls[row.call])) {
    if (!measure::HasTensors(each) || measure::IsInput(each)) continue;
    largest = std::max(largest, measure::RmsOf(*each.golden).value_or(0));
  }
  const double roundoff = measure::RoundoffOf(*row.target, *row.golden);
  const double most = std::min(kRoundings * roundoff, std::sqrt(roundoff)) * largest;
  const std::optional<double> target = measure::RmsOf(*row.target);
  const std::optional<double> golden = measure::RmsOf(*row.golden);
  return target && golden && std::max(*target, *golden) <= most;
}

// Whether the differences do not change along one of the axes.
bool IsAddedAlongAnAxis(const std::vector<double>& differences, const Shape& shape,
                        double rounding) {
  double square = 0;
  for (const double each : differences) square += each * each;
  size_t inner = differences.size();
  for (const int64_t extent : shape) {
    const auto length = static_cast<size_t>(extent);
    inner /= std::max<size_t>(length, 1);
    if (length < 2) continue;
    double left = 0;
    for (size_t i = 0; i < differences.size(); ++i) {
      const size_t first = i - i / inner % length * inner;
      const double apart = differences[i] - differences[first];
      left += apart * apart;
    }
    const double noise = rounding * rounding * static_cast<double>(differences.size());
    if (left <= std::max(kLeft * kLeft * square, noise)) return true;
  }
  return false;
}

bool IsAdded(const Comparison& comparison, const ComparedRow& row) {
  if (comparison.mode != CompareMode::kTensor) return true;  // not told
  const auto target = RecordedElements(comparison, *row.target, true);
  auto golden = RecordedElements(comparison, *row.golden, false);
  if (!target || !golden || target->size() != golden->size()) return false;
  for (size_t i = 0; i < golden->size(); ++i) (*golden)[i] = (*target)[i] - (*golden)[i];
  const double size = measure::RmsOf(*row.golden).value_or(0);
  const double roundoff = measure::RoundoffOf(*row.target, *row.golden);
  return IsAddedAlongAnAxis(*golden, row.golden->shape, kRoundings * roundoff * size);
}

// Whether the call loses what is the same for all that it compares, functions and modules.
bool LosesWhatIsAdded(std::string_view name) {
  const measure::Amplifier amplifier = measure::AmplifierOfCall(name);
  if (amplifier == measure::Amplifier::kSoftmax ||
      amplifier == measure::Amplifier::kNormalisation) {
    return true;
  }
  const std::string_view whole = name.substr(0, name.rfind(".forward"));
  const std::string_view type = whole.substr(whole.rfind('.') + 1);
  return SeriesOf(std::string(name)).empty() &&
         (type.find("Norm") != type.npos || type.find("Softmax") != type.npos);
}

bool ReturnsWrong(const Comparison& comparison, const ComparedCall& call) {
  return std::ranges::any_of(measure::RowsOf(comparison, call),
                             [](const ComparedRow& row) { return measure::IsBad(row.verdict); });
}

// For each call behind the first step, whether the next one that loses what is added agrees.
std::vector<bool> MeetNext(const Comparison& comparison) {
  std::vector<bool> meet(comparison.calls.size());
  bool next = false;
  for (size_t i = comparison.calls.size(); i-- > comparison.earlier.front().calls_end;) {
    const ComparedCall& call = comparison.calls[i];
    meet[i] = next;
    const bool is_forward = call.paired() && KindOfCall(call.name()) == CallKind::kForward;
    if (is_forward && LosesWhatIsAdded(call.target_name)) next = !ReturnsWrong(comparison, call);
  }
  return meet;
}

}  // namespace

std::vector<uint32_t> ResultsWithoutProof(const Comparison& comparison) {
  if (comparison.of_saves || HasInputs(comparison)) return {};
  std::vector<bool> meet(comparison.calls.size());
  if (!comparison.earlier.empty()) meet = MeetNext(comparison);
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
    const ComparedRow& row = comparison.rows[i];
    if (!IsWrongNumber(comparison, row)) continue;
    const CallKind kind = KindOf(comparison, row);
    const bool is_gradient =
        kind != CallKind::kForward && !measure::IsInput(row) && MayBeResidue(comparison, row);
    const bool is_result = kind == CallKind::kForward && !measure::IsInput(row) && meet[row.call] &&
                           measure::ElementsOf(*row.golden) >= kFewestElements &&
                           IsAdded(comparison, row);
    if (is_gradient || is_result) found.push_back(i);
  }
  return found;
}

}  // namespace plumbline::pipeline
