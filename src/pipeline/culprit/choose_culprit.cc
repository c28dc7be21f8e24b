#include "pipeline/culprit/choose_culprit.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>

#include "measure/compared_row.h"
#include "pipeline/culprit/needless_gradient.h"
#include "pipeline/culprit/other_way.h"
#include "pipeline/culprit/row_verdict.h"
#include "pipeline/culprit/symmetric_gradient.h"
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

// Whether most of what follows a call of another form, up to the first wrong numbers, pairs and
// agrees: then the other form is another way to the same values.
bool IsFollowedByAgreement(const Comparison& comparison, uint32_t form, uint32_t end) {
  const CallKind kind = KindOfCall(comparison.calls[form].name());
  size_t good = 0, bad = 0;
  for (uint32_t i = form + 1; i < end; ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (call.target_name.empty() || KindOfCall(call.target_name) != kind) continue;
    const bool agrees = call.paired() && measure::IsGood(call.verdict);
    ++(agrees ? good : bad);
  }
  return good > bad;
}

bool IsFollowedByAny(const Comparison& comparison, uint32_t form) {
  return std::any_of(comparison.calls.begin() + form, comparison.calls.end(),
                     [](const ComparedCall& call) { return call.paired(); });
}

// The call of the target with this name, or null.
const ComparedCall* TargetCall(const Comparison& comparison, std::string_view name) {
  const auto found = std::ranges::find(comparison.calls, name, &ComparedCall::target_name);
  return name.empty() || found == comparison.calls.end() ? nullptr : &*found;
}

// Whether a gradient stands against that of a call which its own forward call is not compared with.
bool IsGradientOfAnother(const Comparison& comparison, std::string_view name) {
  const ComparedCall* forward = TargetCall(comparison, ForwardNameOf(name));
  if (forward == nullptr) return false;
  if (forward->paired()) return forward->golden_name != forward->target_name;
  return !forward->unmatched_reason.ends_with("-differs");
}

// Whether a forward call reads or returns values that the other side never has.
bool IsOfOtherWay(const Comparison& comparison, std::string_view forward) {
  const ComparedCall* found = TargetCall(comparison, forward);
  return found != nullptr && (!found->paired() || measure::IsBad(found->verdict));
}

// Whether a gradient is that of a forward call which agrees. Its form is that of a node of the
// framework (linear() keeps the rows of a view folded) and nothing that a user sees.
bool IsGradientOfAgreeing(const Comparison& comparison, std::string_view name) {
  const ComparedCall* forward = TargetCall(comparison, ForwardNameOf(name));
  return forward != nullptr && forward->paired() && measure::IsGood(forward->verdict);
}

// Whether an event is a gradient that another formula of a symmetric matrix may have.
bool IsOfSymmetricValue(const Comparison& comparison, const CulpritEvent& event, double noise) {
  const bool is_read =
      event.kind == CulpritEvent::Kind::kInput || event.kind == CulpritEvent::Kind::kUnpaired;
  return is_read && DirectionOf(comparison, event) == CallKind::kBackward &&
         MeansTheSameForSymmetricValue(comparison, comparison.rows[event.row], noise);
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

}  // namespace

std::optional<CulpritEvent> ChooseCulprit(const Run& target, const Comparison& comparison,
                                          const Findings& findings, const UnpairedCalls& unpaired) {
  std::vector<CulpritEvent> events = findings.events;
  if (!unpaired.empty() && comparison.mode == CompareMode::kTensor) {
    std::erase_if(events, [&](const CulpritEvent& event) {
      return IsOfSymmetricValue(comparison, event, findings.noise);
    });
  }
  const std::set<CallKind> met = DirectionsThatMeet(comparison, events, unpaired, findings.noise);
  std::erase_if(events, [&](const CulpritEvent& event) {
    return met.contains(DirectionOf(comparison, event));
  });
  const CulpritEvent* culprit = events.empty() ? nullptr : Innermost(target, comparison, events);
  if (culprit != nullptr) culprit = FirstInTime(comparison, culprit, events);
  const auto end =
      culprit == nullptr ? static_cast<uint32_t>(comparison.calls.size()) : culprit->call;
  const bool forms_meet =
      culprit == nullptr && FormsMeet(comparison, findings.other_forms, findings.noise);
  std::unordered_set<std::string> settled;
  for (const CulpritEvent& form : findings.other_forms) {
    if (form.call >= end || forms_meet) break;
    const std::string& name = comparison.calls[form.call].target_name;
    // The gradient of another form has another form: what was said of the forward call holds.
    if (settled.contains(ForwardNameOf(name))) continue;
    settled.insert(name);
    if (met.contains(KindOfCall(name)) || unpaired.IsGood(form.call)) continue;
    if (met.contains(CallKind::kForward) && IsOfOtherWay(comparison, ForwardNameOf(name))) continue;
    if (IsGradientOfAnother(comparison, name)) continue;
    if (LacksOnlyNeedlessGradients(comparison, form.call, findings.noise)) continue;
    if ((IsFollowedByAny(comparison, form.call) || IsGradientOfAgreeing(comparison, name)) &&
        unpaired.ResultsAgree(form.call, findings.noise)) {
      continue;
    }
    if (IsFollowedByAgreement(comparison, form.call, end)) continue;
    return form;
  }
  if (culprit != nullptr) return *culprit;
  // Where calls stand alone, what is wrong and no event follows from another way.
  return unpaired.empty() ? Unaccounted(comparison) : std::nullopt;
}

}  // namespace plumbline::pipeline
