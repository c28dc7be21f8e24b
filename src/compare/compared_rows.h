// The rows of a comparison: filled, counted, and what of the recordings is not among them.

#ifndef PLUMBLINE_COMPARE_COMPARED_ROWS_H_
#define PLUMBLINE_COMPARE_COMPARED_ROWS_H_

#include <string>
#include <string_view>
#include <vector>

#include "match/expand.h"
#include "match/name_match.h"
#include "plumbline/compare.h"

namespace plumbline::compare {

// From pairs of calls to the calls and rows of a comparison.

// Fills calls, rows and the counts of calls, in the order of the pairs. The rows refer to the items
// of both sides; paired items of one name share its text. Runs on the threads of the caller's
// arena.
void BuildRows(const std::vector<match::CallPair>& pairs, std::vector<match::CallItems>& target,
               std::vector<match::CallItems>& golden, Comparison& comparison);

// How many rows a comparison has of each kind.

// Fills the counts of rows and adds to the missing values what no row could judge: values without
// data or of another form on one side, and values that are NaN on both sides, of which a warning
// names the first. NaN in memory that a recorded call left unwritten is none of these: its rows
// become "uninitialised". Requires: the verdicts.
void CountRows(Comparison& comparison);

// Parts of calls that only one of two recordings was asked to keep (`data_mode`): they have nothing
// to be compared with, and are no difference of the models.

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

}  // namespace plumbline::compare

#endif  // PLUMBLINE_COMPARE_COMPARED_ROWS_H_
