#include "report/other_ways.h"

namespace plumbline::report {

OtherWays OtherWaysOf(const Comparison& comparison) {
  OtherWays ways;
  for (const ComparedCall& call : comparison.calls) {
    if (call.unmatched_reason != kOtherWay) continue;
    ways.target += call.target_name.empty() ? 0 : 1;
    ways.golden += call.golden_name.empty() ? 0 : 1;
    if (ways.text.empty()) ways.text = call.unmatched_detail;
  }
  return ways;
}

std::string NarrowedText(const Comparison& comparison) {
  for (const ComparedRow& row : comparison.rows) {
    for (const Note& note : row.notes) {
      if (note.code == kNarrowed) return note.text;
    }
  }
  return {};
}

}  // namespace plumbline::report
