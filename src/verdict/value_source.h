// Where the values come from that a call reads: the call that made them, and the forward call of a
// gradient.

#ifndef PLUMBLINE_VERDICT_VALUE_SOURCE_H_
#define PLUMBLINE_VERDICT_VALUE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "measure/gradient_condition.h"
#include "plumbline/compare.h"
#include "verdict/contents.h"

namespace plumbline::verdict {

// Where a value of a comparison comes from: the calls that made it, and what stood before the step.

// Whether a call of this name writes into its first input, which no later row of it need show.
bool WritesInPlace(std::string_view name);

// Whether `item` is `made` repeated along an axis, as expand() does, which no recorder sees.
bool IsRepeatOf(const Item& item, const Item& made);

// The call whose result one side of the row is, as far as contents tell: the last before it; where
// golden has none there, a later one that does not read the value itself. One without counterpart
// is preferred. Empty: none recorded.
std::string ProducerOf(const Comparison& comparison, const ComparedRow& row, bool of_target);

// The last call that only one side made before the row and that writes in place into what the row
// reads there: what it was given, or what it took a view of, is the row's value on either side.
// Empty where a recorded call returned that side's value, or nothing writes into it.
std::string WriterInto(const Comparison& comparison, const ComparedRow& row, bool of_target);

// The target call without counterpart from which what `call` (an index) reads comes, at most a few
// calls before it; the nearest. Empty: none.
std::string LoneCallLeadingTo(const Comparison& comparison, uint32_t call);

// Calls that only one side made, each of which leads to a value of that side.
struct LoneCalls {
  size_t count = 0;         // forward or backward calls, whichever `last` is
  std::string first, last;  // in recorded order
};
// Those that lead to the result of the call `source`, which is without counterpart itself. Through
// one value that both sides have no call leads.
LoneCalls LoneCallsBefore(const Comparison& comparison, const std::string& source, bool of_target);

// Another call of the API of `source` without counterpart on its side, to which as many lone calls
// lead (`count`) and whose result arrives at a pair that agrees: there the other side computes the
// same in its own way. Empty: none.
std::string HarmlessTwinOf(const Comparison& comparison, const std::string& source, size_t count,
                           bool of_target);

// Calls numbered alike whose sides are not the same call: one side left out a part of the model,
// and what follows has lower numbers there. Told by an input from outside, such as a weight, that
// the shorter side takes where the longer one takes it in a later call of the same API.
struct SkippedCalls {
  bool by_target = false;
  std::string first, next;  // of the longer side: the call in its place, and the one it truly is
  size_t count = 0;         // calls of that direction which only the longer side has
};
std::optional<SkippedCalls> FindSkippedCalls(const Comparison& comparison, const ComparedRow& row);

// Parameters as they were when the step first used them.
struct ParameterCounts {
  size_t differing = 0;
  size_t all = 0;
};
ParameterCounts CountParameters(const Comparison& comparison);

// What was said of forward calls, for the backward calls that go with them.

struct CallInputs;

struct ForwardResult {
  uint32_t call = 0;
  Verdict inputs = Verdict::kSame;  // the worst
  double read = 0;                  // largest relative error of what it read
  double error = 0;                 // the same, and of what it returned, if good
  Verdict outputs = Verdict::kSame;
  bool follows_flip = false;  // a row is of a flip, or a call inside (rightly_different.h)
};

// Follows one comparison, which must outlive this. Single-threaded.
class ForwardCalls {
 public:
  explicit ForwardCalls(const Comparison& comparison);

  // Whether backward calls of the target were recorded.
  [[nodiscard]] bool has_backward() const { return has_backward_; }

  // Requires: the verdicts of the call's rows, of which `inputs` tell. Nothing is kept where no
  // backward call may ask.
  void Remember(uint32_t call, const CallInputs& inputs);
  // Of a backward call by its name; null where its forward call was not met.
  [[nodiscard]] const ForwardResult* Of(std::string_view backward) const;

  // How the backward call `backward` magnifies errors on the way from `incoming` to `result`.
  [[nodiscard]] measure::GradientCondition ConditionOf(std::string_view backward,
                                                       const measure::InputError* incoming,
                                                       const Item& result) const;
  // The pair that goes with the forward call `forward`; null where none was recorded on both sides.
  [[nodiscard]] const ComparedCall* BackwardOf(uint32_t forward) const;
  // How the forward call `forward` magnifies errors on the way from what it reads to `result`, as
  // the gradients of golden that went through it show: those that its backward call returned, or
  // else what the calls got that made its inputs (a function of several nodes). No more than
  // `most`, and 1 where none did.
  [[nodiscard]] double SlopeOf(uint32_t forward, const Item& result,
                               double most = measure::kMostAmplification) const;
  // The same of its gradient: the error of what it reads over how far that is from where its first
  // result vanishes, along the gradient. Errors of many operands do not average out in it.
  [[nodiscard]] double GradientSlopeOf(uint32_t forward) const;
  // Whether a forward pair through which a gradient went made `value` of golden.
  [[nodiscard]] bool IsMade(const Item& value) const;
  // The forward pairs that read `value` of golden, which required a gradient; the latest first.
  [[nodiscard]] std::vector<uint32_t> ReadersOf(const Item& value) const;
  // Whether forward returned what it read, on both sides. Such a call (dropout that is off, a cast
  // to the same type) may have no node of its own in the graph: what is recorded as its gradient is
  // then that of the call before.
  [[nodiscard]] bool IsIdentity(std::string_view backward) const;
  // Whether the backward call of an identity returns, on the target's side, what was given to it or
  // what stands in another of the target's backward calls: the gradient of a node, of whichever.
  [[nodiscard]] bool IsGradientOfANode(const ComparedCall& identity);

 private:
  // Brings made_ and readers_ up to the last call.
  void Index() const;
  // Golden's gradient of an input that no backward call returned.
  [[nodiscard]] const Item* GradientOfMade(const Item& input) const;

  const Comparison& comparison_;
  bool has_backward_ = false;
  // Few comparisons ask who made or read a value: filled when one does.
  mutable std::vector<uint32_t> not_indexed_;                              // calls since then
  mutable std::unordered_map<ContentKey, uint32_t, ContentKeyHash> made_;  // golden's, by pairs
  mutable std::unordered_map<ContentKey, std::vector<uint32_t>, ContentKeyHash> readers_;
  // In how many rows of the target's backward calls contents stand; counted when first asked for.
  std::optional<std::unordered_map<ContentKey, size_t, ContentKeyHash>> backward_contents_;
  std::unordered_map<std::string_view, ForwardResult> results_;  // by names of the calls
  std::unordered_map<std::string_view, uint32_t> backward_;      // pairs, by the target's names
};

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_VALUE_SOURCE_H_
