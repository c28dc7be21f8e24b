#include "pipeline/culprit/divergence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/parallel.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/statistic_choice.h"
#include "pipeline/culprit/call_inputs.h"
#include "pipeline/culprit/choose_culprit.h"
#include "pipeline/culprit/discrete_flip.h"
#include "pipeline/culprit/judge_inputs.h"
#include "pipeline/culprit/judge_outputs.h"
#include "pipeline/culprit/judging_order.h"
#include "pipeline/culprit/other_batch.h"
#include "pipeline/culprit/row_verdict.h"
#include "pipeline/culprit/walk_state.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

using measure::CallClass;

// Walks the calls in recorded order.
class Judge {
 public:
  Judge(const Run& target, const measure::PairContext& context, Comparison& comparison,
        std::span<const double> measured_noise)
      : run_(target),
        state_(context, comparison, measured_noise),
        proves_equal_(
            comparison.mode == CompareMode::kTensor ||
            (comparison.mode == CompareMode::kDigest && !measure::AreXorDigests(comparison.rows))) {
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
    while (!module.empty() && flips_inside_.insert(module).second) module = run_.ParentOf(module);
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

}  // namespace plumbline::pipeline
