#include "commands/compare_mixed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/file/file.h"
#include "commands.h"
#include "load/detect.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

void PrintAlone(const std::vector<std::string>& parts, const char* side) {
  for (const std::string& part : parts) Print(fmt::format("{}: only in {}\n", part, side));
}

bool CountsAlone(const std::vector<std::string>& fail_on) {
  return std::ranges::any_of(fail_on, [](const std::string& condition) {
    return condition == "unjudged" || condition == "unmatched" || condition == "any";
  });
}

}  // namespace

bool AreMixed(const std::string& target, const std::string& golden) {
  return load::IsMixedDump(target) && load::IsMixedDump(golden);
}

Result<int> CompareMixed(const MixedRequest& request,
                         const std::function<Result<int>(const MixedRequest&)>& compare) {
  PL_TRY_ASSIGN(const load::MixedParts parts, load::FindMixedParts(request.target, request.golden));
  if (parts.common.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: no step in common with {} (expected graph/STEP or pynative/STEP "
                             "on both sides)",
                             request.target, request.golden));
  }
  int status = 0;
  std::optional<Error> failed;
  for (const std::string& part : parts.common) {
    Print(fmt::format("== {}\n", part));
    const MixedRequest each{JoinPath(request.target, part), JoinPath(request.golden, part),
                            JoinPath(request.output, part), request.fail_on};
    const Result<int> found = compare(each);
    if (found) {
      status = std::max(status, *found);
    } else {
      Print(fmt::format("not judged: {}\n", found.error().message()));
      if (!failed) failed = found.error();
    }
  }
  PrintAlone(parts.target, "target");
  PrintAlone(parts.golden, "golden");
  if (failed) return *std::move(failed);
  const bool is_alone = !parts.target.empty() || !parts.golden.empty();
  return is_alone && CountsAlone(request.fail_on) ? kDifferencesFound : status;
}

}  // namespace plumbline::cli
