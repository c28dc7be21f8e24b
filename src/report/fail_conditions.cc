#include "report/fail_conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace plumbline::report {
namespace {

constexpr std::pair<std::string_view, bool MetConditions::*> kMembers[] = {
    {"wrong", &MetConditions::wrong},   {"unjudged", &MetConditions::unjudged},
    {"any", &MetConditions::differs},   {"suspicious", &MetConditions::suspicious},
    {"broken", &MetConditions::broken}, {"unmatched", &MetConditions::unmatched},
};
static_assert(std::size(kMembers) == kFailConditions.size());

bool IsMet(const MetConditions& met, std::string_view condition) {
  return std::ranges::any_of(kMembers, [&](const auto& member) {
    return (condition == "any" || condition == member.first) && met.*member.second;
  });
}

}  // namespace

void AddCondition(std::string_view name, MetConditions& met) {
  for (const auto& [known, member] : kMembers) {
    if (known == name) met.*member = true;
  }
}

Result<bool> MeetsAny(const MetConditions& met, const std::vector<std::string>& asked) {
  bool meets = false;
  for (const std::string& condition : asked) {
    if (std::ranges::find(kFailConditions, condition) == kFailConditions.end()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("fail_on: unknown condition \"{}\" (expected wrong, unjudged, any, "
                               "suspicious, broken or unmatched)",
                               condition));
    }
    meets = meets || IsMet(met, condition);
  }
  return meets;
}

}  // namespace plumbline::report
