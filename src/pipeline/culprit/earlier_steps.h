// Steps recorded in directories of their own: what the noise of one step left in parameters and
// running means is in the next, and only the two together tell that it came from noise.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_EARLIER_STEPS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_EARLIER_STEPS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Whose gradients a step may still remember.
inline constexpr int kRememberedSteps = 8;

// Whether two calls have one name, each in its own step of those that are judged together.
bool IsOneCallOfTwoSteps(std::string_view name, std::string_view other);
// The name of a call as it was recorded, whichever step of them it is in.
std::string NameInItsStep(const std::string& name);

// What judging changes of a comparison, as it was before; the rows are reset.
struct Unjudged {
  std::vector<ComparedCall> calls;
  CompareCounts counts;
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

  // Judges `comparison`, the step after last_step(), as if all were one recording, and fills its
  // first_wrong_call. False where that names a call of the steps before or modes differ: then
  // nothing is changed. `before`: of `comparison`, which may have been judged alone. Other
  // arguments as for JudgeRows(). Requires: not empty().
  bool JudgeBehind(const Run& target, const measure::PairContext& context, Unjudged before,
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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_EARLIER_STEPS_H_
