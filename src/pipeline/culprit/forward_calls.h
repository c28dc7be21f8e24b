// What was said of forward calls, for the backward calls that go with them.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_FORWARD_CALLS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_FORWARD_CALLS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "measure/gradient_condition.h"
#include "pipeline/culprit/content_key.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

struct CallInputs;

struct ForwardResult {
  uint32_t call = 0;
  Verdict inputs = Verdict::kSame;  // the worst
  double read = 0;                  // largest relative error of what it read
  double error = 0;                 // the same, and of what it returned, if good
  Verdict outputs = Verdict::kSame;
  bool follows_flip = false;  // a row is of a flip, or a call inside (discrete_flip.h)
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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_FORWARD_CALLS_H_
