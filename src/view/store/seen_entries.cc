#include "view/store/seen_entries.h"

namespace plumbline::view {

void SeenSide::Take(const Call& call, bool grades_overflow) {
  if (call.kind == CallKind::kParametersGrad) gradients.push_back(call.name);
  TakeCommunication(call, communication);
  if (!grades_overflow) return;
  const auto grade = GradeOfCall(call);
  if (grade) overflow.insert_or_assign(call.name, grade->level);
}

}  // namespace plumbline::view
