// Operands of a call that stand in another order on one side: `u * g` against `g * u`
// (docs/design/verdict.md, "The same operands in another order").

#ifndef PLUMBLINE_PIPELINE_CULPRIT_EXCHANGED_OPERANDS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_EXCHANGED_OPERANDS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "measure/cause_class.h"
#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

struct WalkState;

// Finds inputs of a call that are golden's in another order where the call returns the same all the
// same, and the gradients of that call, which stand in the other order too. Holds those of one call
// at a time. Follows one comparison in judging order.
class ExchangedOperands {
 public:
  // The code of a row whose counterpart is another row's.
  static constexpr std::string_view kReason = "operands-exchanged";

  explicit ExchangedOperands(const measure::PairContext& context);

  // Looks at a paired call. Requires: the walk has come to it.
  void Enter(const WalkState& state, const ComparedCall& call);
  // If `row`, of the call entered last, is exchanged with another: gives it the error and the
  // reason of its true pair, says that it agrees, and returns true.
  bool Take(const WalkState& state, ComparedRow& row) const;

 private:
  // Pairs what differs among the tensors of `role`, each with golden's of another row, into
  // errors_; all of them or none. False where nothing differs or a value has no partner.
  bool Pair(const WalkState& state, const ComparedCall& call, ItemRole role);
  // Whether the results are those of the inputs in golden's order.
  [[nodiscard]] bool ResultsAgree(const WalkState& state, const ComparedCall& call) const;

  const measure::PairContext context_;
  std::unordered_set<std::string_view> forward_calls_;  // of the target, with exchanged inputs
  std::unordered_map<uint32_t, double> errors_;         // of the true pairs, by row
};

// Of an input that differs: that the call takes golden's values in another order, as far as digests
// or statistics tell. Nothing where it does not.
std::optional<measure::Cause> ExchangeCause(const Comparison& comparison, const ComparedRow& row);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_EXCHANGED_OPERANDS_H_
