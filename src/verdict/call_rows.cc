#include "verdict/call_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "record/value.h"
#include "verdict/rightly_different.h"

namespace plumbline::verdict {

namespace {

// Whether `part` is all of `name`, or what stands behind one of its dots.
bool EndsInPart(std::string_view name, std::string_view part) {
  if (!name.ends_with(part)) return false;
  name.remove_suffix(part.size());
  return name.empty() || name.back() == '.';
}

}  // namespace

bool IsArgument(const ComparedRow& row, std::string_view call_name, size_t place,
                std::string_view keyword) {
  if (!measure::IsInput(row)) return false;
  const std::string_view own = measure::ShortName(row.item(), call_name);
  return EndsInPart(own, "input." + std::to_string(place)) || EndsInPart(own, keyword);
}

const Item* ArgumentOf(std::span<const ComparedRow> rows, std::string_view call_name,
                       bool of_target, size_t place, std::string_view keyword) {
  for (const ComparedRow& row : rows) {
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (item && IsArgument(row, call_name, place, keyword)) return &*item;
  }
  return nullptr;
}

bool TakesOwnStatistics(std::span<const ComparedRow> rows, std::string_view call_name,
                        bool of_target) {
  constexpr size_t kPlace = 5;
  const Item* item = ArgumentOf(rows, call_name, of_target, kPlace, "training");
  if (item == nullptr) item = ArgumentOf(rows, call_name, of_target, kPlace, "use_input_stats");
  const bool* flag = item == nullptr ? nullptr : item->statistics.As<bool>(0);
  return flag == nullptr ? measure::ApiOfCall(call_name) == "instance_norm" : *flag;
}

namespace {

using measure::Difference;

Verdict VerdictOf(const Difference& difference, double expected) {
  switch (difference.kind) {
    case Difference::Kind::kEqual:
      return Verdict::kSame;
    case Difference::Kind::kArgument:
    case Difference::Kind::kDecided:
      return difference.verdict;
    case Difference::Kind::kNumeric:
      break;
  }
  if (std::isnan(difference.error)) return difference.verdict;  // digests: size unknown
  if (difference.error == 0) return Verdict::kWithinNoise;      // equal values of other bits
  const Verdict verdict = measure::VerdictOfRatio(difference.error, expected);
  // Unequal digests are never noise: whoever records them asks for equal bits.
  return !difference.reason.empty() && !measure::IsBad(verdict) ? difference.verdict : verdict;
}

// Of batch_norm and instance_norm, by what golden gives them.
bool UpdatesRunningStatistics(std::string_view name, std::span<const ComparedRow> rows) {
  if (name.find("batch_norm.") == name.npos && name.find("instance_norm.") == name.npos) {
    return false;
  }
  const size_t place = name.starts_with("Functional.") ? 1 : 3;
  const Item* mean = ArgumentOf(rows, name, false, place, "running_mean");
  return mean != nullptr && mean->is_tensor && TakesOwnStatistics(rows, name, false);
}

}  // namespace

bool ReadsWrongTensor(std::span<const ComparedRow> rows) {
  return std::any_of(rows.begin(), rows.end(), [](const ComparedRow& row) {
    return measure::IsInput(row) && row.item().is_tensor && measure::IsBad(row.verdict);
  });
}

bool MayActUnseen(const ComparedRow& argument, std::string_view name,
                  std::span<const ComparedRow> rows) {
  const bool returns = std::any_of(rows.begin(), rows.end(), [](const ComparedRow& row) {
    return !measure::IsInput(row) && row.item().dtype;
  });
  if (!returns) return true;
  return IsArgument(argument, name, 6, "momentum") && UpdatesRunningStatistics(name, rows);
}

bool IsRunningStatistic(const ComparedRow& row, std::string_view name,
                        std::span<const ComparedRow> rows) {
  if (!measure::IsInput(row) || !row.item().is_tensor || !UpdatesRunningStatistics(name, rows)) {
    return false;
  }
  const std::string_view own = measure::ShortName(row.item(), name);
  const size_t first = name.starts_with("Functional.") ? 1 : 3;
  return own == fmt::format("input.{}", first) || own == fmt::format("input.{}", first + 1) ||
         own.ends_with("running_mean") || own.ends_with("running_var");
}

void ApplyDifference(const Difference& difference, double expected, ComparedRow& row) {
  row.expected = expected;
  row.error = difference.error;
  row.reason = std::string(difference.reason);
  row.verdict = VerdictOf(difference, expected);
  if (difference.doubt.empty() || measure::IsBad(row.verdict)) return;
  row.verdict = Verdict::kNotComparable;
  row.reason = std::string(difference.doubt);
}

Verdict WorstOfResults(std::span<const ComparedRow> rows) {
  Verdict worst = Verdict::kSame;
  bool any = false;
  for (const ComparedRow& row : rows) {
    if (measure::IsInput(row)) continue;
    any = true;
    if (measure::Severity(row.verdict) > measure::Severity(worst)) worst = row.verdict;
  }
  return any ? worst : Verdict::kNotComparable;
}

namespace {

// "x.0" of its gradient "x_grad.0", "x.0.debug" of "x_grad.0.debug"; empty for other names.
std::string SavedValueOf(std::string_view name) {
  constexpr std::string_view kGradient = "_grad.";
  const size_t at = name.rfind(kGradient);
  if (at == std::string_view::npos) return {};
  return fmt::format("{}.{}", name.substr(0, at), name.substr(at + kGradient.size()));
}

}  // namespace

std::vector<uint32_t> JudgingOrder(const Comparison& comparison) {
  std::unordered_set<std::string> saved;
  if (comparison.of_saves) {
    for (const ComparedCall& call : comparison.calls) saved.insert(call.name());
  }
  std::vector<uint32_t> order, late;
  auto step = comparison.earlier.begin();
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    if (step != comparison.earlier.end() && step->calls_end == i) {
      order.insert(order.end(), late.begin(), late.end());
      late.clear();
      ++step;
    }
    const Text& name = comparison.calls[i].name();
    const bool is_gradient = comparison.of_saves ? saved.contains(SavedValueOf(name))
                                                 : KindOfCall(name) == CallKind::kParametersGrad;
    (is_gradient ? late : order).push_back(i);
  }
  if (comparison.of_saves) std::ranges::reverse(late);
  order.insert(order.end(), late.begin(), late.end());
  return order;
}

namespace {

constexpr std::string_view kParameters = "parameters.";  // before the name, among a call's tensors

// What an entry belongs to: its name up to what was recorded of it; empty for other entries.
std::string_view ModuleOf(std::string_view entry, std::string_view recorded) {
  const size_t end = entry.rfind(recorded);
  return end == std::string_view::npos ? std::string_view() : entry.substr(0, end);
}

}  // namespace

ParameterGradients::ParameterGradients(const Comparison& comparison) : comparison_(comparison) {
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (!call.paired() || KindOfCall(call.target_name) != CallKind::kParametersGrad) continue;
    by_module_[ModuleOf(call.target_name, ".parameters_grad")].push_back(i);
  }
}

size_t ParameterGradients::StepOf(uint32_t call) const {
  const auto step =
      std::ranges::upper_bound(comparison_.earlier, call, {}, &EarlierStep::calls_end);
  return static_cast<size_t>(step - comparison_.earlier.begin());
}

const ComparedRow* ParameterGradients::Of(const ComparedRow& read) const {
  if (by_module_.empty()) return nullptr;
  const Text& forward = comparison_.calls[read.call].target_name;
  std::string_view name = measure::ShortName(*read.target, forward);
  const auto found = by_module_.find(ModuleOf(forward, ".forward."));
  if (found == by_module_.end() || !name.starts_with(kParameters)) return nullptr;
  name.remove_prefix(kParameters.size());
  for (const uint32_t index : found->second) {
    if (StepOf(index) != StepOf(read.call)) continue;
    const ComparedCall& call = comparison_.calls[index];
    for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
      if (!row.target || !row.golden || !row.golden->is_tensor) continue;
      if (measure::ShortName(*row.target, call.target_name) == name) return &row;
    }
  }
  return nullptr;
}

bool LacksData(const ComparedRow& row) {
  static constexpr auto kMissing = std::to_array<std::string_view>(
      {"no-data", "shape-differs", "structure-differs", kFollowsFlip});
  return std::ranges::count(kMissing, row.reason.view()) > 0;
}

bool IsMissingValue(const ComparedRow& row) { return LacksData(row) || measure::IsNanOnBoth(row); }

}  // namespace plumbline::verdict
