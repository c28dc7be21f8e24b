#include "verdict/judge_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/process/parallel.h"
#include "match/call_align.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "record/value.h"
#include "verdict/batch_parts.h"
#include "verdict/call_rows.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"
#include "verdict/missed_gradients.h"
#include "verdict/missed_updates.h"
#include "verdict/other_batch.h"
#include "verdict/rightly_different.h"
#include "verdict/unpaired_calls.h"
#include "verdict/walk_state.h"
#include "verdict/wrong_results.h"

namespace plumbline::verdict {

namespace {

using measure::CallClass;

// Walks the calls in recorded order.
class Judge {
 public:
  Judge(const Run& target, const measure::PairContext& context, Comparison& comparison,
        std::span<const double> measured_noise)
      : run_(target),
        state_(context, comparison, measured_noise),
        proves_equal_(comparison.mode == CompareMode::kTensor ||
                      (comparison.mode == CompareMode::kDigest &&
                       measure::DigestKindOf(comparison.rows) == measure::DigestKind::kChecksum)) {
    for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
      std::string_view module = run_.ParentOf(comparison.calls[i].target_name);
      while (!module.empty() && first_inside_.emplace(module, i).second) {
        module = run_.ParentOf(module);
      }
    }
  }

  void Run() {
    const std::vector<uint32_t> order = JudgingOrder(state_.comparison);
    const auto block_at = [&](size_t begin) {
      begin = std::min(begin, order.size());
      return std::span(order).subspan(begin, std::min(RowsAhead::kBlock, order.size() - begin));
    };
    state_.ahead.Prepare(block_at(0));
    const auto judge_blocks = [&] {
      for (size_t begin = 0; begin < order.size(); begin += RowsAhead::kBlock) {
        state_.ahead.Advance();
        RunBoth([&] { JudgeBlock(block_at(begin)); },
                [&] { state_.ahead.Prepare(block_at(begin + RowsAhead::kBlock)); });
      }
    };
    // Judging takes one thread most of the time; to describe what it finds takes the stacks.
    RunBoth(judge_blocks, [&] { (void)run_.loss(); });
    state_.found.noise =
        measure::kNoiseFactor *
        state_.noise.AtMost(std::max(state_.noise.level(), kUnseenCalls * state_.noise.coarsest()));
  }

  [[nodiscard]] double ceiling() const {
    return measure::kNoiseFactor * state_.noise.AtMost(std::numeric_limits<double>::infinity());
  }
  [[nodiscard]] const Findings& findings() const { return state_.found; }
  [[nodiscard]] const UnpairedCalls& unpaired() const { return state_.unpaired; }

 private:
  std::span<ComparedRow> RowsOf(const ComparedCall& call) {
    return std::span(state_.comparison.rows).subspan(call.first_row, call.row_count);
  }

  void JudgeBlock(std::span<const uint32_t> block) {
    for (size_t k = 0; k < block.size(); ++k) {
      state_.known.Expect(block[std::min(k + KnownContents::kCallsAhead, block.size() - 1)]);
      JudgeCall(block[k]);
    }
  }

  void JudgeUnmatched(uint32_t index, ComparedCall& call) {
    call.verdict = Verdict::kNotComparable;
    if (KindOfCall(call.target_name) == CallKind::kBackward) {
      state_.sums.RememberAlone(call);
      state_.has_gradients = true;
    }
    const bool is_part = call.unmatched_reason == kOtherBatch;
    state_.has_parts = state_.has_parts || is_part;
    for (ComparedRow& row : RowsOf(call)) {
      row.verdict = Verdict::kNotComparable;
      row.reason = call.unmatched_reason;
      row.error = std::nan("");
      if (is_part) state_.noise.Coarsen(measure::RoundoffOf(row.item(), row.item()));
    }
    const bool structural =
        call.unmatched_reason.ends_with("-differs") && !call.unmatched_detail.empty();
    if (state_.types.is_other && call.unmatched_reason == "dtype-differs") return;
    // The node before, whose gradients have another form, in the place of one that does nothing.
    const bool is_other_node =
        KindOfCall(call.name()) == CallKind::kBackward && !state_.comparison.of_saves &&
        state_.forward.IsIdentity(call.target_name) && state_.forward.IsGradientOfANode(call);
    // Whatever is chosen otherwise may have another form.
    const bool follows_flip = !state_.flips.empty() && call.unmatched_reason == "shape-differs";
    if (structural && !call.target_name.empty() && !is_other_node && !follows_flip) {
      state_.found.other_forms.push_back(
          {index, call.first_row, CulpritEvent::Kind::kStructure, 0, 0});
    }
  }

  void JudgeCall(uint32_t index) {
    ComparedCall& call = state_.comparison.calls[index];
    if (!call.paired()) {
      JudgeUnmatched(index, call);
      return;
    }
    state_.exchanged.Enter(state_, call);
    CallInputs inputs;
    const JudgedInputs judged{index, ClassOf(call), inputs};
    AddForwardOfBackward(call, inputs);
    inputs.is_beside_flip = IsBesideFlip(call);
    for (ComparedRow& row : RowsOf(call)) {
      if (measure::IsInput(row)) JudgeInput(state_, index, row, inputs);
    }
    FollowFlipsInside(call, inputs);
    for (ComparedRow& row : RowsOf(call)) {
      if (!measure::IsInput(row)) JudgeOutput(state_, judged, row);
    }
    if (inputs.follows_flip || std::ranges::any_of(RowsOf(call), IsOfFlip)) MarkModules(call);
    call.verdict = WorstOfResults(RowsOf(call));
    SettleArguments(call, inputs);
    if (state_.comparison.of_saves) return;
    state_.biases.Remember(call);
    const CallKind kind = KindOfCall(call.target_name);
    state_.has_gradients = state_.has_gradients || kind == CallKind::kBackward;
    if (kind == CallKind::kForward) {
      state_.forward.Remember(index, inputs);
    }
  }

  // The modules around a call that is of a flip have one inside.
  void MarkModules(const ComparedCall& call) {
    std::string_view module = run_.ParentOf(call.target_name);
    if (!module.empty() && match::IsModuleCall(call.target_name)) beside_flips_.insert(module);
    while (!module.empty() && flips_inside_.insert(module).second) module = run_.ParentOf(module);
  }

  // Whether modules that stand beside this one, or beside one around it, follow from a flip.
  bool IsBesideFlip(const ComparedCall& call) const {
    constexpr int kLevels = 3;  // an activation in a list of experts in the block of their router
    if (beside_flips_.empty()) return false;
    std::string_view module = run_.ParentOf(call.target_name);
    for (int i = 0; i < kLevels && !module.empty(); ++i, module = run_.ParentOf(module)) {
      if (beside_flips_.contains(module)) return true;
    }
    return false;
  }

  void FollowFlipsInside(const ComparedCall& call, CallInputs& inputs) {
    if (flips_inside_.erase(call.target_name) == 0 || inputs.follows_flip) return;
    inputs.follows_flip = true;
    inputs.flip_inside_from = first_inside_.at(call.target_name);
  }

  // A differing argument without any effect on results whose every bit is known is no wrong number.
  void SettleArguments(const ComparedCall& call, CallInputs& inputs) {
    if (inputs.arguments.empty()) return;
    const auto acts_unseen = [&](const CulpritEvent& event) {
      return MayActUnseen(state_.comparison.rows[event.row], call.target_name, RowsOf(call));
    };
    if (!proves_equal_ || call.verdict != Verdict::kSame ||
        std::any_of(inputs.arguments.begin(), inputs.arguments.end(), acts_unseen)) {
      // Another factor for another value: the product may be the same.
      for (CulpritEvent& event : inputs.arguments) {
        event.has_other_source = inputs.forward_is_bad || ReadsWrongTensor(RowsOf(call));
      }
      state_.found.events.insert(state_.found.events.end(), inputs.arguments.begin(),
                                 inputs.arguments.end());
      return;
    }
    for (const CulpritEvent& event : inputs.arguments) {
      state_.comparison.rows[event.row].verdict = Verdict::kWithinNoise;
      state_.comparison.rows[event.row].reason = "argument-without-effect";
    }
  }

  CallClass ClassOf(const ComparedCall& call) const {
    // Names of saved values are the user's; any number of calls may stand behind a value.
    if (state_.comparison.of_saves) return CallClass::kComposite;
    const CallClass known = measure::ClassOfCall(call.target_name);
    if (known == CallClass::kDefault && first_inside_.contains(call.target_name)) {
      return CallClass::kComposite;
    }
    return known;
  }

  // A backward call also depends on what its forward call saved.
  void AddForwardOfBackward(const ComparedCall& call, CallInputs& inputs) {
    if (state_.comparison.of_saves) return;
    const ForwardResult* forward = state_.forward.Of(call.target_name);
    if (forward == nullptr) return;
    inputs.error = std::max(inputs.error, forward->error);
    inputs.follows_flip = forward->follows_flip;
    for (const Verdict verdict : {forward->inputs, forward->outputs}) {
      inputs.forward_is_bad = inputs.forward_is_bad || measure::IsBad(verdict);
      if (measure::Severity(verdict) > measure::Severity(inputs.worst)) inputs.worst = verdict;
    }
  }

  const plumbline::Run& run_;
  WalkState state_;
  const bool proves_equal_;  // rows that are `same` hold the same bits
  std::unordered_map<std::string_view, uint32_t> first_inside_;  // by module, of all calls inside
  std::unordered_set<std::string_view> beside_flips_;  // modules around modules that follow a flip
  std::unordered_set<std::string_view> flips_inside_;  // modules that are still to be judged
};

}  // namespace

Walk WalkCalls(const Run& target, const measure::PairContext& context, Comparison& comparison,
               std::span<const double> measured_noise) {
  Judge judge(target, context, comparison, measured_noise);
  judge.Run();
  return {ChooseCulprit(target, comparison, judge.findings(), judge.unpaired()),
          judge.unpaired().right(), judge.findings().noise, judge.ceiling()};
}

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
    const SameNamedCalls maybe = FindSameNamed(comparison_);
    if (maybe.empty() || !(maybe.are_all || IsAmong(*first, maybe))) return first;
    Walk walk = WalkWithout(maybe);
    SameNamedCalls right = ThatDidRight(comparison_, maybe, walk.is_right);
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
        Text& detail = comparison_.calls[other.entry].unmatched_detail;
        detail = detail +
                 "; nothing recorded reads the gradients of all parts, so that their sum is not "
                 "judged";
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

  Walk WalkWithout(const SameNamedCalls& same_named) {
    SetReason(same_named, kSameName);
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
  bool IsAmong(const CulpritEvent& first, const SameNamedCalls& same_named) const {
    return comparison_.mode != CompareMode::kStatistics &&
           std::ranges::binary_search(same_named.forward, first.call);
  }

  // Whether it is shown to be right, and another of its pass is not.
  bool IsInsteadOf(const CulpritEvent& first, const SameNamedCalls& right, const Walk& walk) const {
    return IsAmong(first, right) && walk.is_right[first.call] &&
           DirectionOf(comparison_, *walk.culprit) == CallKind::kForward;
  }

  void SetReason(const SameNamedCalls& same_named, std::string_view reason) {
    for (const auto* calls : {&same_named.forward, &same_named.backward}) {
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

std::optional<CulpritEvent> JudgeRows(const Run& target, const measure::PairContext& context,
                                      Comparison& comparison,
                                      std::span<const double> measured_noise) {
  auto culprit = FindCulprit(target, context, comparison, measured_noise);
  ReportUnproven(comparison);
  return culprit;
}

}  // namespace plumbline::verdict
