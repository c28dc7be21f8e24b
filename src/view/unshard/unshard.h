// A run on many ranks as the run on one rank that it should equal.

#ifndef PLUMBLINE_VIEW_UNSHARD_UNSHARD_H_
#define PLUMBLINE_VIEW_UNSHARD_UNSHARD_H_

#include <cstddef>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::view {

struct UnshardRequest {
  std::string target{};      // directory of a step with several ranks
  std::string golden{};      // recording of one rank: its directory, or that of its step
  std::string output_dir{};  // gets target/ and golden/
  std::string layout{};      // what the user says of it: "tp=2,pp=2"; empty: nothing
};

// What was found out. A plain value.
struct UnshardReport {
  // Recordings of one rank each, of statistics, whose calls have golden's names.
  std::string target{}, golden{};
  size_t ranks = 0;
  std::vector<std::string> layout;  // "TP 2", "PP 2", in words
  std::vector<std::string> plan;    // why: a line for each finding
  // The plan as lines of text, each ended by '\n'.
  [[nodiscard]] std::string Text() const;
};

// Finds out how the ranks of the target share golden's model (tensor, pipeline, expert, sequence,
// context and data parallelism, also combined), from names, shapes and statistics, and writes both
// as recordings that can be compared. What it cannot tell is left without numbers, so that a
// comparison says it was not judged; nothing is taken for equal that was not seen. What the user
// says counts where the recordings do not tell. kInvalidArgument: golden has several ranks, there
// are files in the way, or what the user says contradicts the recordings; kUnsupported for
// recordings without statistics; errors of FindRankPairs() and ReadRankTree().
Result<UnshardReport> Unshard(const UnshardRequest& request);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_UNSHARD_UNSHARD_H_
