// Tensors from which a wrong one may have been computed: inputs of the call, of its neighbours, of
// earlier steps.

#ifndef PLUMBLINE_VERDICT_CAUSE_CANDIDATES_H_
#define PLUMBLINE_VERDICT_CAUSE_CANDIDATES_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/pytorch/tensor_file.h"
#include "load/rank_directories.h"
#include "measure/cause_class.h"
#include "measure/verdict.h"
#include "plumbline/compare.h"
#include "plumbline/run.h"

namespace plumbline::verdict {

// Which step of a dump a run is, and which steps of the same dump were recorded before it.

struct StepHistory {
  std::vector<load::StepDirectory> earlier;  // in order of time
  load::StepDirectory own;
  std::string rank_name;  // of the directory in `own`

  // Of the last step recorded before this one; where none is, the number before. Nothing for step
  // 0.
  [[nodiscard]] std::optional<int64_t> step_before() const;
};

// The directory of the dump, of the step and of the rank of a recording, whether they are called so
// or not. Absolute, so that the directories above have names.
struct RunPlace {
  std::string dump_path, step_path, rank_path;
};
RunPlace PlaceOf(const Run& run);
// Of the rank whose files are in `directory`.
RunPlace PlaceOfRank(const std::string& directory);

// By the directories of the place; nothing when they are not those of a dump.
std::optional<StepHistory> StepHistoryOf(const RunPlace& place);

// What can have made parameters differ before the recording of a step begins, in words. Fused and
// foreach optimizers make no calls that are recorded, so that nothing before points at them.
std::string BeforeTheStep(const Run& target, const Run& golden);

// Tensors of a run that may explain a wrong one.

// Two recordings and what was found so far. Borrowed.
struct CauseContext {
  const Run& target;
  const Run& golden;
  const Comparison& comparison;
};

// Open tensor files with what they are. Views stay valid while the object lives.
class CandidateFiles {
 public:
  void Add(std::string name, measure::CauseCandidate::Role role, TensorFile file) {
    files_.push_back(std::move(file));
    facts_.push_back({std::move(name), role});
  }
  [[nodiscard]] std::vector<measure::CauseCandidate> views() const;
  [[nodiscard]] size_t size() const { return files_.size(); }

 private:
  std::deque<TensorFile> files_;
  std::vector<std::pair<std::string, measure::CauseCandidate::Role>> facts_;
};

// Of the pair in row `row_index`: the good inputs and parameters of its call (of a backward call
// also those of the forward call), earlier values of the target with the same statistics, values
// whose norm is that of the difference, the same item at other steps, and that of sibling ranks.
// Files that cannot be read are left out.
CandidateFiles CollectCandidates(const CauseContext& context, uint32_t row_index);

// Whether two items hold the same elements as far as digests or statistics tell.
bool HasSameContents(const Item& a, const Item& b);

// Whether the call of that index can have made what one side of `row` holds. A producer is earlier
// than its consumer; golden's calls may have another order than the comparison's, but one that
// reads the value did not make it.
bool MayMake(const Comparison& comparison, uint32_t maker, const ComparedRow& row, bool of_target);

// The call without counterpart whose result has the contents of the row's target (golden) side;
// empty when there is none.
std::string UnmatchedProducer(const Comparison& comparison, const ComparedRow& row, bool of_target);

// Operands of a call that stand in another order on one side: `u * g` against `g * u`
// (docs/design/verdict.md, "The same operands in another order").

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

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_CAUSE_CANDIDATES_H_
