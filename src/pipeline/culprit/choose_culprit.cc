#include "pipeline/culprit/choose_culprit.h"

#include <algorithm>
#include <string>

#include "measure/compared_row.h"
#include "pipeline/culprit/excuses.h"
#include "pipeline/culprit/lost_gradients.h"
#include "pipeline/culprit/other_way.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

bool IsInside(const Run& run, std::string_view name, std::string_view module) {
  // The chain is at most as long as modules nest; the bound guards against a cycle in the file.
  constexpr int kMaxNesting = 1000;
  for (int i = 0; i < kMaxNesting && !name.empty(); ++i) {
    name = run.ParentOf(name);
    if (name == module) return true;
  }
  return false;
}

// A module is to blame only if nothing inside it is. Events come in recorded order, where a module
// stands after (1.2.2) or before the calls it contains.
const CulpritEvent* Innermost(const Run& target, const Comparison& comparison,
                              const std::vector<CulpritEvent>& events) {
  const CulpritEvent* culprit = &events.front();
  for (bool again = true; again;) {
    again = false;
    for (const CulpritEvent& event : events) {
      const std::string& inner = comparison.calls[event.call].target_name;
      const std::string& outer = comparison.calls[culprit->call].target_name;
      if (event.call != culprit->call && IsInside(target, inner, outer)) {
        culprit = &event;
        again = true;
        break;
      }
    }
  }
  return culprit;
}

// Derivatives of derivatives run through the same backward calls again, and a recorder keeps what
// they did last where it stood first. A gradient that nothing recorded has made by then and that
// forward calls with faults of their own follow is of that later time: the first of these.
const CulpritEvent* FirstInTime(const Comparison& comparison, const CulpritEvent* culprit,
                                const std::vector<CulpritEvent>& events) {
  const auto is_backward = [&](const CulpritEvent& event) {
    return DirectionOf(comparison, event) == CallKind::kBackward;
  };
  if (culprit->kind != CulpritEvent::Kind::kInput || !is_backward(*culprit)) return culprit;
  const auto found = std::find_if(events.begin(), events.end(), [&](const CulpritEvent& event) {
    return event.call > culprit->call && event.kind != CulpritEvent::Kind::kInput &&
           DirectionOf(comparison, event) == CallKind::kForward;
  });
  return found == events.end() ? culprit : &*found;
}

// The first wrong row itself, where nothing that was found accounts for it: "no wrong call" is
// never said above a wrong row.
std::optional<CulpritEvent> Unaccounted(const Comparison& comparison) {
  const auto wrong = std::ranges::find_if(
      comparison.rows, [](const ComparedRow& row) { return measure::IsBad(row.verdict); });
  if (wrong == comparison.rows.end()) return std::nullopt;
  using Kind = CulpritEvent::Kind;
  const Kind kind = wrong->reason == "argument-differs" ? Kind::kArgument
                    : measure::IsInput(*wrong)          ? Kind::kInput
                                                        : Kind::kOutput;
  return CulpritEvent{wrong->call, static_cast<uint32_t>(wrong - comparison.rows.begin()), kind,
                      wrong->error, wrong->expected};
}

// The first call of another form before `evidence.end` that nothing excuses, or null.
const CulpritEvent* FirstOtherForm(const Comparison& comparison,
                                   const std::vector<CulpritEvent>& forms, Evidence& evidence) {
  for (const CulpritEvent& form : forms) {
    if (form.call >= evidence.end) break;
    if (!IsExcused(FormExcuses(), evidence, form)) return &form;
    evidence.met_forms.insert(comparison.calls[form.call].target_name);
  }
  return nullptr;
}

}  // namespace

std::optional<CulpritEvent> ChooseCulprit(const Run& target, const Comparison& comparison,
                                          const Findings& findings, const UnpairedCalls& unpaired) {
  Evidence evidence{comparison, unpaired, findings.noise, {}, false, false, 0, {}};
  std::vector<CulpritEvent> events = findings.events;
  std::erase_if(events, [&](const CulpritEvent& event) {
    return IsExcused(GradientExcuses(), evidence, event);
  });
  evidence.met = DirectionsThatMeet(comparison, events, unpaired, findings.noise);
  // Statistics do not show which part of a gradient acts (GradientExcuses need the elements).
  evidence.leaves_agree = !events.empty() && comparison.mode == CompareMode::kStatistics &&
                          !unpaired.empty() && !CutsAPath(comparison) && LeavesAgree(comparison);
  std::erase_if(events, [&](const CulpritEvent& event) {
    return IsExcused(NumberExcuses(), evidence, event);
  });
  const CulpritEvent* culprit = events.empty() ? nullptr : Innermost(target, comparison, events);
  if (culprit != nullptr) culprit = FirstInTime(comparison, culprit, events);
  evidence.end =
      culprit == nullptr ? static_cast<uint32_t>(comparison.calls.size()) : culprit->call;
  evidence.forms_meet =
      culprit == nullptr && FormsMeet(comparison, findings.other_forms, findings.noise);
  const CulpritEvent* form = FirstOtherForm(comparison, findings.other_forms, evidence);
  if (form != nullptr) return *form;
  if (culprit != nullptr) return *culprit;
  // Where calls stand alone, or the sides meet again, what is wrong and no event follows from
  // another way.
  return unpaired.empty() && evidence.met.empty() ? Unaccounted(comparison) : std::nullopt;
}

}  // namespace plumbline::pipeline
