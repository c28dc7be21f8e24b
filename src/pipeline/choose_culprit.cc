#include "pipeline/choose_culprit.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>

#include "measure/compared_row.h"
#include "pipeline/other_way.h"
#include "pipeline/row_verdict.h"
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

// Whether most of what follows a call of another form, up to the first wrong numbers, pairs and
// agrees: then the other form is another way to the same values.
bool IsFollowedByAgreement(const Comparison& comparison, uint32_t form, uint32_t end) {
  const CallKind kind = KindOfCall(comparison.calls[form].name());
  size_t good = 0, bad = 0;
  for (uint32_t i = form + 1; i < end; ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (call.target_name.empty() || KindOfCall(call.target_name) != kind) continue;
    const bool agrees =
        call.paired() && (call.verdict == Verdict::kSame || call.verdict == Verdict::kWithinNoise);
    ++(agrees ? good : bad);
  }
  return good > bad;
}

bool IsFollowedByAny(const Comparison& comparison, uint32_t form) {
  return std::any_of(comparison.calls.begin() + form, comparison.calls.end(),
                     [](const ComparedCall& call) { return call.paired(); });
}

// Whether a forward call reads or returns values that the other side never has.
bool IsOfOtherWay(const Comparison& comparison, std::string_view forward) {
  const auto found =
      std::find_if(comparison.calls.begin(), comparison.calls.end(),
                   [&](const ComparedCall& call) { return call.target_name == forward; });
  return found != comparison.calls.end() && (!found->paired() || measure::IsBad(found->verdict));
}

}  // namespace

std::optional<CulpritEvent> ChooseCulprit(const Run& target, const Comparison& comparison,
                                          const Findings& findings, const UnpairedCalls& unpaired) {
  std::vector<CulpritEvent> events = findings.events;
  std::set<CallKind> met;
  for (const CallKind direction : {CallKind::kForward, CallKind::kBackward}) {
    if (!MeetsAgain(comparison, events, direction)) continue;
    met.insert(direction);
    std::erase_if(events, [&](const CulpritEvent& event) {
      return DirectionOf(comparison, event) == direction;
    });
  }
  const CulpritEvent* culprit = events.empty() ? nullptr : Innermost(target, comparison, events);
  const auto end =
      culprit == nullptr ? static_cast<uint32_t>(comparison.calls.size()) : culprit->call;
  std::unordered_set<std::string> settled;
  for (const CulpritEvent& form : findings.other_forms) {
    if (form.call >= end) break;
    const std::string& name = comparison.calls[form.call].target_name;
    // The gradient of another form has another form: what was said of the forward call holds.
    if (settled.contains(ForwardNameOf(name))) continue;
    settled.insert(name);
    if (met.contains(KindOfCall(name)) || unpaired.IsGood(form.call)) continue;
    if (met.contains(CallKind::kForward) && IsOfOtherWay(comparison, ForwardNameOf(name))) continue;
    if (IsFollowedByAny(comparison, form.call) &&
        unpaired.ResultsAgree(form.call, findings.noise)) {
      continue;
    }
    if (IsFollowedByAgreement(comparison, form.call, end)) continue;
    return form;
  }
  if (culprit == nullptr) return std::nullopt;
  return *culprit;
}

}  // namespace plumbline::pipeline
