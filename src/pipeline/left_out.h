// Parts of calls that only one of two recordings was asked to keep (`data_mode`): they have nothing
// to be compared with, and are no difference of the models.

#ifndef PLUMBLINE_PIPELINE_LEFT_OUT_H_
#define PLUMBLINE_PIPELINE_LEFT_OUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "match/expand.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// What one side alone recorded of one call: its inputs or its results.
struct LeftOutPart {
  std::string call;
  bool of_target = false;
  std::vector<Item> items;
};

// Of a comparison, in the order of the calls, the target's first. A plain value.
struct LeftOut {
  static constexpr std::string_view kReason = "not-recorded";

  std::vector<LeftOutPart> parts;
  std::vector<std::string> warnings;  // which side lacks what
};

// Takes the inputs of all forward calls, or of all backward calls, or their results, out of the
// calls of one side where the other side has none in any call of that direction, although it
// recorded something else in several. What is left can be paired. The same of the buffers of
// modules, but between two frameworks.
LeftOut TakeLeftOut(std::vector<match::CallItems>& target, std::vector<match::CallItems>& golden,
                    bool across_frameworks);

// Adds what was taken to a judged comparison: rows behind all others, not comparable, which count
// as missing values.
void AddLeftOut(LeftOut left_out, Comparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_LEFT_OUT_H_
