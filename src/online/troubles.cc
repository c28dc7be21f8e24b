#include "online/troubles.h"

#include <algorithm>

#include "base/text/number_text.h"

namespace plumbline::online {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A number that is no part of an address becomes '#'.
std::string KindOfMessage(std::string_view message) {
  std::string kind;
  for (size_t i = 0; i < message.size();) {
    if (!IsDigit(message[i])) {
      kind += message[i++];
      continue;
    }
    // Digits and dots together, but for a dot behind them: "7", "10.0.0.7".
    size_t end = i;
    while (end < message.size() &&
           (IsDigit(message[end]) ||
            (message[end] == '.' && end + 1 < message.size() && IsDigit(message[end + 1])))) {
      ++end;
    }
    const std::string_view number = message.substr(i, end - i);
    constexpr std::ptrdiff_t kDotsOfAddress = 3;
    const bool is_address = std::ranges::count(number, '.') == kDotsOfAddress;
    kind += is_address ? number : "#";
    i = end;
  }
  return kind;
}

}  // namespace

bool Troubles::IsNew(std::string_view message) {
  Told& told = told_[KindOfMessage(message)];
  if (told.count++ > 0) return false;
  told.message = message;
  return true;
}

std::vector<std::string> Troubles::Repeated() const {
  std::vector<std::string> lines;
  for (const auto& [kind, told] : told_) {
    if (told.count < 2) continue;
    lines.push_back(CountText(told.count - 1, "time") + " more: " + told.message);
  }
  return lines;
}

}  // namespace plumbline::online
