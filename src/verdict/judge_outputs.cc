#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measure/compared_row.h"
#include "measure/elementwise.h"
#include "measure/propagation.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "verdict/call_rows.h"
#include "verdict/cause_candidates.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"
#include "verdict/judge_rows.h"
#include "verdict/recomputed.h"
#include "verdict/rightly_different.h"
#include "verdict/walk_state.h"

namespace plumbline::verdict {
namespace {

using measure::CallClass;
using measure::Difference;

// What the inputs explain: certain where all are measured and the kind of call is known.
double FromInputs(const WalkState& state, const JudgedInputs& judged, double input_error,
                  const measure::Propagation& propagation) {
  const bool is_known_kind =
      judged.call_class == CallClass::kCopy || judged.call_class == CallClass::kElementwise ||
      judged.call_class == CallClass::kReduction || judged.call_class == CallClass::kProduct;
  const Text& name = state.comparison.calls[judged.call].target_name;
  if (state.comparison.mode == CompareMode::kTensor && is_known_kind &&
      !judged.inputs.hide_errors && KindOfCall(name) == CallKind::kForward) {
    return propagation.from_inputs * measure::kPropagationFactor / measure::kNoiseFactor;
  }
  double explained = std::max({input_error, propagation.from_inputs, state.noise.level()});
  // The derivative jumps: a share of elements as large as the forward error changes sides.
  if (KindOfCall(name) == CallKind::kBackward && measure::HasSteps(name)) {
    explained = std::max(explained, std::sqrt(judged.inputs.error));
  }
  return explained;
}

// Whether the gradients that went through the call tell how it magnifies errors. Where elements
// keep relative errors of their own (functions of each element alone) a condition of the whole does
// not.
bool IsToldBySlope(CallClass call_class, std::string_view name) {
  const measure::Amplifier amplifier = measure::AmplifierOfCall(name);
  if (KindOfCall(name) != CallKind::kForward) return false;
  return amplifier == measure::Amplifier::kNormalisation ||
         (amplifier == measure::Amplifier::kNone &&
          (call_class == CallClass::kReduction || call_class == CallClass::kDefault ||
           call_class == CallClass::kComposite));
}

// Steeper than this a loss is all but zero: rounding of what it reads is more than that of its
// kind.
constexpr double kSteep = 8;

// A buffer keeps sums of what the call reads, or of its squares: running statistics, amounts. It is
// as far off as that, over its own size.
measure::Propagation ToBuffer(const JudgedInputs& judged, const Item& buffer) {
  const double size = measure::RmsOf(buffer).value_or(0);
  measure::Propagation propagation;
  for (const measure::InputError& operand : judged.inputs.operands) {
    const double read = measure::RmsOf(*operand.golden).value_or(0);
    const double condition = std::clamp(size > 0 ? std::max(read, read * read) / size : 1, 1.0,
                                        measure::kMostAmplification);
    propagation.amplification = std::max(propagation.amplification, condition);
    propagation.from_inputs = std::max(propagation.from_inputs, condition * operand.error);
  }
  return propagation;
}

// The propagation, where a call is steeper than its kind and the norms of its operands tell. Its
// gradient hangs on what forward read as its result does.
measure::Propagation WithSlope(const WalkState& state, const JudgedInputs& judged,
                               measure::Propagation propagation, const Item& result,
                               double input_error) {
  if (result.role == ItemRole::kBuffer) return ToBuffer(judged, result);
  const Text& name = state.comparison.calls[judged.call].target_name;
  if (state.comparison.of_saves) return propagation;
  if (const ForwardResult* forward = state.forward.Of(name)) {
    const Text& of = state.comparison.calls[forward->call].target_name;
    // An exponential does not vanish.
    // What is normalised is computed again from its mean and deviation, and off by as much.
    const bool is_normal = measure::AmplifierOfCall(of) == measure::Amplifier::kNormalisation;
    const double read =
        std::max(forward->read, is_normal ? measure::RoundoffOf(result, result) : 0);
    const bool is_told = read > 0 && IsToldBySlope(judged.call_class, of) &&
                         measure::GradientKindOf(name) != measure::GradientKind::kExponential;
    const double slope = is_told ? state.forward.GradientSlopeOf(forward->call) : 1;
    propagation.from_inputs = std::max(propagation.from_inputs, slope * read);
    return propagation;
  }
  if (!IsToldBySlope(judged.call_class, name)) return propagation;
  const double slope = state.forward.SlopeOf(judged.call, result);
  propagation.from_inputs = std::max(propagation.from_inputs, slope * input_error);
  if (measure::ElementsOf(result) == 1 && slope > kSteep) {
    constexpr double kUnlimited = std::numeric_limits<double>::max();
    propagation.loss = state.forward.SlopeOf(judged.call, result, kUnlimited) * input_error;
  }
  if (measure::AmplifierOfCall(name) == measure::Amplifier::kNormalisation) {
    propagation.amplification = std::max(propagation.amplification, slope);
  }
  return propagation;
}

// Norm and mean of what is normalised are the same, however far its elements are off.
bool HidesInStatistics(const WalkState& state, std::string_view name,
                       const measure::Propagation& propagation) {
  return state.comparison.mode == CompareMode::kStatistics && propagation.amplification > kSteep &&
         measure::AmplifierOfCall(name) == measure::Amplifier::kNormalisation;
}

// A part of a tensor is no further off than the element of the whole that is: known exactly with
// tensors. So is what a contraction makes of its elements.
double OfPart(const WalkState& state, const JudgedInputs& judged, const Item& result) {
  const Text& name = state.comparison.calls[judged.call].target_name;
  const std::optional<double> size = measure::RmsOf(result);
  const measure::Amplifier amplifier = measure::AmplifierOfCall(name);
  const bool is_exact = state.comparison.mode == CompareMode::kTensor;
  const bool is_contraction = is_exact && amplifier == measure::Amplifier::kContraction;
  if (!size || (amplifier != measure::Amplifier::kPart && !is_contraction)) return 0;
  double largest = 0;
  for (const measure::InputError& operand : judged.inputs.operands) {
    largest = std::max(largest, operand.absolute);
  }
  return largest / *size / (is_exact ? measure::kNoiseFactor : 1);
}

// What rounding alone among the operands makes of the result.
double ResidueOf(const WalkState& state, const JudgedInputs& judged, const Item& result,
                 double cancellation) {
  const Text& name = state.comparison.calls[judged.call].target_name;
  const auto& read = judged.inputs.operands;
  if (!measure::HasResidue(read)) return 0;
  const bool is_forward = KindOfCall(name) == CallKind::kForward;
  const bool is_of_gradient = judged.inputs.is_of_gradient;
  const measure::Amplifier amplifier = measure::AmplifierOfCall(name);
  // What is alike in a whole row is lost there, and anything else is judged by what is read.
  const bool loses =
      amplifier == measure::Amplifier::kSoftmax || amplifier == measure::Amplifier::kNormalisation;
  if (is_forward && !is_of_gradient && loses) return 0;
  const double residue = measure::ResidueError(result, name, read, judged.inputs.factor);
  if (judged.call_class != CallClass::kProduct) return residue;
  // In forward calls it is a step's, which nothing recorded.
  const bool is_behind_step = state.has_gradients || !state.comparison.earlier.empty();
  if (read.size() == 2 && (is_of_gradient || (is_forward && is_behind_step))) {
    const auto handed_on = [&](const measure::InputError& each) {
      return is_of_gradient ? each.residue : HandedOn(state, each.residue, each.error);
    };
    return cancellation * (handed_on(read[0]) + handed_on(read[1]));
  }
  return KindOfCall(name) == CallKind::kBackward ? residue * cancellation : residue;
}

Explained ExplainedErrors(WalkState& state, const JudgedInputs& judged, const ComparedRow& row) {
  double roundoff = std::max(judged.inputs.roundoff, state.RoundoffOf(row));
  const bool may_multiply = judged.call_class == CallClass::kProduct ||
                            judged.call_class == CallClass::kDefault ||
                            judged.call_class == CallClass::kComposite;
  const Text& name = state.comparison.calls[judged.call].target_name;
  if (may_multiply && roundoff > 0) roundoff = std::max(roundoff, state.product_roundoffs.Of(name));
  state.noise.Coarsen(roundoff);
  const Item& result = measure::IsAllZero(*row.golden) ? *row.target : *row.golden;
  const measure::InputError* incoming =
      judged.inputs.operands.empty() ? nullptr : &judged.inputs.operands.front();
  std::vector<measure::InputError> operands = judged.inputs.operands;
  double input_error = judged.inputs.error;
  if (measure::ShareResidues(result, name, judged.inputs.factor, operands)) {
    input_error = std::ranges::max(operands, {}, &measure::InputError::error).error;
  }
  const measure::GradientCondition gradient = state.forward.ConditionOf(name, incoming, result);
  const measure::Propagation propagation =
      WithSlope(state, judged,
                measure::Joined(measure::PropagationTo(result, name, operands), gradient, operands),
                result, input_error);
  const double length =
      std::max(gradient.terms, judged.inputs.sizes.ReductionLengthTo(CountOf(*row.golden)));
  const double rounding = measure::OwnError(judged.call_class, roundoff, length);
  const double own = propagation.amplification * propagation.own_factor * rounding;
  const double explained_error = FromInputs(state, judged, input_error, propagation) + own;
  Explained errors;
  errors.usual = state.ExplainedFor(row, explained_error);
  errors.alone = state.ExplainedFor(row, own + state.noise.level());
  errors.own = state.ExplainedFor(row, own);
  if (HidesInStatistics(state, name, propagation)) errors.hidden = errors.own;
  const auto& read = judged.inputs.operands;
  if (measure::IsExact(*row.target, *row.golden)) {
    // Of rounding alone any truth value may come.
    const bool is_any =
        KindOfCall(name) == CallKind::kForward && !read.empty() &&
        std::ranges::all_of(read, [](const auto& each) { return each.residue > 0; });
    if (is_any) errors.cancelled = std::sqrt(CountOf(*row.golden));
    return errors;
  }
  // Where the terms of a sum leave nothing but their rounding, no ceiling holds.
  const double of_inputs = measure::IsBad(judged.inputs.worst) ? 0 : judged.inputs.error;
  const double terms = rounding + propagation.coherence * of_inputs;
  errors.cancelled = propagation.cancellation * (propagation.cancellation > 1 ? terms : rounding);
  if (!measure::IsBad(judged.inputs.worst)) {
    const double distance =
        std::max({propagation.loss, measure::DistanceError(result, name, read, rounding),
                  ExplainedByDistance(state, row, result), OfPart(state, judged, result)});
    errors.cancelled = std::max(errors.cancelled, HandedOn(state, distance, row.error));
  }
  errors.residue = ResidueOf(state, judged, result, propagation.cancellation);
  errors.cancelled = std::max(errors.cancelled, errors.residue);
  if (state.comparison.mode == CompareMode::kStatistics && judged.inputs.is_of_gradient) {
    errors.cancelled = std::max(
        errors.cancelled, measure::HiddenByElements(result, name, read, judged.inputs.factor));
  }
  return errors;
}

// Results that mean nothing: no gradient on either side, memory that nobody wrote, a mask.
bool IsNotJudged(WalkState& state, const JudgedInputs& judged, ComparedRow& row) {
  const auto say = [&](std::string_view reason) {
    row.verdict = Verdict::kNotComparable;
    row.reason = reason;
    return true;
  };
  if (state.comparison.of_saves && !row.target->dtype && !row.golden->dtype) {
    row.error = std::nan("");
    return say("both-null");
  }
  if (judged.call_class == CallClass::kUninitialised) return say("uninitialised");
  const auto agree = [&] {  // beside NaN the extremes of the other elements may differ
    constexpr size_t kNorm = 3;
    const std::optional<double> norm = NumberOf(row.target->statistics[kNorm]);
    return KeyOf(*row.target) == KeyOf(*row.golden) &&
           (!norm || std::isfinite(*norm) || state.DifferenceOf(row).error == 0);
  };
  if (judged.inputs.reads_unwritten && measure::HasTensors(row) && !agree()) {
    say(kOverwritten);
    state.known.Remember(row);
    return true;
  }
  if (!judged.inputs.has_other_fill || !measure::AreOtherFills(*row.target, *row.golden))
    return false;
  row.error = 1;
  say(OtherFills::kReason);
  state.known.Remember(row);
  return true;
}

// The gradient of a parameter is what a recorded backward call returned, where the contents say so:
// a call that was right made it.
bool IsKnownGradient(const WalkState& state, const Difference& difference, ComparedRow& row) {
  if (row.target->role != ItemRole::kParameterGrad) return false;
  const ComparedRow* source = state.known.SourceOf(difference, row);
  if (source == nullptr || measure::IsBad(source->verdict)) return false;
  row.verdict = source->verdict;
  row.expected = source->expected;
  row.reason = source->reason;
  return true;
}

// The result of a forward call that an earlier row holds as well, on both sides: what a call inside
// of a module returned, or what a module that does nothing read.
bool IsKnownResult(const WalkState& state, const JudgedInputs& judged, const Difference& difference,
                   ComparedRow& row) {
  const bool may_be = judged.call_class == CallClass::kDefault ||
                      judged.call_class == CallClass::kComposite ||
                      judged.call_class == CallClass::kCopy;
  const Text& name = state.comparison.calls[judged.call].target_name;
  if (!may_be || state.comparison.of_saves || KindOfCall(name) != CallKind::kForward) return false;
  const ComparedRow* source = state.known.SourceOf(difference, row);
  if (source == nullptr || !state.IsResidue(*source)) return false;
  row.verdict = source->verdict;
  row.expected = source->expected;
  row.reason = source->reason;
  return true;
}

// The gradient of a module's bias is the sum of the gradients that its backward calls got.
void ExplainBiasGradient(WalkState& state, const ComparedRow& row, Explained& errors) {
  if (row.target->role != ItemRole::kParameterGrad || !row.golden->is_tensor ||
      !row.target->is_tensor || measure::IsMultiple(*row.target, *row.golden)) {
    return;
  }
  errors.cancelled = std::max(errors.cancelled, state.biases.ExplainedFor(row).value_or(0));
}

// Statistics may show less of what becomes of rounding.
void HideResidue(WalkState& state, const JudgedInputs& judged, const Explained& errors,
                 const ComparedRow& row) {
  if (state.comparison.mode == CompareMode::kStatistics && judged.inputs.is_of_gradient &&
      errors.residue > errors.usual) {
    state.gradient_path.Add(*row.golden, errors.residue);
  }
}

// Whether what looks wrong is, element by element, what an optimizer's call makes of its inputs,
// which agree: it is explained whatever its size.
bool IsComputedFromGradient(const WalkState& state, const JudgedInputs& judged,
                            const Difference& difference, ComparedRow& row) {
  if (!measure::IsBad(row.verdict) || !judged.inputs.is_of_gradient) return false;
  if (!FollowsFromInputs(state.comparison, row)) return false;
  const Difference graded = measure::AsResidue(difference, 1);
  if (graded.kind != Difference::Kind::kNumeric) return false;
  ApplyDifference(graded, graded.error / measure::kNoiseFactor, row);
  return true;
}

// Whether a result that only its inputs excuse is not what the call makes of them. Single elements
// are looked at where rounding alone is excused, or where an optimizer made them.
bool IsWrongForItsInputs(const WalkState& state, const JudgedInputs& judged,
                         const Explained& errors, const ComparedRow& row) {
  const bool is_excused =
      row.verdict == Verdict::kWithinNoise && row.error > measure::kNoiseFactor * errors.own;
  if (!is_excused || judged.call_class == CallClass::kComposite) return false;
  const bool is_residue = row.error > measure::kNoiseFactor * errors.usual;
  if (!is_residue && !judged.inputs.is_of_gradient) return false;
  return ContradictsInputs(state.comparison, row, !is_residue);
}

// Whether what looks wrong is what a normalisation makes of its inputs, which agree, or its
// gradient.
bool IsComputedNormal(const WalkState& state, const Difference& difference, ComparedRow& row) {
  if (!measure::IsBad(row.verdict) || difference.kind != Difference::Kind::kNumeric) return false;
  const Text& name = state.comparison.calls[row.call].target_name;
  const bool is_gradient = measure::GradientKindOf(name) == measure::GradientKind::kNormalisation;
  if (!is_gradient && measure::AmplifierOfCall(name) != measure::Amplifier::kNormalisation) {
    return false;
  }
  const ForwardResult* forward = is_gradient ? state.forward.Of(name) : nullptr;
  const auto call = forward == nullptr ? std::nullopt : std::optional(forward->call);
  if (!FollowsFromNormalised(state.comparison, row, call)) return false;
  ApplyDifference(difference, difference.error / measure::kNoiseFactor, row);
  return true;
}

// Whether golden's module returns there what a call inside of it has, from `first` on, and the
// target's module returns something else: no flip inside makes it do so.
bool ReturnsAnother(const Comparison& comparison, uint32_t first, const ComparedRow& row) {
  bool is_known = false;
  const uint32_t begin = comparison.calls[first].first_row;
  for (uint32_t i = comparison.calls[row.call].first_row; i-- > begin;) {
    const ComparedRow& inner = comparison.rows[i];
    if (!measure::HasTensors(inner) || !HasSameContents(*inner.golden, *row.golden)) continue;
    if (HasSameContents(*inner.target, *row.target) && !measure::IsBad(inner.verdict)) return false;
    is_known = true;
  }
  return is_known;
}

// Whether a gradient may follow from a flip that no input shows, whose share in them was within the
// noise: a call behind the flip made the value, or gradients before this one follow. Of the
// gradients of parameters no inputs are recorded.
bool MayFollowFlipUnseen(const WalkState& state, const JudgedInputs& judged,
                         const ComparedRow& row) {
  if (state.flips.empty()) return false;
  const bool is_of_parameter = row.golden->role == ItemRole::kParameterGrad;
  if (!is_of_parameter && !(state.IsGradient(row) && judged.inputs.error > 0)) return false;
  const auto& rows = state.comparison.rows;
  const ForwardResult* forward = state.forward.Of(state.comparison.calls[row.call].target_name);
  if (forward != nullptr && forward->call > rows[state.flips.front()].call) return true;
  return std::ranges::any_of(state.flips,
                             [&](uint32_t each) { return state.IsGradient(rows[each]); });
}

// Whether what looks wrong is a flip of a discrete result, or follows from one.
bool IsOfFlips(WalkState& state, const JudgedInputs& judged, ComparedRow& row) {
  if (!measure::IsBad(row.verdict)) return false;
  if (const std::optional<std::string> flip = ValidFlip(state.comparison, row)) {
    state.flips.push_back(state.IndexOf(row));
    MarkAsFlip(*flip, row);
    return true;
  }
  if (!judged.inputs.follows_flip && !MayFollowFlipUnseen(state, judged, row)) return false;
  const std::optional<uint32_t>& first = judged.inputs.flip_inside_from;
  if (first && ReturnsAnother(state.comparison, *first, row)) return false;
  state.flips.push_back(state.IndexOf(row));
  row.verdict = Verdict::kNotComparable;
  row.reason = kFollowsFlip;
  return true;
}

// A wrong result that its inputs do not explain.
void Blame(WalkState& state, const JudgedInputs& judged, const Difference& difference,
           ComparedRow& row) {
  const ComparedCall& call = state.comparison.calls[judged.call];
  if (difference.kind == Difference::Kind::kNumeric && state.forward.IsIdentity(call.target_name) &&
      state.forward.IsGradientOfANode(call)) {
    row.verdict = Verdict::kNotComparable;
    row.reason = "other-node";
    row.error = std::nan("");  // explains nothing where the value is read
    return;
  }
  if (row.reason.empty()) row.reason = "exceeds-noise";
  if (judged.inputs.has_other_fill && state.fills.first())
    state.found.events.push_back(*state.fills.first());
  CulpritEvent event{judged.call, state.IndexOf(row), CulpritEvent::Kind::kOutput, row.error,
                     row.expected};
  // The derivative of another computation is another gradient.
  event.has_other_source = state.unpaired.IsUnpaired(ForwardNameOf(call.name()));
  state.found.events.push_back(event);
}

// Whether what looks wrong is the gradient of a parameter, a cast of what its backward call
// returned in a narrower type, and within what that type may come to.
bool IsCastGradient(const WalkState& state, const Difference& difference, ComparedRow& row) {
  if (!state.types.is_narrower || row.target->role != ItemRole::kParameterGrad ||
      measure::IsMultiple(*row.target, *row.golden)) {
    return false;
  }
  ApplyDifference(difference, state.ExplainedFor(row, 1), row);
  return !measure::IsBad(row.verdict);
}

void GradeOutput(WalkState& state, const JudgedInputs& judged, ComparedRow& row) {
  Difference difference = state.DifferenceOf(row);
  row.error = difference.error;
  if (IsNotJudged(state, judged, row) || IsKnownGradient(state, difference, row) ||
      IsKnownResult(state, judged, difference, row)) {
    return;
  }
  Explained errors = ExplainedErrors(state, judged, row);
  ExplainBiasGradient(state, row, errors);
  difference = measure::AsResidue(difference, errors.cancelled);
  ApplyDifference(difference, std::max(errors.usual, errors.cancelled), row);
  if (!measure::IsBad(judged.inputs.worst) && IsWrongForItsInputs(state, judged, errors, row)) {
    ApplyDifference(difference, errors.own, row);
  }
  state.known.Remember(row);
  HideResidue(state, judged, errors, row);
  bool explained = measure::IsBad(judged.inputs.worst);
  if (!explained && (IsComputedFromGradient(state, judged, difference, row) ||
                     IsComputedNormal(state, difference, row))) {
    return;
  }
  if (!explained && IsOfFlips(state, judged, row)) return;
  // Other calls may come to the same: what agrees although its inputs do not is good.
  bool agrees = row.error <= measure::kNoiseFactor * errors.alone;  // false for NaN
  if (explained && !agrees && !state.unpaired.empty() &&
      row.error <= measure::kNoiseFactor * state.ExplainedFor(row, 1)) {
    errors.alone = state.ExplainedFor(row, errors.alone + state.before.Through(row));
    agrees = row.error <= measure::kNoiseFactor * errors.alone;
  }
  if (explained && !state.unpaired.empty() && agrees) {
    ApplyDifference(difference, errors.alone, row);
    explained = false;
  }
  if (difference.kind == Difference::Kind::kNumeric && explained) {
    // The inputs are wrong already: this call is not to blame, and its result is not good either.
    if (measure::Severity(judged.inputs.worst) > measure::Severity(row.verdict)) {
      row.verdict = judged.inputs.worst;
    }
    row.reason = "inherited";
    return;
  }
  if (!measure::IsBad(row.verdict)) {
    const bool is_usual = row.error <= measure::kNoiseFactor * errors.usual &&  // false for NaN
                          std::isfinite(errors.usual);  // else nothing is known of it
    // What becomes of rounding alone says nothing of the noise in other values.
    const bool is_of_residue = measure::HasResidue(judged.inputs.operands);
    const bool is_telling = is_usual && !is_of_residue && row.golden->role != ItemRole::kBuffer;
    if (is_telling && difference.kind == Difference::Kind::kNumeric) {
      state.noise.Raise(std::max(row.error, errors.hidden));
    }
    return;
  }
  if (explained) {
    row.reason = "inherited";
    return;
  }
  if (!IsCastGradient(state, difference, row)) Blame(state, judged, difference, row);
}

// What an optimizer makes of a gradient, element by element.
void FollowGradient(WalkState& state, const JudgedInputs& judged, const ComparedRow& row) {
  const bool is_truth = measure::IsExact(*row.target, *row.golden);
  const bool is_by_element = judged.call_class == CallClass::kCopy ||
                             judged.call_class == CallClass::kElementwise || is_truth;
  if (!is_by_element || !measure::IsGood(row.verdict)) return;
  double hidden = 0;
  if (state.comparison.mode == CompareMode::kStatistics) {
    hidden = measure::HiddenByElements(*row.golden, state.comparison.calls[judged.call].name(),
                                       judged.inputs.operands, judged.inputs.factor);
  }
  state.gradient_path.Add(*row.golden, hidden);
  if (is_truth) state.gradient_path.AddTruth(row);
}

}  // namespace

void JudgeOutput(WalkState& state, const JudgedInputs& judged, ComparedRow& row) {
  if (state.exchanged.Take(state, row)) return;
  GradeOutput(state, judged, row);
  if (judged.inputs.is_of_gradient) FollowGradient(state, judged, row);
  if (state.IsGradient(row)) state.sums.Remember(state.IndexOf(row));
}

}  // namespace plumbline::verdict
