#include "view/store/seen_entries.h"

#include <utility>

#include "view/build_graph.h"

namespace plumbline::view {

void SeenSide::Take(const Call& call, bool grades_overflow) {
  if (call.kind == CallKind::kParametersGrad) gradients.push_back(call.name);
  TakeCommunication(call, communication);
  if (auto lines = MergeLinesOf(call); !lines.empty()) {
    merge_lines.insert_or_assign(call.name, std::move(lines));
  }
  if (!grades_overflow) return;
  const auto grade = GradeOfCall(call);
  if (grade) overflow.insert_or_assign(call.name, grade->level);
}

}  // namespace plumbline::view
