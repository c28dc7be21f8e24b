// Parameters between two steps of training: what an optimizer that nothing recorded did to them.

#ifndef PLUMBLINE_VERDICT_OPTIMIZER_STEPS_H_
#define PLUMBLINE_VERDICT_OPTIMIZER_STEPS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/verdict.h"
#include "plumbline/compare.h"
#include "verdict/choose_culprit.h"
#include "verdict/walk_state.h"

namespace plumbline::verdict {

// Steps recorded in directories of their own: what the noise of one step left in parameters and
// running means is in the next, and only the two together tell that it came from noise.

// How far a step may be, in the largest of golden.
inline constexpr double kFurthestStep = 3;
// Whose gradients a step may still remember.
inline constexpr int kRememberedSteps = 8;

// Whether two calls have one name, each in its own step of those that are judged together.
bool IsOneCallOfTwoSteps(std::string_view name, std::string_view other);
// The name of a call as it was recorded, whichever step of them it is in.
std::string NameInItsStep(std::string_view name);

// What judging changes of a comparison, as it was before; the rows are reset.
struct Unjudged {
  std::vector<ComparedCall> calls;
  CompareCounts counts;
};

// What EarlierSteps::JudgeBehind() says.
struct JudgedBehind {
  bool is_judged = false;
  std::optional<CulpritEvent> culprit{};  // the call to name; none: nothing is wrong
};

// The last steps of one rank, judged, without a gap. Move-only; single-threaded.
class EarlierSteps {
 public:
  // Takes over the judged comparison of the step `step`. Behind a wrong call nothing is noise: then
  // all before is forgotten, and of this one no more is kept than that it was there.
  void Add(int64_t step, Comparison comparison);
  void Clear();

  // The last step that was added.
  [[nodiscard]] std::optional<int64_t> last_step() const { return last_; }
  // Whether there is anything that later steps can be judged behind.
  [[nodiscard]] bool empty() const { return steps_.empty(); }

  // Judges `comparison`, the step after last_step(), as if all were one recording. Not judged where
  // that names a call of the steps before or modes differ: then nothing is changed. `before`: of
  // `comparison`, which may have been judged alone. Other arguments as for JudgeRows(). Requires:
  // not empty().
  JudgedBehind JudgeBehind(const Run& target, const measure::PairContext& context, Unjudged before,
                           Comparison& comparison, std::span<const double> measured_noise);

 private:
  struct Step {
    int64_t number = 0;
    Comparison comparison;
    bool is_renumbered = false;  // when it is first needed
  };

  std::deque<Step> steps_;
  std::optional<int64_t> last_;
};

// What optimizers that make no recorded calls (foreach, fused) may turn differing gradients into.

// The relative error that a parameter may have which `row` reads after a step, and a call before
// the step as it was then. With tensors: all of it, where every element moved as far on both sides
// as the relative difference of its gradients explains, and no element further than three times the
// largest of golden. With statistics: what elements may make whose gradients are rounding. Nothing
// where no earlier call read the parameter, no backward call returned its gradient, or an element
// moved otherwise.
std::optional<double> ExplainedByStep(const WalkState& state, const ComparedRow& row);

// Whether `row` reads such a parameter: one that an earlier call read as it was before, and that
// got a gradient on both sides.
bool IsReadAfterStep(const WalkState& state, const ComparedRow& row);

// The rows that may have read, before a step, the parameter that `row` reads; the latest first.
std::vector<const ComparedRow*> ReadBeforeStep(const WalkState& state, const ComparedRow& row);

// What a step made of a parameter that `row` reads behind it.
struct StepTaken {
  std::vector<double> before[2], after[2];  // golden, target
  std::vector<double> gradient;             // golden's of that step; empty: not all of it is known
  // The largest relative error of the gradients that the step may remember.
  double gradient_error = 0;
};
// With tensors: the step before `row`, as IsReadAfterStep() tells it. Nothing without elements.
std::optional<StepTaken> StepBefore(const WalkState& state, const ComparedRow& row);

// Steps of optimizers that nothing recorded, which are a number of times as long as golden's.

struct ScaledStep {
  double factor = 1;     // of the target's step
  double explained = 0;  // by how much noise may make it differ from one
};

// The one number of times that `target` is `golden`, by least squares, where it differs from one by
// more than eight times its own uncertainty and what is left is small: either beside that
// difference, or no more than `rounding`, the probable rounding of each element, explains.
// `error`: relative error that the two have anyway. Requires: lists of one length.
std::optional<ScaledStep> FindFactor(std::span<const double> target, std::span<const double> golden,
                                     std::span<const double> rounding, double error);

// Of the step before `row`, which reads a parameter. A weight may agree within the noise although
// its step does not. Noise moves elements one by one: no two steps differ by one factor because of
// it, but for the noise of a norm by which all gradients are limited, which is no more than theirs.
// Steps that do not depend on the size of a gradient (Adam) show nothing.
std::optional<ScaledStep> FindScaledStep(const WalkState& state, const ComparedRow& row);

// What is said of it.
CulpritFact FactOf(const ScaledStep& step);

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_OPTIMIZER_STEPS_H_
