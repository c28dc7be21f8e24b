#include "pipeline/cause_of_call.h"

#include <algorithm>

namespace plumbline::pipeline {

void ExplainCause(const Run& /*target*/, const Run& /*golden*/, Comparison& comparison) {
  if (!comparison.first_wrong_call) return;
  FirstWrongCall& answer = *comparison.first_wrong_call;
  const auto row =
      std::find_if(comparison.rows.begin(), comparison.rows.end(),
                   [&](const ComparedRow& each) { return each.item().name == answer.item; });
  if (row == comparison.rows.end()) return;
  answer.confidence = "high";
  if (row->reason == "argument-differs") {
    answer.cause = "argument";
    answer.cause_text = answer.what;
  } else if (row->reason.ends_with("-differs") && !row->target) {
    answer.cause = "structure";
    answer.cause_text = answer.what;
  } else {
    answer.cause = "unexplained";
    answer.cause_text = answer.what;
    answer.confidence = "low";
  }
}

}  // namespace plumbline::pipeline
