#include "pipeline/culprit/excuses.h"

#include <algorithm>
#include <string>

#include "measure/compared_row.h"
#include "pipeline/culprit/incomplete_record.h"
#include "pipeline/culprit/needless_gradient.h"
#include "pipeline/culprit/other_way.h"
#include "pipeline/culprit/symmetric_gradient.h"

namespace plumbline::pipeline {
namespace {

const std::string& NameOf(const Evidence& evidence, const CulpritEvent& event) {
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

bool IsGradientOfOtherWay(const Evidence& evidence, const CulpritEvent& event) {
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
    IsGradientOfOtherWay,    // the gradient of a value that only one side has
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

}  // namespace plumbline::pipeline
