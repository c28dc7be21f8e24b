#include "pipeline/culprit/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_set>

#include "base/parallel.h"
#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "pipeline/culprit/call_inputs.h"
#include "pipeline/culprit/choose_culprit.h"
#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/differences_ahead.h"
#include "pipeline/culprit/forward_calls.h"
#include "pipeline/culprit/gradient_sums.h"
#include "pipeline/culprit/judging_order.h"
#include "pipeline/culprit/known_contents.h"
#include "pipeline/culprit/other_fills.h"
#include "pipeline/culprit/product_precision.h"
#include "pipeline/culprit/row_verdict.h"
#include "pipeline/culprit/type_choice.h"
#include "pipeline/culprit/unpaired_calls.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

// Calls of another kernel whose rounding adds up unseen, as in a module around recorded calls.
constexpr double kUnseenCalls = 8;

using measure::CallClass;
using measure::Difference;

double CountOf(const Item& item) { return item.is_tensor ? measure::ElementsOf(item) : 0; }

// Walks the calls in recorded order.
class Judge {
 public:
  Judge(const Run& target, const measure::PairContext& context, Comparison& comparison,
        std::span<const double> measured_noise)
      : run_(target),
        comparison_(comparison),
        measured_noise_(measured_noise),
        known_(comparison),
        forward_(comparison),
        sums_(comparison),
        unpaired_(comparison),
        ahead_(comparison, context) {
    RunBoth([&] { product_roundoffs_ = FindProductRoundoffs(comparison, context); },
            [&] { types_ = TypeChoiceOf(comparison); });
    for (const ComparedCall& call : comparison.calls) {
      const std::string_view parent = run_.ParentOf(call.target_name);
      if (!parent.empty()) parents_with_children_.insert(parent);
    }
  }

  void Run() {
    const std::vector<uint32_t> order = JudgingOrder(comparison_);
    for (size_t begin = 0; begin < order.size(); begin += DifferencesAhead::kBlock) {
      const size_t count = std::min(DifferencesAhead::kBlock, order.size() - begin);
      const auto block = std::span(order).subspan(begin, count);
      ahead_.Measure(block);
      for (size_t k = 0; k < block.size(); ++k) {
        known_.Expect(block[std::min(k + KnownContents::kCallsAhead, count - 1)]);
        JudgeCall(block[k]);
      }
    }
    found_.noise = measure::kNoiseFactor *
                   AtMostNoise(std::max(noise_level_, kUnseenCalls * coarsest_roundoff_));
  }

  [[nodiscard]] const Findings& findings() const { return found_; }
  [[nodiscard]] const UnpairedCalls& unpaired() const { return unpaired_; }

 private:
  std::span<ComparedRow> RowsOf(const ComparedCall& call) {
    return std::span(comparison_.rows).subspan(call.first_row, call.row_count);
  }

  Difference DifferenceOf(const ComparedRow& row) const {
    const bool real = comparison_.mode == CompareMode::kTensor;
    Difference found = ahead_.Of(IndexOf(row));
    // Elements that noise moved over the edge of a relu are no local fault of its gradient.
    const double* all = std::get_if<double>(&row.tensor->relative_l2);
    if (all != nullptr && real && IsGradient(row) && noise_level_ > 0 &&
        std::isfinite(found.error)) {
      found.error = std::min(found.error, *all);
    }
    return found;
  }

  void JudgeUnmatched(uint32_t index, ComparedCall& call) {
    call.verdict = Verdict::kNotComparable;
    if (KindOfCall(call.target_name) == CallKind::kBackward) sums_.RememberAlone(call);
    for (ComparedRow& row : RowsOf(call)) {
      row.verdict = Verdict::kNotComparable;
      row.reason = call.unmatched_reason;
      row.error = std::nan("");
    }
    const bool structural =
        call.unmatched_reason.ends_with("-differs") && !call.unmatched_detail.empty();
    if (types_.is_other && call.unmatched_reason == "dtype-differs") return;
    // The node before, whose gradients have another form, in the place of one that does nothing.
    const bool is_other_node = KindOfCall(call.name()) == CallKind::kBackward &&
                               !comparison_.of_saves && forward_.IsIdentity(call.target_name) &&
                               forward_.IsGradientOfANode(call);
    if (structural && !call.target_name.empty() && !is_other_node) {
      found_.other_forms.push_back({index, call.first_row, CulpritEvent::Kind::kStructure, 0, 0});
    }
  }

  void JudgeCall(uint32_t index) {
    ComparedCall& call = comparison_.calls[index];
    if (!call.paired()) {
      JudgeUnmatched(index, call);
      return;
    }
    const CallClass call_class = ClassOf(call);
    CallInputs inputs;
    AddForwardOfBackward(call, inputs);
    for (ComparedRow& row : RowsOf(call)) {
      const ItemRole role = row.target->role;
      if (role == ItemRole::kInput || role == ItemRole::kParameter) JudgeInput(index, row, inputs);
    }
    for (ComparedRow& row : RowsOf(call)) {
      const ItemRole role = row.target->role;
      if (role == ItemRole::kOutput || role == ItemRole::kParameterGrad) {
        JudgeOutput(index, call_class, inputs, row);
      }
    }
    call.verdict = WorstOfResults(RowsOf(call));
    SettleArguments(call, inputs);
    if (!comparison_.of_saves && KindOfCall(call.target_name) == CallKind::kForward) {
      forward_.Remember(index, inputs.worst, inputs.error);
    }
  }

  // A differing argument without any effect on results whose every bit is known is no wrong number.
  void SettleArguments(const ComparedCall& call, CallInputs& inputs) {
    if (inputs.arguments.empty()) return;
    const auto acts_unseen = [&](const CulpritEvent& event) {
      return MayActUnseen(comparison_.rows[event.row], call.target_name, RowsOf(call));
    };
    if (comparison_.mode == CompareMode::kStatistics || call.verdict != Verdict::kSame ||
        std::any_of(inputs.arguments.begin(), inputs.arguments.end(), acts_unseen)) {
      // Another factor for another value: the product may be the same.
      for (CulpritEvent& event : inputs.arguments) {
        event.has_other_source = inputs.forward_is_bad || ReadsWrongTensor(RowsOf(call));
      }
      found_.events.insert(found_.events.end(), inputs.arguments.begin(), inputs.arguments.end());
      return;
    }
    for (const CulpritEvent& event : inputs.arguments) {
      comparison_.rows[event.row].verdict = Verdict::kWithinNoise;
      comparison_.rows[event.row].reason = "argument-without-effect";
    }
  }

  // Roundoff that a pair may show: that of the golden type where the target has no business to
  // round more.
  double RoundoffOf(const ComparedRow& row) const {
    return types_.is_narrower ? measure::RoundoffOf(*row.target, *row.golden)
                              : measure::RoundoffOf(*row.golden, *row.golden);
  }

  CallClass ClassOf(const ComparedCall& call) const {
    // Names of saved values are the user's; any number of calls may stand behind a value.
    if (comparison_.of_saves) return CallClass::kComposite;
    const CallClass known = measure::ClassOfCall(call.target_name);
    if (known == CallClass::kDefault && parents_with_children_.contains(call.target_name)) {
      return CallClass::kComposite;
    }
    return known;
  }

  // A backward call also depends on what its forward call saved.
  void AddForwardOfBackward(const ComparedCall& call, CallInputs& inputs) {
    if (comparison_.of_saves) return;
    const ForwardResult* forward = forward_.Of(call.target_name);
    if (forward == nullptr) return;
    inputs.error = std::max(inputs.error, forward->error);
    for (const Verdict verdict : {forward->inputs, forward->outputs}) {
      inputs.forward_is_bad = inputs.forward_is_bad || measure::IsBad(verdict);
      if (measure::Severity(verdict) > measure::Severity(inputs.worst)) inputs.worst = verdict;
    }
  }

  void JudgeInput(uint32_t index, ComparedRow& row, CallInputs& inputs) {
    const Difference difference = DifferenceOf(row);
    const double roundoff = RoundoffOf(row);
    inputs.roundoff = std::max(inputs.roundoff, roundoff);
    coarsest_roundoff_ = std::max(coarsest_roundoff_, roundoff);
    const double count = CountOf(*row.golden);
    inputs.second = std::max(inputs.second, std::min(inputs.largest, count));
    inputs.largest = std::max(inputs.largest, count);
    row.error = difference.error;
    if (difference.kind == Difference::Kind::kArgument) {
      if (!fills_.Take(index, IndexOf(row), row)) JudgeArgument(index, difference, row, inputs);
    } else if (const ComparedRow* source = known_.SourceOf(difference, row)) {
      // Contents met before keep the verdict they had there.
      row.verdict = source->verdict;
      row.expected = source->expected;
      row.reason = measure::IsBad(row.verdict) ? "inherited" : source->reason;
      if (!measure::IsBad(row.verdict)) MarkProducerGood(index, row);
    } else if (!fills_.Take(index, IndexOf(row), row)) {
      JudgeFreshInput(index, difference, inputs.forward_is_bad, row);
    }
    inputs.has_other_fill = inputs.has_other_fill || row.reason == OtherFills::kReason;
    if (std::isfinite(row.error)) inputs.error = std::max(inputs.error, row.error);
    if (row.verdict == Verdict::kWithinNoise && row.expected > AtMostNoise(row.expected)) {
      inputs.cancelled = std::max(inputs.cancelled, row.expected);
    }
    if (row.golden->is_tensor) {
      const bool is_known = std::isfinite(row.error) && row.error > 0;
      inputs.hide_errors = inputs.hide_errors || measure::IsFilled(*row.golden);
      inputs.operands.push_back({&*row.golden, is_known ? row.error : HiddenError(row)});
    }
    if (measure::Severity(row.verdict) > measure::Severity(inputs.worst)) {
      inputs.worst = row.verdict;
    }
    known_.Remember(row);
  }

  // Statistics are float32: where runs differ elsewhere, equal ones may hide as much.
  double HiddenError(const ComparedRow& row) const {
    const bool may_differ = noise_level_ > 0 || !unpaired_.empty();
    if (comparison_.mode != CompareMode::kStatistics || !may_differ) return 0;
    return std::min(RoundoffOf(row), UnitRoundoff(DType::kFloat32));
  }

  void JudgeArgument(uint32_t index, const Difference& difference, ComparedRow& row,
                     CallInputs& inputs) {
    // Values read back from tensors carry the noise of the run.
    const double noise = std::max(AtMostNoise(noise_level_), UnitRoundoff(DType::kFloat32));
    const bool is_choice = types_.is_narrower && IsNarrowerType(*row.target, *row.golden);
    if (is_choice || difference.error <= measure::kNoiseFactor * noise) {
      row.verdict = Verdict::kWithinNoise;
      row.expected = noise;
      return;
    }
    row.verdict = Verdict::kBroken;
    row.reason = "argument-differs";
    inputs.arguments.push_back(
        {index, IndexOf(row), CulpritEvent::Kind::kArgument, difference.error, 0});
  }

  void MarkProducerGood(uint32_t index, const ComparedRow& row) {
    // Beside a mask's number the errors of the others vanish.
    if (row.verdict == Verdict::kNotComparable || measure::IsFilled(*row.golden)) return;
    const bool is_close = row.error <= std::sqrt(RoundoffOf(row));
    if (const auto producer = unpaired_.TargetProducer(*row.target, index)) {
      using enum UnpairedCalls::Agreement;
      unpaired_.MarkGood(*producer, is_close ? kClose : kUsual);
    }
  }

  void JudgeFreshInput(uint32_t index, const Difference& difference, bool forward_is_bad,
                       ComparedRow& row) {
    const std::optional<uint32_t> producer = unpaired_.TargetProducer(*row.target, index);
    double explained = std::max(RoundoffOf(row), noise_level_);
    if (const auto sum = GradientSumOf(row, producer.has_value())) {
      const bool is_wrong = measure::IsBad(sum->worst);  // then its error explains nothing
      const double usual = ExplainedFor(row, explained);
      ApplyDifference(difference, is_wrong ? usual : std::max(sum->explained, usual), row);
      if (is_wrong && measure::IsBad(row.verdict)) row.reason = "inherited";
      if (is_wrong || !measure::IsBad(row.verdict)) return;
    }
    const UnpairedCalls::Region region =
        producer ? unpaired_.RegionOf(*producer) : UnpairedCalls::Region();
    // Several calls of another kernel in a row, as in a module.
    if (producer || unpaired_.GoldenProducer(*row.golden)) {
      explained = std::max(explained, kUnseenCalls * region.condition *
                                          std::max(RoundoffOf(row), product_roundoffs_.largest()));
    }
    // So does a gradient, whose sums no recorder sees.
    if (!unpaired_.empty() && IsGradient(row)) {
      explained = std::max(explained, kUnseenCalls * RoundoffOf(row));
    }
    // It may have been kept in a narrower type since it was last seen.
    if (producer) {
      explained = std::max(explained, region.roundoff);
    } else if (noise_level_ > 0 || !unpaired_.empty()) {
      explained = std::max(explained, coarsest_roundoff_);
    }
    ApplyDifference(difference, ExplainedFor(row, explained), row);
    if (!measure::IsBad(row.verdict)) {
      MarkProducerGood(index, row);
      if (std::isfinite(row.error) && difference.kind == Difference::Kind::kNumeric && producer) {
        noise_level_ = std::max(noise_level_, row.error);
      }
      return;
    }
    if (forward_is_bad) {  // the gradient of another value is another gradient
      row.reason = "inherited";
      return;
    }
    if (row.reason.empty()) row.reason = "input-differs";
    CulpritEvent event{index, IndexOf(row), CulpritEvent::Kind::kInput, row.error, row.expected};
    event.has_other_source = producer || unpaired_.GoldenProducer(*row.golden);
    if (producer) {
      event.call = unpaired_.ToBlame(*producer);
      event.kind = CulpritEvent::Kind::kUnpaired;
    }
    found_.events.push_back(event);
  }

  bool IsGradient(const ComparedRow& row) const {
    return row.golden->is_tensor && !comparison_.of_saves &&
           KindOfCall(comparison_.calls[row.call].name()) == CallKind::kBackward;
  }

  // Gradients of a parameter that several calls read are added up where no recorder sees it; what
  // an optimizer reads is the sum.
  std::optional<GradientSums::Sum> GradientSumOf(const ComparedRow& row, bool has_producer) const {
    if (IsGradient(row)) return sums_.Find(row);
    const bool is_made = has_producer || unpaired_.GoldenProducer(*row.golden);
    if (!row.golden->is_tensor || comparison_.of_saves || is_made) return std::nullopt;
    return sums_.FindTerms(row);
  }

  Explained ExplainedErrors(uint32_t index, CallClass call_class, const CallInputs& inputs,
                            const ComparedRow& row) {
    double roundoff = std::max(inputs.roundoff, RoundoffOf(row));
    const bool may_multiply = call_class == CallClass::kProduct ||
                              call_class == CallClass::kDefault ||
                              call_class == CallClass::kComposite;
    const std::string& name = comparison_.calls[index].target_name;
    if (may_multiply && roundoff > 0) roundoff = std::max(roundoff, product_roundoffs_.Of(name));
    coarsest_roundoff_ = std::max(coarsest_roundoff_, roundoff);
    const double length =
        measure::ReductionLength(inputs.largest, inputs.second, CountOf(*row.golden));
    const Item& result = measure::IsAllZero(*row.golden) ? *row.target : *row.golden;
    const Item* incoming = inputs.operands.empty() ? nullptr : inputs.operands.front().golden;
    const measure::Propagation propagation =
        measure::Joined(measure::PropagationTo(result, name, inputs.operands),
                        forward_.ConditionOf(name, incoming, result), inputs.operands);
    const double rounding = measure::OwnError(call_class, roundoff, length);
    const double own = propagation.amplification * propagation.own_factor * rounding;
    const double explained_error = FromInputs(index, call_class, inputs, propagation) + own;
    Explained errors;
    errors.usual = ExplainedFor(row, explained_error);
    errors.alone = ExplainedFor(row, own + noise_level_);
    if (measure::IsExact(*row.target, *row.golden)) return errors;
    // Where the terms of a sum leave nothing but their rounding, no ceiling holds.
    const double terms = rounding + (measure::IsBad(inputs.worst) ? 0 : inputs.error);
    errors.cancelled = propagation.cancellation * (propagation.cancellation > 1 ? terms : rounding);
    // What is done to such a value alone changes its size, not its error.
    if (inputs.operands.size() == 1)
      errors.cancelled = std::max(errors.cancelled, inputs.cancelled);
    return errors;
  }

  void JudgeOutput(uint32_t index, CallClass call_class, const CallInputs& inputs,
                   ComparedRow& row) {
    GradeOutput(index, call_class, inputs, row);
    if (IsGradient(row)) sums_.Remember(IndexOf(row));
  }

  // Results that mean nothing: no gradient on either side, memory that nobody wrote, a mask.
  bool IsNotJudged(CallClass call_class, const CallInputs& inputs, ComparedRow& row) {
    const auto say = [&](std::string_view reason) {
      row.verdict = Verdict::kNotComparable;
      row.reason = reason;
      return true;
    };
    if (comparison_.of_saves && !row.target->dtype && !row.golden->dtype) {
      row.error = std::nan("");
      return say("both-null");
    }
    if (call_class == CallClass::kUninitialised) return say("uninitialised");
    if (!inputs.has_other_fill || !measure::AreOtherFills(*row.target, *row.golden)) return false;
    row.error = 1;
    say(OtherFills::kReason);
    known_.Remember(row);
    return true;
  }

  void GradeOutput(uint32_t index, CallClass call_class, const CallInputs& inputs,
                   ComparedRow& row) {
    Difference difference = DifferenceOf(row);
    row.error = difference.error;
    if (IsNotJudged(call_class, inputs, row)) return;
    const Explained errors = ExplainedErrors(index, call_class, inputs, row);
    difference = measure::AsResidue(difference, errors.cancelled);
    ApplyDifference(difference, std::max(errors.usual, errors.cancelled), row);
    known_.Remember(row);
    bool explained = measure::IsBad(inputs.worst);
    // Other calls may come to the same: what agrees although its inputs do not is good.
    const bool agrees = row.error <= measure::kNoiseFactor * errors.alone;  // false for NaN
    if (explained && !unpaired_.empty() && agrees) {
      ApplyDifference(difference, errors.alone, row);
      explained = false;
    }
    if (difference.kind == Difference::Kind::kNumeric && explained) {
      // The inputs are wrong already: this call is not to blame, and its result is not good either.
      if (measure::Severity(inputs.worst) > measure::Severity(row.verdict)) {
        row.verdict = inputs.worst;
      }
      row.reason = "inherited";
      return;
    }
    if (!measure::IsBad(row.verdict)) {
      const bool is_usual = row.error <= measure::kNoiseFactor * errors.usual;  // false for NaN
      if (is_usual && difference.kind == Difference::Kind::kNumeric) {
        noise_level_ = std::max(noise_level_, row.error);
      }
      return;
    }
    if (explained) {
      row.reason = "inherited";
      return;
    }
    const ComparedCall& call = comparison_.calls[index];
    if (difference.kind == Difference::Kind::kNumeric && forward_.IsIdentity(call.target_name) &&
        forward_.IsGradientOfANode(call)) {
      row.verdict = Verdict::kNotComparable;
      row.reason = "other-node";
      row.error = std::nan("");  // explains nothing where the value is read
      return;
    }
    if (row.reason.empty()) row.reason = "exceeds-noise";
    if (inputs.has_other_fill && fills_.first()) found_.events.push_back(*fills_.first());
    CulpritEvent event{index, IndexOf(row), CulpritEvent::Kind::kOutput, row.error, row.expected};
    // The derivative of another computation is another gradient.
    event.has_other_source = unpaired_.IsUnpaired(ForwardNameOf(comparison_.calls[index].name()));
    found_.events.push_back(event);
  }

  // What the inputs explain: certain where all are measured and the kind of call is known.
  double FromInputs(uint32_t index, CallClass call_class, const CallInputs& inputs,
                    const measure::Propagation& propagation) const {
    const bool is_known_kind =
        call_class == CallClass::kCopy || call_class == CallClass::kElementwise ||
        call_class == CallClass::kReduction || call_class == CallClass::kProduct;
    const std::string& name = comparison_.calls[index].target_name;
    if (comparison_.mode == CompareMode::kTensor && is_known_kind && !inputs.hide_errors &&
        KindOfCall(name) == CallKind::kForward) {
      return propagation.from_inputs * measure::kPropagationFactor / measure::kNoiseFactor;
    }
    double explained = std::max({inputs.error, propagation.from_inputs, noise_level_});
    // The derivative jumps: a share of elements as large as the forward error changes sides.
    if (KindOfCall(name) == CallKind::kBackward && measure::HasSteps(name)) {
      explained = std::max(explained, std::sqrt(inputs.error));
    }
    return explained;
  }

  // Errors explain errors only up to a ceiling: each may be eight times the one before.
  [[nodiscard]] double AtMostNoise(double explained) const {
    return std::min(explained, measure::LargestNoise(coarsest_roundoff_) / measure::kNoiseFactor);
  }
  [[nodiscard]] double ExplainedFor(const ComparedRow& row, double explained) const {
    // What a correct run did is explained, whatever the model says.
    const double measured = measured_noise_.empty() ? 0 : measured_noise_[IndexOf(row)];
    const bool exact = measure::IsExact(*row.target, *row.golden);
    return std::max(exact ? 0 : AtMostNoise(explained), measured);
  }

  uint32_t IndexOf(const ComparedRow& row) const {
    return static_cast<uint32_t>(&row - comparison_.rows.data());
  }

  const plumbline::Run& run_;
  Comparison& comparison_;
  const std::span<const double> measured_noise_;  // per row; empty: none
  std::unordered_set<std::string_view> parents_with_children_;
  KnownContents known_;
  ForwardCalls forward_;
  GradientSums sums_;
  // Largest error of any result so far that counted as noise: what correct calls of these two runs
  // are known to do. Statistics can hide the error of an input, so nothing below is alarming.
  double noise_level_ = 0;
  double coarsest_roundoff_ = 0;  // of any tensor so far
  ProductRoundoffs product_roundoffs_;
  OtherFills fills_;
  TypeChoice types_;
  UnpairedCalls unpaired_;
  Findings found_;
  DifferencesAhead ahead_;
};

}  // namespace

Walk WalkCalls(const Run& target, const measure::PairContext& context, Comparison& comparison,
               std::span<const double> measured_noise) {
  Judge judge(target, context, comparison, measured_noise);
  judge.Run();
  return {ChooseCulprit(target, comparison, judge.findings(), judge.unpaired()),
          judge.unpaired().right()};
}

}  // namespace plumbline::pipeline
