#include "pipeline/culprit/judge_rows.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "measure/compared_row.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/divergence.h"
#include "pipeline/culprit/frozen_parameter.h"
#include "pipeline/culprit/lost_gradients.h"
#include "pipeline/culprit/namesakes.h"
#include "pipeline/culprit/other_batch.h"
#include "pipeline/culprit/other_way.h"
#include "pipeline/culprit/part_totals.h"
#include "pipeline/culprit/part_twins.h"
#include "pipeline/culprit/part_weights.h"
#include "pipeline/culprit/skipped_update.h"
#include "pipeline/culprit/unseen_update.h"
#include "pipeline/culprit/without_inputs.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

class Judgement {
 public:
  Judgement(const Run& target, const measure::PairContext& context, Comparison& comparison,
            std::span<const double> measured_noise)
      : target_(target),
        context_(context),
        comparison_(comparison),
        measured_noise_(measured_noise) {}

  // The call to name.
  std::optional<CulpritEvent> Find() {
    std::optional<CulpritEvent> first = WalkAll().culprit;
    if (first || AnyIsWrong()) first = FindBesideParts(first);
    if (!first || IsPlain(*first) || CutsAPath(comparison_)) return first;
    const Namesakes maybe = FindNamesakes(comparison_);
    if (maybe.empty() || !(maybe.are_all || IsAmong(*first, maybe))) return first;
    Walk walk = WalkWithout(maybe);
    Namesakes right = ThatDidRight(comparison_, maybe, walk.is_right);
    if (right.forward.size() != maybe.forward.size()) {
      SetReason(maybe, {});
      if (!right.empty()) walk = WalkWithout(right);
    }
    const bool stands = ThatDidRight(comparison_, right, walk.is_right).forward == right.forward;
    if (stands && (walk.culprit ? IsInsteadOf(*first, right, walk) : right.are_all)) {
      const size_t count = right.forward.size() + right.backward.size();
      comparison_.counts.calls -= count;
      comparison_.counts.unmatched_target += count;
      comparison_.counts.unmatched_golden += count;
      return walk.culprit;
    }
    SetReason(right, {});
    Reset();
    return WalkAll().culprit;
  }

 private:
  Walk WalkAll() { return WalkCalls(target_, context_, comparison_, measured_noise_); }

  bool AnyIsWrong() const {
    return std::ranges::any_of(comparison_.rows,
                               [](const ComparedRow& row) { return measure::IsBad(row.verdict); });
  }

  // Where the sides cut one batch otherwise, what they made of its parts is compared with nothing;
  // what follows from all parts is. The gradients of parameters must agree, else all stays.
  std::optional<CulpritEvent> FindBesideParts(const std::optional<CulpritEvent>& first) {
    const OtherBatch other = FindOtherBatch(comparison_);
    if (other.empty()) return first;
    std::vector<ComparedCall> before;
    size_t pairs = 0;
    for (const uint32_t each : other.calls) {
      ComparedCall& call = comparison_.calls[each];
      before.push_back(call);
      pairs += call.paired() ? 1 : 0;
      call.unmatched_reason = kOtherBatch;
      call.unmatched_detail = each == other.entry ? other.parts : "";
    }
    Reset();
    const Walk walk = WalkAll();
    const bool adds_up = GiveTheSameToLeaves(comparison_, walk.noise);
    const std::optional<CulpritEvent> culprit = FindAmongParts(other, walk, adds_up);
    if (culprit || adds_up) {
      if (HasBackward() && !IsSumRead(comparison_)) {
        comparison_.calls[other.entry].unmatched_detail +=
            "; nothing recorded reads the gradients of all parts, so that their sum is not judged";
      }
      comparison_.counts.calls -= pairs;
      comparison_.counts.unmatched_target += pairs;
      comparison_.counts.unmatched_golden += pairs;
      return culprit;
    }
    for (size_t i = 0; i < before.size(); ++i) comparison_.calls[other.calls[i]] = before[i];
    Reset();
    return WalkAll().culprit;
  }

  // The call to name beside or among the parts: where their gradients come to something else, the
  // first part that does.
  std::optional<CulpritEvent> FindAmongParts(const OtherBatch& other, const Walk& walk,
                                             bool adds_up) const {
    const bool is_elsewhere = walk.culprit && !walk.culprit->must_agree;
    if (is_elsewhere) return walk.culprit;
    const bool is_wrong = walk.culprit || !adds_up;
    const std::vector<Twins> twins = FindTwins(comparison_, other);
    const auto weight = FindPartWeight(comparison_, other, twins, is_wrong);
    std::optional<CulpritEvent> among = weight;
    if (is_wrong) {
      among = FindPartTotal(comparison_, twins, walk.noise, weight);
    } else if (!HasBackward()) {
      among = FindPartTotal(comparison_, twins, walk.ceiling, weight);
    }
    if (among) return among;
    return walk.culprit;
  }

  bool HasBackward() const {
    return std::ranges::any_of(comparison_.calls, [](const ComparedCall& call) {
      return KindOfCall(call.target_name) == CallKind::kBackward;
    });
  }

  Walk WalkWithout(const Namesakes& namesakes) {
    SetReason(namesakes, kNamesake);
    Reset();
    return WalkAll();
  }

  // A forward call that returns something else for inputs that agree, or gets another argument with
  // them, comes before all else.
  bool IsPlain(const CulpritEvent& event) const {
    const bool is_own =
        event.kind == CulpritEvent::Kind::kOutput || event.kind == CulpritEvent::Kind::kArgument;
    return is_own && !event.has_other_source &&
           DirectionOf(comparison_, event) == CallKind::kForward;
  }

  // Whether the call that would be named is one of these, and all elements are compared.
  bool IsAmong(const CulpritEvent& first, const Namesakes& namesakes) const {
    return comparison_.mode != CompareMode::kStatistics &&
           std::ranges::binary_search(namesakes.forward, first.call);
  }

  // Whether it is shown to be right, and another of its pass is not.
  bool IsInsteadOf(const CulpritEvent& first, const Namesakes& right, const Walk& walk) const {
    return IsAmong(first, right) && walk.is_right[first.call] &&
           DirectionOf(comparison_, *walk.culprit) == CallKind::kForward;
  }

  void SetReason(const Namesakes& namesakes, std::string_view reason) {
    for (const auto* calls : {&namesakes.forward, &namesakes.backward}) {
      for (const uint32_t each : *calls) comparison_.calls[each].unmatched_reason = reason;
    }
  }

  void Reset() { ForgetVerdicts(comparison_.rows); }

  const Run& target_;
  const measure::PairContext& context_;
  Comparison& comparison_;
  const std::span<const double> measured_noise_;
};

// Whether the call that would be named reads what a call of one side alone, `maker`, made. Golden's
// own calls stand behind all others.
bool Reads(const Comparison& comparison, const CulpritEvent& event, const CulpritEvent& maker) {
  const ComparedRow& made = comparison.rows[maker.row];
  const Slot<Item>& read = measure::SideOf(comparison.rows[event.row], made.target.has_value());
  return event.kind == CulpritEvent::Kind::kInput && read && KeyOf(*read) == KeyOf(made.item());
}

// What differs without effect, and may be rounding although nothing recorded proves it, is not
// named; but it differs, so that the comparison is not complete. What else is wrong is looked for
// as if a third run had shown that it may.
std::optional<CulpritEvent> FindBesideUpdates(const Run& target,
                                              const measure::PairContext& context,
                                              Comparison& comparison,
                                              std::span<const double> measured_noise) {
  constexpr int kMostRounds = 4;
  std::vector<double> noise(measured_noise.begin(), measured_noise.end());
  std::vector<uint32_t> unproven;
  auto culprit = Judgement(target, context, comparison, measured_noise).Find();
  for (int i = 0; i < kMostRounds && culprit; ++i) {
    std::vector<uint32_t> rows = UpdatesWithoutEffect(comparison);
    const std::vector<uint32_t> results = ResultsWithoutProof(comparison);
    rows.insert(rows.end(), results.begin(), results.end());
    if (std::ranges::find(rows, culprit->row) == rows.end()) break;
    noise.resize(comparison.rows.size());
    for (const uint32_t row : rows) noise[row] = comparison.rows[row].error;
    for (const uint32_t row : results) noise[row] = std::numeric_limits<double>::infinity();
    unproven.insert(unproven.end(), rows.begin(), rows.end());
    ForgetVerdicts(comparison.rows);
    culprit = Judgement(target, context, comparison, noise).Find();
  }
  for (const uint32_t row : unproven) {
    comparison.rows[row].verdict = Verdict::kNotComparable;
    comparison.rows[row].reason = kUnproven;
    comparison.rows[row].expected = 0;
  }
  return culprit;
}

}  // namespace

void ForgetVerdicts(std::span<ComparedRow> rows) {
  for (ComparedRow& row : rows) {
    row.verdict = Verdict::kNotComparable;
    row.reason = {};
    row.error = row.expected = 0;
  }
}

std::optional<CulpritEvent> FindCulprit(const Run& target, const measure::PairContext& context,
                                        Comparison& comparison,
                                        std::span<const double> measured_noise) {
  auto culprit = FindBesideUpdates(target, context, comparison, measured_noise);
  const auto skipped = FindSkippedUpdate(comparison);
  const bool is_first = skipped && (!culprit || skipped->call < culprit->call ||
                                    Reads(comparison, *culprit, *skipped));
  if (is_first) culprit = skipped;
  const auto frozen = FindFrozenParameter(comparison);
  return frozen && (!culprit || frozen->call < culprit->call) ? frozen : culprit;
}

void JudgeRows(const Run& target, const measure::PairContext& context, Comparison& comparison,
               std::span<const double> measured_noise) {
  const auto culprit = FindCulprit(target, context, comparison, measured_noise);
  ReportUnproven(comparison);
  if (culprit) comparison.first_wrong_call = DescribeCulprit(target, comparison, *culprit);
}

}  // namespace plumbline::pipeline
