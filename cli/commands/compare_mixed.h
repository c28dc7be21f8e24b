// `plumb compare` on dumps of MindSpore that hold calls and static graphs side by side.

#ifndef PLUMBLINE_CLI_COMMANDS_COMPARE_MIXED_H_
#define PLUMBLINE_CLI_COMMANDS_COMPARE_MIXED_H_

#include <functional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::cli {

// The two dumps, and where the files go: those of a part into {output}/{folder}/{step}.
struct MixedRequest {
  std::string target, golden, output;
  std::vector<std::string> fail_on;
};

// Whether both are such dumps.
bool AreMixed(const std::string& target, const std::string& golden);

// Compares each part that both have with `compare`, under a heading. A part that cannot be compared
// does not keep the others from it; its error is returned at the end. Otherwise the largest status.
Result<int> CompareMixed(const MixedRequest& request,
                         const std::function<Result<int>(const MixedRequest&)>& compare);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_COMPARE_MIXED_H_
