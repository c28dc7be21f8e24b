#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "verdict/call_rows.h"
#include "verdict/contents.h"
#include "verdict/judge_rows.h"
#include "verdict/optimizer_steps.h"
#include "verdict/recomputed.h"
#include "verdict/rightly_different.h"
#include "verdict/walk_state.h"

namespace plumbline::verdict {
namespace {

using measure::Difference;

// Statistics are float32: where runs differ, here or elsewhere, they may hide as much.
double HiddenError(const WalkState& state, const ComparedRow& row) {
  const bool may_differ = row.error > 0 || state.noise.level() > 0 || !state.unpaired.empty();
  if (state.comparison.mode != CompareMode::kStatistics || !may_differ) return 0;
  return std::min(state.RoundoffOf(row), UnitRoundoff(DType::kFloat32));
}

// The largest error of one element; with statistics that of the extremes.
double AbsoluteError(const WalkState& state, const ComparedRow& row) {
  if (state.comparison.mode == CompareMode::kTensor) {
    const double* largest = std::get_if<double>(&row.tensor->max_abs_error);
    return largest != nullptr && std::isfinite(*largest) ? *largest : 0;
  }
  double largest = 0;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const std::optional<double> target = NumberOf(row.target->statistics[i]);
    const std::optional<double> golden = NumberOf(row.golden->statistics[i]);
    const double apart = target && golden ? std::abs(*target - *golden) : 0;
    if (std::isfinite(apart)) largest = std::max(largest, apart);
  }
  return largest;
}

void JudgeArgument(WalkState& state, uint32_t call, const Difference& difference, ComparedRow& row,
                   CallInputs& inputs) {
  // Values read back from tensors carry the noise of the run; those that somebody wrote do not.
  const bool is_written = measure::AreWrittenNumbers(*row.target, *row.golden);
  const double of_run = is_written ? 0 : state.noise.AtMost(state.noise.level());
  const double noise = std::max(of_run, UnitRoundoff(DType::kFloat32));
  const bool is_choice = state.types.is_narrower && state.types.starts_at != call &&
                         IsNarrowerType(*row.target, *row.golden);
  if (is_choice || difference.error <= measure::kNoiseFactor * noise) {
    row.verdict = Verdict::kWithinNoise;
    row.expected = noise;
    return;
  }
  row.verdict = Verdict::kBroken;
  row.reason = "argument-differs";
  inputs.arguments.push_back(
      {call, state.IndexOf(row), CulpritEvent::Kind::kArgument, difference.error, 0});
}

void MarkProducerGood(WalkState& state, uint32_t call, const ComparedRow& row) {
  // Beside a mask's number the errors of the others vanish.
  if (row.verdict == Verdict::kNotComparable || measure::IsFilled(*row.golden)) return;
  const bool is_close = row.error <= std::sqrt(state.RoundoffOf(row));
  if (const auto producer = state.unpaired.TargetProducer(*row.target, call)) {
    using enum UnpairedCalls::Agreement;
    state.unpaired.MarkGood(*producer, is_close ? kClose : kUsual);
  }
}

// Gradients of a parameter that several calls read are added up where no recorder sees it; what
// an optimizer reads is the sum.
std::optional<GradientSums::Sum> GradientSumOf(WalkState& state, const ComparedRow& row,
                                               bool has_producer) {
  if (state.IsGradient(row)) return state.sums.Find(row);
  const bool is_made = has_producer || state.unpaired.GoldenProducer(*row.golden);
  if (!row.golden->is_tensor || state.comparison.of_saves || is_made) return std::nullopt;
  if (const auto sum = state.sums.FindTerms(row)) return sum;
  const std::optional<double> explained = state.biases.ExplainedFor(row);
  if (!explained || measure::IsMultiple(*row.target, *row.golden)) return std::nullopt;
  return GradientSums::Sum{Verdict::kSame, *explained};
}

// Whether a forward call (of an optimizer) reads a gradient, or what nothing recorded made.
bool IsGradientReadForward(const WalkState& state, const ComparedRow& row,
                           const std::optional<uint32_t>& producer,
                           const std::optional<uint32_t>& golden_producer) {
  const auto& calls = state.comparison.calls;
  const auto is_forward = [&](const std::optional<uint32_t>& call) {
    return call && KindOfCall(calls[*call].name()) == CallKind::kForward;
  };
  return KindOfCall(calls[row.call].name()) == CallKind::kForward && !is_forward(producer) &&
         !is_forward(golden_producer);
}

// Whether a number that stands for the target's or golden's side of `row` lies between what was
// there before a masked write and the number that was written.
bool IsBetween(const Item& item, const Item& before, const Item& written) {
  const std::optional<double> number = NumberOf(written.statistics[0]);
  const std::optional<double> max = NumberOf(item.statistics[0]),
                              min = NumberOf(item.statistics[1]);
  const std::optional<double> high = NumberOf(before.statistics[0]);
  const std::optional<double> low = NumberOf(before.statistics[1]);
  if (!number || !max || !min || !high || !low) return false;
  const double rounding = UnitRoundoff(DType::kFloat32) * std::abs(*number);
  return *max <= std::max(*high, *number + rounding) && *min >= std::min(*low, *number - rounding);
}

// What `x[mask] = number` left of an optimizer's value; no call returns it. With tensors it is
// computed again; else it tells no more than that it lies where it must, of rounding alone.
bool IsOfMaskedWrite(const WalkState& state, const ComparedRow& row) {
  const ComparedCall* write = MaskedWriteBefore(state.comparison, row);
  if (write == nullptr) return false;
  const auto rows = measure::RowsOf(state.comparison, *write);
  if (state.comparison.mode == CompareMode::kTensor) {
    return state.gradient_path.Has(*rows[0].golden) &&
           FollowsFromWrite(state.comparison, *write, row);
  }
  return state.IsResidue(rows[0]) && IsBetween(*row.target, *rows[0].target, *rows[2].target) &&
         IsBetween(*row.golden, *rows[0].golden, *rows[2].golden);
}

// Whether the row is what an optimizer reads of a gradient, or has made of one.
bool IsOfGradient(WalkState& state, const ComparedRow& row) {
  if (!row.golden->is_tensor || !measure::IsGood(row.verdict) || state.comparison.of_saves) {
    return false;
  }
  if (state.gradient_path.Has(*row.golden)) return true;
  const bool is_forward = KindOfCall(state.comparison.calls[row.call].name()) == CallKind::kForward;
  if (!is_forward || measure::IsAllZero(*row.golden) || !state.biases.ExplainedFor(row)) {
    return false;
  }
  state.gradient_path.Add(*row.golden);
  return true;
}

// Whether what an optimizer reads, which no call returned, follows from what it made of a gradient:
// truth values of one, or a masked write. Then the row is judged.
bool IsMadeOfGradient(WalkState& state, const Difference& difference, ComparedRow& row) {
  if (const ComparedRow* truth = state.gradient_path.TruthOf(row)) {
    ApplyDifference(difference, truth->expected, row);
    return true;
  }
  if (!IsOfMaskedWrite(state, row)) return false;
  const Difference graded = measure::AsResidue(difference, 1);
  const double least = state.comparison.mode == CompareMode::kTensor ? 0 : 1;  // all of it
  ApplyDifference(graded, std::max(graded.error / measure::kNoiseFactor, least), row);
  state.gradient_path.Add(*row.golden);
  return true;
}

// Of `s - x` for a number s, which is not recorded: the rounding of s and the error of x, over what
// is left. One less a similarity may be rounding alone.
std::optional<double> ExplainedAsNumberLess(const WalkState& state, const ComparedRow& row) {
  constexpr uint32_t kMostCalls = 16;  // between x and what reads s - x
  const auto& calls = state.comparison.calls;
  const std::optional<double> left = measure::RmsOf(*row.golden);
  const uint32_t end = calls[row.call].first_row;
  const uint32_t begin = row.call > kMostCalls ? calls[row.call - kMostCalls].first_row : 0;
  for (uint32_t i = end; left && i-- > begin;) {
    const ComparedRow& each = state.comparison.rows[i];
    if (!each.target || !each.golden || measure::IsInput(each) || !each.golden->is_tensor ||
        !measure::IsGood(each.verdict) || !calls[each.call].paired()) {
      continue;
    }
    if (!IsNumberLess(*row.golden, *each.golden) || !IsNumberLess(*row.target, *each.target)) {
      continue;
    }
    const double error = std::isfinite(each.error) ? each.error : 0;
    return (error + state.RoundoffOf(row)) * measure::RmsOf(*each.golden).value_or(0) / *left;
  }
  return std::nullopt;
}

// Whether what no recorded call returned follows from what is recorded: a parameter that an
// optimizer without calls left, a running mean, a number less a result.
bool IsMadeUnseen(WalkState& state, const Difference& difference, ComparedRow& row) {
  if (const std::optional<double> explained = ExplainedByReaders(state, row)) {
    const Difference graded = measure::AsResidue(difference, *explained);
    if (graded.kind == Difference::Kind::kNumeric &&
        graded.error <= measure::kNoiseFactor * *explained) {
      ApplyDifference(graded, HandedOn(state, *explained, graded.error), row);
      return true;
    }
  }
  if (difference.kind != Difference::Kind::kNumeric || state.comparison.of_saves) return false;
  std::optional<double> explained = ExplainedByStep(state, row);
  if (!explained) explained = ExplainedAsRunningMean(state.comparison, row);
  if (!explained && row.golden->is_tensor) explained = ExplainedAsNumberLess(state, row);
  if (!explained || row.error > measure::kNoiseFactor * *explained) return false;
  ApplyDifference(difference, *explained, row);
  return true;
}

// A gradient that agrees, and that an optimizer reads. Of statistics a call cannot be computed
// again; there only sums that are known to leave rounding are followed.
void FollowGradient(WalkState& state, const ComparedRow& row,
                    const std::optional<uint32_t>& producer) {
  if (state.comparison.mode == CompareMode::kTensor && state.has_gradients && row.error > 0 &&
      IsGradientReadForward(state, row, producer, state.unpaired.GoldenProducer(*row.golden))) {
    state.gradient_path.Add(*row.golden);
  }
}

// An optimizer reads what backward returned.
void FollowReturned(WalkState& state, const ComparedRow& source, const ComparedRow& row) {
  const auto& calls = state.comparison.calls;
  if (state.comparison.mode == CompareMode::kTensor &&
      KindOfCall(calls[source.call].name()) == CallKind::kBackward &&
      KindOfCall(calls[row.call].name()) == CallKind::kForward) {
    state.gradient_path.Add(*row.golden);
  }
}

void AddInputEvent(WalkState& state, uint32_t call, const std::optional<uint32_t>& producer,
                   ComparedRow& row) {
  if (row.reason.empty()) row.reason = "input-differs";
  CulpritEvent event{call, state.IndexOf(row), CulpritEvent::Kind::kInput, row.error, row.expected};
  const std::optional<uint32_t> golden_producer = state.unpaired.GoldenProducer(*row.golden);
  event.has_other_source = producer || golden_producer;
  if (state.has_parts && IsGradientReadForward(state, row, producer, golden_producer)) {
    event.must_agree = true;  // of all parts: the same for every cut
  } else if (producer) {
    event.call = state.unpaired.ToBlame(*producer);
    event.kind = CulpritEvent::Kind::kUnpaired;
  }
  // However an optimizer computes its step, it comes to the same.
  if (!state.has_parts && IsReadAfterStep(state, row)) event.must_agree = true;
  // In training a running mean acts on nothing yet: what agrees behind it shows nothing.
  const ComparedCall& reader = state.comparison.calls[row.call];
  if (IsRunningStatistic(row, reader.target_name, measure::RowsOf(state.comparison, reader))) {
    event.must_agree = true;
  }
  state.found.events.push_back(event);
}

// Whether a parameter within the noise was moved a number of times as far as golden's.
bool IsOfScaledStep(WalkState& state, uint32_t call, const Difference& difference,
                    ComparedRow& row) {
  if (row.verdict != Verdict::kWithinNoise || !(row.error > 0)) return false;
  const std::optional<ScaledStep> step = FindScaledStep(state, row);
  if (!step) return false;
  const double ratio = measure::kNoiseFactor * std::abs(step->factor - 1) / step->explained;
  ApplyDifference(difference, row.error / ratio, row);
  row.reason = "input-differs";
  CulpritEvent event{call, state.IndexOf(row), CulpritEvent::Kind::kInput, row.error, row.expected};
  event.must_agree = true;
  event.fact = FactOf(*step);
  state.found.events.push_back(event);
  return true;
}

// A parameter behind a step whose gradients are known: its elements tell more than what correct
// calls of the two runs are known to do, which may be a great deal (results that a key's bias is
// in).
bool IsToldByItsStep(const WalkState& state, const Difference& difference, const ComparedRow& row) {
  constexpr double kUsualRoundoffs = 64;  // by which any step may differ
  const double roundoff = std::max(state.RoundoffOf(row), state.product_roundoffs.largest());
  return state.comparison.mode == CompareMode::kTensor && state.unpaired.empty() &&
         !state.has_parts && !state.types.is_narrower &&
         difference.kind == Difference::Kind::kNumeric &&
         difference.error > measure::kNoiseFactor * kUsualRoundoffs * roundoff &&
         IsReadAfterStep(state, row);
}

// A sum of gradients in a wider type than what went into it: statistics need not show that an
// element of those was rounded otherwise.
double HiddenInTerms(const WalkState& state, const ComparedRow& row) {
  if (state.comparison.mode != CompareMode::kStatistics || !state.IsGradient(row)) return 0;
  return state.noise.coarsest() / std::sqrt(std::max(CountOf(*row.golden), 1.0));
}

// A gradient in a narrower type may come from calls that nobody recorded, with jumps in their
// derivatives. Golden's times a number is none of these.
void ExplainGrown(const WalkState& state, const Difference& difference, ComparedRow& row) {
  const bool may_have_grown = measure::IsBad(row.verdict) && state.types.is_narrower &&
                              state.IsGradient(row) && row.target->is_tensor &&
                              !measure::IsMultiple(*row.target, *row.golden);
  if (may_have_grown) ApplyDifference(difference, state.ExplainedFor(row, 1), row);
}

// Whether the step that left the parameter in `row` had a gradient that follows from a flip.
bool IsLeftByFlip(const WalkState& state, const ComparedRow& row) {
  return std::ranges::any_of(ReadBeforeStep(state, row), [&](const ComparedRow* before) {
    const ComparedRow* own = state.parameter_gradients.Of(*before);
    if (own != nullptr && IsOfFlip(*own)) return true;
    const ComparedCall* backward = state.forward.BackwardOf(before->call);
    return backward != nullptr &&
           std::ranges::any_of(measure::RowsOf(state.comparison, *backward), IsOfFlip);
  });
}

// Whether what no paired call returned may follow from a flip before: it comes from calls of one
// side alone, or is a gradient, was left by a step, or was taken out of one where nobody recorded.
bool FollowsFlipUnseen(const WalkState& state, const std::optional<uint32_t>& producer,
                       bool is_beside, ComparedRow& row) {
  if (state.flips.empty()) return false;
  const bool follows = producer || state.unpaired.GoldenProducer(*row.golden) ||
                       state.IsGradient(row) || IsReadAfterStep(state, row) ||
                       IsLeftByFlip(state, row) ||
                       IsTakenFromFlip(state.comparison, row, state.flips) ||
                       IsNearBehindFlip(state.comparison, row, is_beside);
  if (!follows) return false;
  row.verdict = Verdict::kNotComparable;
  row.reason = kFollowsFlip;
  return true;
}

// Whether the call takes a view of memory that nobody wrote yet, or writes into a part of it.
// `is_known`: such a view returned it.
bool IsOfUnwritten(WalkState& state, ComparedRow& row, bool is_known) {
  constexpr size_t kMostSearches = 4096;  // each looks at hundreds of calls
  if (state.comparison.of_saves || state.unwritten_searches >= kMostSearches ||
      !IsViewedOrWritten(state.comparison, row) ||
      state.unpaired.TargetProducer(*row.target, row.call) ||
      state.unpaired.GoldenProducer(*row.golden) || IsReadAfterStep(state, row)) {
    return false;
  }
  const auto is_met = [&](const Item& golden) { return state.known.Has(golden); };
  const std::string form =
      fmt::format("{} {}", row.golden->dtype.value_or(""), row.golden->shape_text.value_or(""));
  const bool is_of_known_form = state.unwritten_forms.contains(form);
  if (!IsUnwritten(state.comparison, row, is_known, is_of_known_form, is_met)) {
    ++state.unwritten_searches;
    return false;
  }
  state.unwritten_forms.insert(form);
  row.verdict = Verdict::kNotComparable;
  row.reason = kOverwritten;
  return true;
}

void JudgeFreshInput(WalkState& state, uint32_t call, const Difference& difference,
                     const CallInputs& inputs, ComparedRow& row) {
  const std::optional<uint32_t> producer = state.unpaired.TargetProducer(*row.target, call);
  double explained = std::max(state.RoundoffOf(row), state.noise.level());
  if (const auto sum = GradientSumOf(state, row, producer.has_value())) {
    const bool is_wrong = measure::IsBad(sum->worst);  // then its error explains nothing
    const double usual = state.ExplainedFor(row, explained);
    const Difference graded = measure::AsResidue(difference, is_wrong ? 0 : sum->explained);
    ApplyDifference(graded, is_wrong ? usual : std::max(sum->explained, usual), row);
    if (is_wrong && measure::IsBad(row.verdict)) row.reason = "inherited";
    if (is_wrong || !measure::IsBad(row.verdict)) return;
  }
  const UnpairedCalls::Region region =
      producer ? state.unpaired.RegionOf(*producer) : UnpairedCalls::Region();
  // Several calls of another kernel in a row, as in a module.
  if (producer || state.unpaired.GoldenProducer(*row.golden)) {
    explained =
        std::max(explained, kUnseenCalls * region.condition *
                                std::max(state.RoundoffOf(row), state.product_roundoffs.largest()));
  }
  // So does a gradient, whose sums no recorder sees, and one that was summed over other parts.
  if (state.has_parts || (!state.unpaired.empty() && state.IsGradient(row))) {
    explained = std::max(explained, kUnseenCalls * state.RoundoffOf(row));
  }
  // It may have been kept in a narrower type since it was last seen.
  if (producer) {
    explained = std::max(explained, region.roundoff);
  } else if (state.noise.level() > 0 || !state.unpaired.empty()) {
    explained = std::max(explained, state.noise.coarsest());
  } else {
    explained = std::max(explained, HiddenInTerms(state, row));
  }
  if (IsToldByItsStep(state, difference, row)) explained = state.RoundoffOf(row);
  ApplyDifference(difference, state.ExplainedFor(row, explained), row);
  if (measure::IsBad(row.verdict)) {
    explained += state.before.LeadingTo(row);
    ApplyDifference(difference, state.ExplainedFor(row, explained), row);
  }
  ExplainGrown(state, difference, row);
  if (IsOfScaledStep(state, call, difference, row)) return;
  if (!measure::IsBad(row.verdict)) {
    MarkProducerGood(state, call, row);
    FollowGradient(state, row, producer);
    if (std::isfinite(row.error) && difference.kind == Difference::Kind::kNumeric && producer) {
      state.noise.Raise(row.error);
    }
    return;
  }
  if (IsMadeOfGradient(state, difference, row)) return;
  if (IsMadeUnseen(state, difference, row)) return MarkProducerGood(state, call, row);
  if (FollowsFlipUnseen(state, producer, inputs.is_beside_flip, row)) return;
  if (IsOfUnwritten(state, row, /*is_known=*/false)) return;
  if (inputs.forward_is_bad) {  // the gradient of another value is another gradient
    row.reason = "inherited";
    return;
  }
  AddInputEvent(state, call, producer, row);
}

// Whether `row` holds other elements than its `source`, whose statistics are the same on both
// sides: a permutation of them. The same elements have the same error.
bool IsReordered(const WalkState& state, const Difference& difference, const ComparedRow& source) {
  if (state.comparison.mode != CompareMode::kTensor ||
      difference.kind != Difference::Kind::kNumeric) {
    return false;
  }
  // What was transposed on one side alone, and is transposed back.
  if (measure::IsBad(source.verdict)) {
    return difference.error * measure::kNoiseFactor < source.error;  // false for NaN
  }
  if (source.verdict != Verdict::kWithinNoise || state.IsResidue(source)) return false;
  return difference.error > measure::kNoiseFactor * std::max(source.error, source.expected);
}

// Where the contents of `row` were met before and judged; or null. A view of memory that nobody
// wrote yet tells of nothing but its own views.
const ComparedRow* SourceOf(WalkState& state, const Difference& difference, ComparedRow& row) {
  const ComparedRow* source = state.known.SourceOf(difference, row);
  if (source == nullptr || IsReordered(state, difference, *source)) return nullptr;
  if (source->reason != kOverwritten) return source;
  const bool is_view = IsViewed(state.comparison, row) && IsOfUnwritten(state, row, true);
  return is_view ? source : nullptr;
}

// Whether the call writes over what differs here, which then is nobody's fault and explains
// nothing. A file that is missing or damaged is said nevertheless.
bool IsReplaced(const WalkState& state, const Difference& difference, ComparedRow& row) {
  const bool is_told = difference.kind == Difference::Kind::kNumeric ||
                       measure::IsBad(difference.verdict) || !difference.doubt.empty();
  if (!is_told || state.comparison.of_saves) return false;
  const ComparedCall& call = state.comparison.calls[row.call];
  if (!IsOverwritten(row, call.target_name, measure::RowsOf(state.comparison, call))) return false;
  row.verdict = Verdict::kNotComparable;
  row.reason = kOverwritten;
  row.error = difference.error;
  return true;
}

// Asks whether `row` is memory that nobody wrote also where it was not found to differ, and yet a
// view that the call returns of it differs: extreme numbers stood for the whole, or were taken for
// the fill of a mask. Only before a communication that may receive into it.
void LookAtParts(WalkState& state, ComparedRow& row) {
  if (row.reason == kOverwritten || measure::IsBad(row.verdict) ||
      !IsViewed(state.comparison, row) || !IsBeforeReceiver(state.comparison, row)) {
    return;
  }
  const auto rows = measure::RowsOf(state.comparison, state.comparison.calls[row.call]);
  const bool is_other = std::ranges::any_of(rows, [&](const ComparedRow& each) {
    return !measure::IsInput(each) && measure::HasTensors(each) &&
           !(state.DifferenceOf(each).error <= measure::kNoiseFactor * state.RoundoffOf(each));
  });
  if (is_other) (void)IsOfUnwritten(state, row, /*is_known=*/false);
}

}  // namespace

void JudgeInput(WalkState& state, uint32_t call, ComparedRow& row, CallInputs& inputs) {
  const Difference difference = state.DifferenceOf(row);
  if (IsReplaced(state, difference, row)) return;
  const double roundoff = state.RoundoffOf(row);
  inputs.roundoff = std::max(inputs.roundoff, roundoff);
  state.noise.Coarsen(roundoff);
  inputs.sizes.Add(CountOf(*row.golden));
  row.error = difference.error;
  const bool is_exchanged = state.exchanged.Take(state, row);
  if (is_exchanged) {
    // Settled: its true counterpart, which agrees, is another input of the call.
    MarkProducerGood(state, call, row);
  } else if (difference.kind == Difference::Kind::kArgument) {
    if (!state.fills.Take(call, state.IndexOf(row), row))
      JudgeArgument(state, call, difference, row, inputs);
  } else if (const ComparedRow* source = SourceOf(state, difference, row); source != nullptr) {
    // Contents met before keep the verdict they had there.
    row.verdict = source->verdict;
    row.expected = source->expected;
    row.reason = measure::IsBad(row.verdict) ? "inherited" : source->reason;
    if (!measure::IsBad(row.verdict)) MarkProducerGood(state, call, row);
    FollowReturned(state, *source, row);
  } else if (!state.fills.Take(call, state.IndexOf(row), row)) {
    JudgeFreshInput(state, call, difference, inputs, row);
  }
  LookAtParts(state, row);
  if (row.reason == kOverwritten) {
    inputs.reads_unwritten = true;
    return;
  }
  inputs.has_other_fill = inputs.has_other_fill || row.reason == OtherFills::kReason;
  // What a flip changed explains what follows from it by being told so, not by its size.
  const bool is_of_flip = IsOfFlip(row);
  inputs.follows_flip = inputs.follows_flip || is_of_flip;
  const bool explains =
      std::isfinite(row.error) && difference.kind != Difference::Kind::kDecided && !is_of_flip;
  if (explains) inputs.error = std::max(inputs.error, row.error);
  if (row.golden->is_tensor) {
    const double hidden = HiddenError(state, row);
    inputs.error = std::max(inputs.error, hidden);
    if (state.forward.has_backward() && row.golden->requires_grad == true &&
        KindOfCall(state.comparison.calls[call].name()) == CallKind::kForward) {
      state.trained[*row.golden->shape].push_back(state.IndexOf(row));
    }
    const bool is_known = explains && row.error > 0;
    inputs.hide_errors = inputs.hide_errors || measure::IsFilled(*row.golden);
    const double residue = state.IsResidue(row) ? row.expected : 0;
    inputs.operands.push_back(
        {&*row.golden, is_known ? std::max(row.error, hidden) : hidden,
         std::max(residue, state.gradient_path.HiddenIn(*row.golden).value_or(0)),
         is_of_flip ? 0 : AbsoluteError(state, row)});
  } else if (const auto number = NumberOf(row.golden->statistics[0])) {
    inputs.factor = ++inputs.numbers == 1 ? *number : 1;
  }
  inputs.is_of_gradient = inputs.is_of_gradient || IsOfGradient(state, row);
  if (measure::Severity(row.verdict) > measure::Severity(inputs.worst)) {
    inputs.worst = row.verdict;
  }
  if (!is_exchanged) state.known.Remember(row);
}

}  // namespace plumbline::verdict
