#include "verdict/choose_culprit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text/number_text.h"
#include "measure/compared_row.h"
#include "measure/verdict.h"
#include "record/call_name.h"
#include "record/value.h"
#include "verdict/cause_candidates.h"
#include "verdict/missed_gradients.h"
#include "verdict/unpaired_calls.h"
#include "verdict/wrong_results.h"

namespace plumbline::verdict {

std::string ShownValue(const Recorded& recorded) {
  if (const auto* v = std::get_if<bool>(&recorded)) return *v ? "True" : "False";
  if (const auto* v = std::get_if<int64_t>(&recorded)) return std::to_string(*v);
  if (const auto* v = std::get_if<double>(&recorded)) return PythonFloat(*v);
  if (const auto* v = std::get_if<Text>(&recorded)) return *v;
  return "None";
}

std::string SeriesOf(std::string_view name) {
  const std::optional<CallName> parts = ParseCallName(name);
  if (!parts || parts->form != CallName::Form::kApi) return {};
  return fmt::format("{}{}", parts->path, name.substr(name.rfind('.')));
}

std::string ForwardNameOf(std::string_view backward_name) {
  constexpr std::string_view kBackward = ".backward";
  const size_t at = backward_name.rfind(kBackward);
  if (at == std::string_view::npos) return {};
  return fmt::format("{}.forward{}", backward_name.substr(0, at),
                     backward_name.substr(at + kBackward.size()));
}

const ComparedCall* ForwardCallOf(const Comparison& comparison, std::string_view backward_name) {
  const std::string name = ForwardNameOf(backward_name);
  if (name.empty()) return nullptr;
  const auto found = std::ranges::find_if(
      comparison.calls, [&](const ComparedCall& call) { return call.target_name == name; });
  return found == comparison.calls.end() ? nullptr : &*found;
}

std::string BackwardNameOf(std::string_view forward_name) {
  constexpr std::string_view kForward = ".forward";
  const size_t at = forward_name.rfind(kForward);
  if (at == std::string_view::npos) return {};
  return fmt::format("{}.backward{}", forward_name.substr(0, at),
                     forward_name.substr(at + kForward.size()));
}

namespace {

const Text& NameOf(const Evidence& evidence, const CulpritEvent& event) {
  return evidence.comparison.calls[event.call].target_name;
}

const ComparedCall* ForwardOf(const Evidence& evidence, const CulpritEvent& event) {
  return ForwardCallOf(evidence.comparison, NameOf(evidence, event));
}

bool IsOfSymmetricValue(const Evidence& evidence, const CulpritEvent& event) {
  const Comparison& comparison = evidence.comparison;
  const bool is_read =
      event.kind == CulpritEvent::Kind::kInput || event.kind == CulpritEvent::Kind::kUnpaired;
  return is_read && comparison.mode == CompareMode::kTensor && !evidence.unpaired.empty() &&
         DirectionOf(comparison, event) == CallKind::kBackward &&
         MeansTheSameForSymmetricValue(comparison, comparison.rows[event.row], evidence.noise);
}

bool DirectionMeets(const Evidence& evidence, const CulpritEvent& event) {
  return evidence.met.contains(DirectionOf(evidence.comparison, event));
}

bool ReachesNoParameter(const Evidence& evidence, const CulpritEvent& event) {
  return evidence.leaves_agree && DirectionOf(evidence.comparison, event) == CallKind::kBackward;
}

bool FormsMeetAgain(const Evidence& evidence, const CulpritEvent& /*event*/) {
  return evidence.forms_meet;
}

bool IsGradientOfMetForm(const Evidence& evidence, const CulpritEvent& event) {
  return evidence.met_forms.contains(ForwardNameOf(NameOf(evidence, event)));
}

bool ResultArrived(const Evidence& evidence, const CulpritEvent& event) {
  return evidence.unpaired.IsGood(event.call);
}

bool IsGradientOfOtherForm(const Evidence& evidence, const CulpritEvent& event) {
  if (!evidence.met.contains(CallKind::kForward)) return false;
  const ComparedCall* forward = ForwardOf(evidence, event);
  return forward != nullptr && (!forward->paired() || measure::IsBad(forward->verdict));
}

bool IsGradientOfAnother(const Evidence& evidence, const CulpritEvent& event) {
  const ComparedCall* forward = ForwardOf(evidence, event);
  if (forward == nullptr) return false;
  if (forward->paired()) return forward->golden_name != forward->target_name;
  return !forward->unmatched_reason.ends_with("-differs");
}

bool LacksNeedlessGradients(const Evidence& evidence, const CulpritEvent& event) {
  return LacksOnlyNeedlessGradients(evidence.comparison, event.call, evidence.noise);
}

// Of the very last call another form stands, as nothing shows what becomes of it; but not that of
// the gradient of a forward call that agrees. Its form is that of a node of the framework
// (linear() keeps the rows of a view folded) and nothing that a user sees.
bool HoldsTheSameElements(const Evidence& evidence, const CulpritEvent& event) {
  const auto& calls = evidence.comparison.calls;
  const bool is_followed = std::any_of(calls.begin() + event.call, calls.end(),
                                       [](const ComparedCall& call) { return call.paired(); });
  const ComparedCall* forward = ForwardOf(evidence, event);
  const bool is_gradient_of_agreeing =
      forward != nullptr && forward->paired() && measure::IsGood(forward->verdict);
  return (is_followed || is_gradient_of_agreeing) &&
         evidence.unpaired.ResultsAgree(event.call, evidence.noise);
}

bool LacksRecordedValues(const Evidence& evidence, const CulpritEvent& event) {
  return LacksValuesOnly(evidence.comparison, event.call, evidence.noise);
}

bool IsFollowedByAgreement(const Evidence& evidence, const CulpritEvent& event) {
  const Comparison& comparison = evidence.comparison;
  const CallKind kind = KindOfCall(comparison.calls[event.call].name());
  size_t good = 0, bad = 0;
  for (uint32_t i = event.call + 1; i < evidence.end; ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (call.target_name.empty() || KindOfCall(call.target_name) != kind) continue;
    const bool agrees = call.paired() && measure::IsGood(call.verdict);
    ++(agrees ? good : bad);
  }
  return good > bad;
}

constexpr Excuse kGradientExcuses[] = {
    IsOfSymmetricValue,  // only the symmetric part of a symmetric matrix's gradient acts
};

constexpr Excuse kNumberExcuses[] = {
    DirectionMeets,      // the sides part and meet again where nothing wrong is left
    ReachesNoParameter,  // gradients on the way differ, those of all parameters agree
};

constexpr Excuse kFormExcuses[] = {
    FormsMeetAgain,          // no number is wrong, and what the forms lead to agrees
    IsGradientOfMetForm,     // decided with the forward call, which has another form itself
    DirectionMeets,          // as for numbers
    ResultArrived,           // a paired call takes the result and agrees
    IsGradientOfOtherForm,   // the gradient of a value that only one side has
    IsGradientOfAnother,     // stands against the gradient of another forward call
    LacksNeedlessGradients,  // lacks only gradients that nobody asks for
    HoldsTheSameElements,    // the results hold the same elements in another shape
    LacksRecordedValues,     // all else agrees, and what one side lacks must have been there
    IsFollowedByAgreement,   // most of what follows, up to the first wrong number, agrees
};

}  // namespace

std::span<const Excuse> GradientExcuses() { return kGradientExcuses; }
std::span<const Excuse> NumberExcuses() { return kNumberExcuses; }
std::span<const Excuse> FormExcuses() { return kFormExcuses; }

bool IsExcused(std::span<const Excuse> rules, const Evidence& evidence, const CulpritEvent& event) {
  return std::ranges::any_of(rules, [&](Excuse holds) { return holds(evidence, event); });
}

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
  // What stands before the culprit is not inside it: it would have been inside the one before.
  for (const CulpritEvent& event : events) {
    const Text& inner = comparison.calls[event.call].target_name;
    const Text& outer = comparison.calls[culprit->call].target_name;
    if (event.call != culprit->call && IsInside(target, inner, outer)) culprit = &event;
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

}  // namespace plumbline::verdict
