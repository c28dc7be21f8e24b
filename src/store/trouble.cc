#include "store/trouble.h"

#include <fmt/format.h>

#include "base/log.h"

namespace plumbline {

bool Trouble::Report(Harm harm, std::string_view directory, const Error& error,
                     std::string_view what_now) {
  const std::string& message = error.message();
  const size_t colon = message.rfind(": ");
  const std::string cause = colon == std::string::npos ? message : message.substr(colon);
  {
    const std::lock_guard lock(mutex_);
    const bool is_new_place = directories_.emplace(harm, directory).second;
    // A cause that is silent because of its directory has not been said: it counts elsewhere.
    if (!is_new_place) return false;
    const bool is_covered =
        harm != Harm::kSteps && harm >= Harm::kJournal && causes_.contains({Harm::kSteps, cause});
    if (is_covered || !causes_.emplace(harm, cause).second) return false;
  }
  LogLoss(fmt::format("{}. {}", message, what_now));
  return true;
}

}  // namespace plumbline
