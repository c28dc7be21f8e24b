#include "pipeline/culprit/frozen_parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include "measure/compared_row.h"
#include "pipeline/culprit/earlier_steps.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

bool HasGradients(const Comparison& comparison) {
  return std::ranges::any_of(comparison.calls, [](const ComparedCall& call) {
    const CallKind kind = KindOfCall(call.name());
    return call.paired() && (kind == CallKind::kBackward || kind == CallKind::kParametersGrad);
  });
}

// Whether one side alone trains the tensor.
bool Differ(const ComparedRow& row) {
  if (!measure::HasTensors(row) || !measure::IsInput(row)) return false;
  const std::optional<bool>&target = row.target->requires_grad, &golden = row.golden->requires_grad;
  return target && golden && *target != *golden;
}

// What is the same for the argument of one module, or of one call in steps of their own.
std::string PlaceOf(const ComparedCall& call, const ComparedRow& row) {
  const std::string& name = call.target_name;
  std::string place = SeriesOf(name).empty() ? name.substr(0, name.find_last_not_of("0123456789"))
                                             : NameInItsStep(name);
  place += ' ';
  place += measure::ShortName(*row.target, name);
  return place;
}

CulpritEvent EventOf(const ComparedCall& call, const ComparedRow& row, uint32_t index) {
  CulpritEvent event{row.call, index, CulpritEvent::Kind::kFact, 0, 0};
  const bool by_target = row.target->requires_grad == true;
  event.fact = {
      fmt::format("{} requires {} gradient (golden's does{}), although both did before",
                  measure::ShortName(*row.target, call.target_name), by_target ? "a" : "no",
                  by_target ? " not" : ""),
      "argument",
      fmt::format("requires_grad is {} (golden {}): from here on one side alone trains it",
                  by_target, !by_target),
      "high"};
  return event;
}

}  // namespace

std::optional<CulpritEvent> FindFrozenParameter(const Comparison& comparison) {
  // Calls before rows, of which there are more.
  if (comparison.of_saves || !HasGradients(comparison)) return std::nullopt;
  if (std::ranges::none_of(comparison.rows, Differ)) return std::nullopt;
  std::unordered_set<std::string> trained;
  for (uint32_t i = 0; i < comparison.rows.size(); ++i) {
    const ComparedRow& row = comparison.rows[i];
    const ComparedCall& call = comparison.calls[row.call];
    if (!measure::HasTensors(row) || !measure::IsInput(row) || !call.paired()) continue;
    const bool differ = Differ(row);
    const bool both = row.target->requires_grad == true && row.golden->requires_grad == true;
    if (!differ && !both) continue;
    if (KindOfCall(call.target_name) != CallKind::kForward) continue;
    std::string place = PlaceOf(call, row);
    if (!differ) {
      trained.insert(std::move(place));
    } else if (!measure::IsBad(row.verdict) && trained.contains(place)) {
      return EventOf(call, row, i);
    }
  }
  return std::nullopt;
}

}  // namespace plumbline::pipeline
