#include "base/text_parts.h"

#include <algorithm>
#include <charconv>

namespace plumbline {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

template <typename Number>
std::optional<Number> ParseWhole(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == end && !text.empty();
  return whole ? std::optional(number) : std::nullopt;
}

}  // namespace

std::vector<std::string_view> SplitAt(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(mark);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool IsDigits(std::string_view text) { return !text.empty() && std::ranges::all_of(text, IsDigit); }

std::optional<int64_t> ParseInteger(std::string_view text) { return ParseWhole<int64_t>(text); }

std::optional<int64_t> ParseNatural(std::string_view text) {
  constexpr size_t kMostSafe = 18;  // digits of numbers that int64_t surely holds
  if (text.size() > kMostSafe) return IsDigits(text) ? ParseWhole<int64_t>(text) : std::nullopt;
  if (text.empty()) return std::nullopt;
  int64_t number = 0;
  for (const char c : text) {
    if (!IsDigit(c)) return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

std::optional<double> ParseReal(std::string_view text) { return ParseWhole<double>(text); }

std::optional<int64_t> NaturalAfter(std::string_view prefix, std::string_view text) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return ParseNatural(text.substr(prefix.size()));
}

}  // namespace plumbline
