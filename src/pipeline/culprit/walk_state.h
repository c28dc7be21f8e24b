// What one walk over the calls knows so far; shared by those who judge inputs and results.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_WALK_STATE_H_
#define PLUMBLINE_PIPELINE_CULPRIT_WALK_STATE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "measure/standards.h"
#include "measure/verdict.h"
#include "pipeline/culprit/bias_gradients.h"
#include "pipeline/culprit/choose_culprit.h"
#include "pipeline/culprit/errors_before.h"
#include "pipeline/culprit/exchanged_operands.h"
#include "pipeline/culprit/forward_calls.h"
#include "pipeline/culprit/gradient_sums.h"
#include "pipeline/culprit/gradient_trail.h"
#include "pipeline/culprit/known_contents.h"
#include "pipeline/culprit/other_fills.h"
#include "pipeline/culprit/parameter_gradients.h"
#include "pipeline/culprit/product_precision.h"
#include "pipeline/culprit/rows_ahead.h"
#include "pipeline/culprit/type_choice.h"
#include "pipeline/culprit/unpaired_calls.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

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
  GradientTrail trail;
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
  std::vector<uint32_t> flips;  // rows of results that differ rightly, or follow (discrete_flip.h)
  bool has_gradients = false;   // a backward call was met
  bool has_parts = false;       // calls that saw other parts of the batch: gradients are other sums
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_WALK_STATE_H_
