#include "pipeline/culprit/other_fills.h"

#include "measure/propagation.h"

namespace plumbline::pipeline {

bool OtherFills::Take(uint32_t call, uint32_t index, ComparedRow& row) {
  if (!measure::AreOtherFills(*row.target, *row.golden)) return false;
  row.verdict = Verdict::kNotComparable;
  row.reason = kReason;
  row.expected = 0;
  row.error = 1;
  const auto kind =
      row.golden->is_tensor ? CulpritEvent::Kind::kInput : CulpritEvent::Kind::kArgument;
  if (!first_) first_ = CulpritEvent{call, index, kind, 1, 0};
  return true;
}

}  // namespace plumbline::pipeline
