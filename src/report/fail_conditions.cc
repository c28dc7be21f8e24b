#include "report/fail_conditions.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumbline::report {

Result<bool> MeetsAny(const MetConditions& met, const std::vector<std::string>& asked) {
  bool meets = false;
  for (const std::string& condition : asked) {
    const auto* found = std::find(kFailConditions.begin(), kFailConditions.end(), condition);
    if (found == kFailConditions.end()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("fail_on: unknown condition \"{}\" (expected suspicious, broken, "
                               "unmatched or any)",
                               condition));
    }
    meets = meets || met[static_cast<size_t>(found - kFailConditions.begin())];
  }
  return meets;
}

}  // namespace plumbline::report
