// What one walk over the calls knows so far; shared by those who judge inputs and results.

#ifndef PLUMBLINE_VERDICT_WALK_STATE_H_
#define PLUMBLINE_VERDICT_WALK_STATE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "measure/standards.h"
#include "measure/verdict.h"
#include "plumbline/compare.h"
#include "verdict/call_rows.h"
#include "verdict/cause_candidates.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"
#include "verdict/precision_choice.h"
#include "verdict/propagated_error.h"
#include "verdict/unpaired_calls.h"
#include "verdict/value_source.h"

namespace plumbline::verdict {

using measure::kUnseenCalls;

// What these two runs are known to differ by. Relative errors.
class NoiseLevel {
 public:
  // Largest error of any result so far that counted as noise: what correct calls of these two runs
  // are known to do. Statistics can hide the error of an input, so nothing below is alarming.
  [[nodiscard]] double level() const { return level_; }
  // The largest roundoff of any tensor so far.
  [[nodiscard]] double coarsest() const { return coarsest_; }
  void Raise(double error) { level_ = std::max(level_, error); }
  void Coarsen(double roundoff) { coarsest_ = std::max(coarsest_, roundoff); }

  // Errors explain errors only up to a ceiling: each may be eight times the one before.
  [[nodiscard]] double AtMost(double explained) const {
    return std::min(explained, measure::LargestNoise(coarsest_) / measure::kNoiseFactor);
  }

 private:
  double level_ = 0, coarsest_ = 0;
};

// Borrows the comparison and the measured noise.
struct WalkState {
  WalkState(const measure::PairContext& context, Comparison& compared,
            std::span<const double> measured);

  [[nodiscard]] uint32_t IndexOf(const ComparedRow& row) const {
    return static_cast<uint32_t>(&row - comparison.rows.data());
  }
  // Whether it is a tensor of a backward call.
  [[nodiscard]] bool IsGradient(const ComparedRow& row) const;
  // Of a row of a paired call of the block that `ahead` holds.
  [[nodiscard]] measure::Difference DifferenceOf(const ComparedRow& row) const;
  // Roundoff that a pair may show: that of the golden type where the target has no business to
  // round more.
  [[nodiscard]] double RoundoffOf(const ComparedRow& row) const;
  // `explained` below the ceiling, or what a third run measured: what a correct run did is
  // explained, whatever the model says.
  [[nodiscard]] double ExplainedFor(const ComparedRow& row, double explained) const;

  // Whether the row is within noise beyond the ceiling: nothing but the rounding of a sum.
  [[nodiscard]] bool IsResidue(const ComparedRow& row) const {
    return row.verdict == Verdict::kWithinNoise && row.expected > noise.AtMost(row.expected);
  }

  Comparison& comparison;
  const std::span<const double> measured_noise;  // per row; empty: none
  RowsAhead ahead;
  KnownContents known;
  ForwardCalls forward;
  GradientSums sums;
  BiasGradients biases;
  ParameterGradients parameter_gradients;
  GradientPath gradient_path;
  ErrorsBefore before;
  NoiseLevel noise;
  ProductRoundoffs product_roundoffs;
  OtherFills fills;
  ExchangedOperands exchanged;
  TypeChoice types;
  UnpairedCalls unpaired;
  Findings found;
  // Rows of tensors that forward calls read and that require a gradient, by golden's shape. Kept
  // where backward calls were recorded.
  std::map<Shape, std::vector<uint32_t>> trained;
  // Rows of results that differ rightly, or follow (rightly_different.h).
  std::vector<uint32_t> flips;
  std::set<std::string> unwritten_forms;  // types and shapes of memory that nobody wrote
  size_t unwritten_searches = 0;  // in vain (rightly_different.h)
  bool has_gradients = false;     // a backward call was met
  bool has_parts = false;  // calls that saw other parts of the batch: gradients are other sums
};

// Gradients that a call of several nodes gives to what it read, of which no recorder sees the last.

// The relative error, without a ceiling, of the gradient of a value that a backward call gets: by
// way of the distances and losses that read the value in forward, and of the gradients they
// returned for it, of which little may be left. Nothing where no such call is known.
std::optional<double> ExplainedByReaders(const WalkState& state, const ComparedRow& row);

// The same of a gradient that the backward call of such a distance returned.
double ExplainedByDistance(const WalkState& state, const ComparedRow& row, const Item& result);

// Of an error that is explained without a ceiling, as much as may be handed on where `measured`
// was: with tensors what was measured is all there is, statistics show a part.
double HandedOn(const WalkState& state, double explained, double measured);

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_WALK_STATE_H_
