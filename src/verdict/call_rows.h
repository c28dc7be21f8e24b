// The rows of one call: its arguments and inputs, its verdict, and the order in which rows are
// judged.

#ifndef PLUMBLINE_VERDICT_CALL_ROWS_H_
#define PLUMBLINE_VERDICT_CALL_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "plumbline/compare.h"
#include "verdict/choose_culprit.h"

namespace plumbline::verdict {

// What a call is given, found by place or by keyword.

// Whether `row` is the argument at `place`, counted from 0, or the one of that keyword, of the call
// `call_name`, which is named as the row's item: as on the target where the target has the row.
bool IsArgument(const ComparedRow& row, std::string_view call_name, size_t place,
                std::string_view keyword);

// The first such argument on one side; null where that side leaves it out.
const Item* ArgumentOf(std::span<const ComparedRow> rows, std::string_view call_name,
                       bool of_target, size_t place, std::string_view keyword);

// Whether batch_norm or instance_norm takes on one side the statistics of its input, not the
// running ones. They have this flag at one place in all their forms; where it is left out, PyTorch
// takes those of the input for instance_norm alone.
bool TakesOwnStatistics(std::span<const ComparedRow> rows, std::string_view call_name,
                        bool of_target);

// What the inputs of a call contribute to the verdict on its results, and what they explain.

struct CallInputs {
  double error = 0;                // largest relative error among agreeing or differing inputs
  Verdict worst = Verdict::kSame;  // of inputs, and of the forward call of a backward call
  double roundoff = 0;
  measure::InputSizes sizes;
  bool hide_errors = false;      // next to which the errors of the other elements vanish
  bool is_of_gradient = false;   // an optimizer's: GradientPath
  bool forward_is_bad = false;   // of a backward call
  bool reads_unwritten = false;  // memory of which nothing is made (rightly_different.h)
  bool follows_flip = false;     // reads what a flip changed (rightly_different.h)
  bool is_beside_flip = false;   // its module or one around it holds calls that follow one
  std::optional<uint32_t> flip_inside_from;  // of a module that has one inside alone: first call
  bool has_other_fill = false;               // masked with another number that means the same
  double factor = 1;   // the one number among the arguments, if there is but one
  size_t numbers = 0;  // arguments that are numbers
  std::vector<measure::InputError> operands;
  std::vector<CulpritEvent> arguments;  // that differ
};

// Elements of a tensor; 0 for what is none.
inline double CountOf(const Item& item) { return item.is_tensor ? measure::ElementsOf(item) : 0; }

// Relative errors of a result that are no fault.
struct Explained {
  double usual = 0;      // by the call's own rounding and by its inputs
  double cancelled = 0;  // by a sum whose terms cancel, without a ceiling
  double residue = 0;    // what becomes of operands that are rounding alone; among `cancelled`
  double alone = 0;      // whatever the inputs are
  double own = 0;        // by the call's own rounding
  double hidden = 0;     // the same, of which statistics show a small part
};

// The verdict of one compared row from its difference and from what is explained.

// Fills expected (relative error), error, reason and verdict of `row`.
void ApplyDifference(const measure::Difference& difference, double expected, ComparedRow& row);

// Of a call from its rows: the worst of its results, not comparable without any.
Verdict WorstOfResults(std::span<const ComparedRow> rows);

// Whether a tensor that a call reads is wrong already. Requires: verdicts of its rows.
bool ReadsWrongTensor(std::span<const ComparedRow> rows);

// Whether `argument` of the paired call `name` with these rows may change what no row shows: the
// running statistics that a normalization writes into its inputs, or all that a call does which
// returns nothing, as `__setitem__`. Equal results prove nothing then.
bool MayActUnseen(const ComparedRow& argument, std::string_view name,
                  std::span<const ComparedRow> rows);

// Whether `row` is a running mean or variance that the paired call `name` with `rows` writes into:
// no result of the call depends on it, only what reads it later.
bool IsRunningStatistic(const ComparedRow& row, std::string_view name,
                        std::span<const ComparedRow> rows);

// Whether a row says nothing because one side has no or other data.
bool LacksData(const ComparedRow& row);
// Whether a row of a paired call says nothing because one side has no or other data, or both have
// NaN: such rows count as missing values.
bool IsMissingValue(const ComparedRow& row);

// In which order the calls of a comparison came to be.

// Indices into Comparison::calls, each once. Recorded order, but for gradients of parameters, which
// are listed early and computed last. Saved values: gradients stand behind the values they belong
// to; they arrive after all values, those of later values first.
std::vector<uint32_t> JudgingOrder(const Comparison& comparison);

// The gradients of a module's parameters, which stand in an entry of their own.

// Of one comparison, which must outlive this and keep its calls.
class ParameterGradients {
 public:
  explicit ParameterGradients(const Comparison& comparison);

  // The pair of the gradient of the parameter that `read`, a row of a module's forward call, holds,
  // in the step of that call; null where none was recorded on both sides.
  [[nodiscard]] const ComparedRow* Of(const ComparedRow& read) const;

 private:
  [[nodiscard]] size_t StepOf(uint32_t call) const;

  const Comparison& comparison_;
  std::unordered_map<std::string_view, std::vector<uint32_t>> by_module_;  // calls
};

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_CALL_ROWS_H_
