// The answer of a rule for one tensor at one step.

#include <algorithm>
#include <utility>

#include "watch/rules/rule.h"

namespace plumbline::watch {
namespace {

// A number as well as it is known, or why it is not.
struct Known {
  Interval value;
  Reasons reasons = 0;
};

class Evaluator {
 public:
  Evaluator(const Rule& rule, const Watched& watched, Outcome& outcome)
      : rule_(rule), watched_(watched), outcome_(outcome) {}

  struct Answer {
    Truth truth = Truth::kUnknown;
    Reasons reasons = 0;
  };

  Answer Of(const Expression& expression) {
    switch (expression.kind) {
      case Expression::Kind::kCondition:
        return OfCondition(expression);
      case Expression::Kind::kNot: {
        Answer answer = Of(expression.parts.front());
        answer.truth = Not(answer.truth);
        return answer;
      }
      default:
        return OfList(expression);
    }
  }

 private:
  Answer OfList(const Expression& list) {
    const bool is_and = list.kind == Expression::Kind::kAnd;
    Answer answer{TruthOf(is_and), 0};
    for (const Expression& part : list.parts) {
      const Answer one = Of(part);
      answer.truth = is_and ? And(answer.truth, one.truth) : Or(answer.truth, one.truth);
      answer.reasons |= one.reasons;
    }
    if (answer.truth != Truth::kUnknown) answer.reasons = 0;
    return answer;
  }

  Answer OfCondition(const Expression& condition) {
    const bool is_other_kind = condition.kinds != 0 && !rule_.takes_any_kind &&
                               (condition.kinds & (watched_.kinds | kAnyTensor)) == 0;
    if (is_other_kind) return {Truth::kFalse, 0};
    if (condition.at_first_step && !watched_.is_first_step) return {Truth::kFalse, 0};
    Answer answer{Truth::kFalse, 0};
    for (const Check& check : condition.checks) {
      const CheckOutcome one = Judge(check);
      answer.truth = Or(answer.truth, one.truth);
      if (one.truth == Truth::kUnknown) answer.reasons |= one.reasons;
      outcome_.checks.push_back(one);
    }
    if (answer.truth != Truth::kUnknown) answer.reasons = 0;
    return answer;
  }

  [[nodiscard]] CheckOutcome Judge(const Check& check) const {
    CheckOutcome outcome;
    outcome.check = &check;
    const Known known = check.quantity == Quantity::kOverflow           ? Overflow()
                        : check.quantity == Quantity::kOperatorOverflow ? OperatorOverflow()
                        : check.of_previous                             ? OfPrevious(check)
                                                                        : OfNow(check);
    outcome.actual = known.value;
    outcome.reasons = known.reasons;
    if (known.reasons != 0) return outcome;
    outcome.truth = Compare(known.value, check.relation, check.threshold);
    if (outcome.truth == Truth::kUnknown) outcome.reasons = watched_.now->doubt;
    return outcome;
  }

  [[nodiscard]] Known Overflow() const {
    const TensorFacts& now = *watched_.now;
    if (now.count == 0U) return {{}, kEmpty};
    const Truth truth = Or(now.has_nan, now.has_inf);
    const Interval both{now.nan_count.low + now.inf_count.low,
                        now.nan_count.high + now.inf_count.high};
    if (truth == Truth::kUnknown) return {both, now.doubt};
    if (truth == Truth::kFalse) return {Interval::Of(0), 0};
    return {{std::max<Interval::Number>(both.low, 1), both.high}, 0};
  }

  [[nodiscard]] Known OperatorOverflow() const {
    if (!watched_.operator_overflowed) return {{}, kMissing};
    return {Interval::Of(*watched_.operator_overflowed ? 1 : 0), 0};
  }

  [[nodiscard]] Known OfPrevious(const Check& check) const {
    if (const Reasons without = WithoutPrevious(); without != 0) return {{}, without};
    const Reasons reasons = NonfiniteIn(*watched_.before, check, kPrevNan, kPrevInf);
    if (reasons != 0) return {{}, reasons};
    return {ValueIn(*watched_.before, check), 0};
  }

  // 0: there is an earlier value.
  [[nodiscard]] Reasons WithoutPrevious() const {
    if (watched_.before == nullptr) return watched_.why_no_previous;
    return rule_.max_gap && watched_.gap > *rule_.max_gap ? Reasons{kNoPrev} : Reasons{0};
  }

  [[nodiscard]] static bool IsCounted(Quantity quantity) {
    return quantity == Quantity::kCount || quantity == Quantity::kNanCount ||
           quantity == Quantity::kInfCount;
  }

  // Why a number of these facts cannot be taken; 0: it can.
  [[nodiscard]] Reasons NonfiniteIn(const TensorFacts& facts, const Check& check, Reasons nan,
                                    Reasons inf) const {
    if (IsCounted(check.quantity)) return 0;
    if (facts.count == 0U) return kEmpty;
    if (rule_.ignores_nonfinite) return 0;
    Reasons reasons = 0;
    if (facts.has_nan == Truth::kTrue) reasons |= nan;
    if (facts.has_inf == Truth::kTrue) reasons |= inf;
    if (reasons != 0) return reasons;
    const bool is_unknown = facts.has_nan == Truth::kUnknown || facts.has_inf == Truth::kUnknown;
    return is_unknown ? facts.doubt : Reasons{0};
  }

  [[nodiscard]] Known OfNow(const Check& check) const {
    const TensorFacts& now = *watched_.now;
    const bool looks_back =
        check.quantity == Quantity::kUpdateRatio || check.quantity == Quantity::kUnchanged;
    // NaN that equals NaN is a value as others.
    const bool takes_nan = check.quantity == Quantity::kUnchanged && check.closeness.equal_nan;
    Reasons reasons = NonfiniteIn(now, check, kNan, kInf);
    if (takes_nan) reasons = static_cast<Reasons>(reasons & ~kNan);
    if (!looks_back) return reasons != 0 ? Known{{}, reasons} : Known{ValueIn(now, check), 0};
    const Reasons without = WithoutPrevious();
    if ((reasons | without) != 0) return {{}, static_cast<Reasons>(reasons | without)};
    return Change(check, takes_nan);
  }

  [[nodiscard]] Known Change(const Check& check, bool takes_nan) const {
    const TensorFacts &now = *watched_.now, &before = *watched_.before;
    if (now.shape && before.shape && *now.shape != *before.shape) return {{}, kPrevShape};
    if (now.count && before.count && *now.count != *before.count) return {{}, kPrevShape};
    Reasons reasons = NonfiniteIn(before, check, kPrevNan, kPrevInf);
    if (takes_nan) reasons = static_cast<Reasons>(reasons & ~kPrevNan);
    if (reasons != 0 || watched_.change == nullptr) {
      return {{}, reasons != 0 ? reasons : now.doubt};
    }
    const ChangeFacts& change = *watched_.change;
    if (check.quantity == Quantity::kUnchanged) {
      const Truth truth =
          check.place < change.unchanged.size() ? change.unchanged[check.place] : Truth::kUnknown;
      if (truth == Truth::kUnknown) return {{0, 1}, static_cast<Reasons>(now.doubt | before.doubt)};
      return {Interval::Of(truth == Truth::kTrue ? 1 : 0), 0};
    }
    const Interval::Number epsilon = check.epsilon;
    const auto part = [](Interval::Number of, Interval::Number whole) {
      // 0 of 0 is no change.
      return of == 0 ? Interval::Number{0} : of / whole;
    };
    return {{part(change.mean_change.low, change.mean_before.high + epsilon),
             part(change.mean_change.high, change.mean_before.low + epsilon)},
            0};
  }

  [[nodiscard]] static Interval ValueIn(const TensorFacts& facts, const Check& check) {
    switch (check.quantity) {
      case Quantity::kAbsMean:
        return facts.abs_mean;
      case Quantity::kMean:
        return facts.mean;
      case Quantity::kMax:
        return facts.max;
      case Quantity::kMin:
        return facts.min;
      case Quantity::kMaxMin:
        return facts.max - facts.min;
      case Quantity::kSd:
        return facts.sd;
      case Quantity::kL2Norm:
        return facts.norm;
      case Quantity::kZeroPercentage:
        return facts.zero_percentage;
      case Quantity::kNanCount:
        return facts.nan_count;
      case Quantity::kInfCount:
        return facts.inf_count;
      case Quantity::kRangePercentage:
        return facts.PartIn(check.range, check.place);
      case Quantity::kCount:
        return facts.count ? Interval::Of(static_cast<Interval::Number>(*facts.count))
                           : Interval{};
      default:
        return {};
    }
  }

  const Rule& rule_;
  const Watched& watched_;
  Outcome& outcome_;
};

}  // namespace

void Evaluate(const Rule& rule, const Watched& watched, Outcome& outcome) {
  outcome.Clear();
  const auto answer = Evaluator(rule, watched, outcome).Of(rule.when);
  outcome.verdict = answer.truth;
  outcome.reasons = answer.reasons;
  if (answer.truth == Truth::kUnknown && answer.reasons == 0) outcome.reasons = kStatisticsOnly;
}

}  // namespace plumbline::watch
