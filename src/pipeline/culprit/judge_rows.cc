#include "pipeline/culprit/judge_rows.h"

#include "pipeline/culprit/culprit_text.h"
#include "pipeline/culprit/divergence.h"

namespace plumbline::pipeline {

void JudgeRows(const Run& target, const measure::PairContext& context, Comparison& comparison,
               std::span<const double> measured_noise) {
  const Walk walk = WalkCalls(target, context, comparison, measured_noise);
  if (!walk.culprit) return;
  comparison.first_wrong_call = DescribeCulprit(target, comparison, *walk.culprit);
}

}  // namespace plumbline::pipeline
