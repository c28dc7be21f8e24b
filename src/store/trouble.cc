#include "store/trouble.h"

#include <fmt/format.h>

#include "base/log.h"

namespace plumbline {

bool Trouble::Report(std::string_view directory, const Error& error, std::string_view what_now) {
  const std::string& message = error.message();
  const size_t colon = message.rfind(": ");
  {
    const std::lock_guard lock(mutex_);
    const bool is_new_place = directories_.emplace(directory).second;
    // A cause that is silent because of its directory has not been said: it counts elsewhere.
    if (!is_new_place) return false;
    if (!causes_.insert(colon == std::string::npos ? message : message.substr(colon)).second) {
      return false;
    }
  }
  LogError(fmt::format("{}. {}", message, what_now));
  return true;
}

}  // namespace plumbline
