#include "base/text_parts.h"

#include <charconv>

namespace plumbline {
namespace {

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

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<int64_t> ParseInteger(std::string_view text) { return ParseWhole<int64_t>(text); }

std::optional<int64_t> ParseNatural(std::string_view text) {
  return IsDigits(text) ? ParseWhole<int64_t>(text) : std::nullopt;
}

std::optional<double> ParseReal(std::string_view text) { return ParseWhole<double>(text); }

std::optional<int64_t> NaturalAfter(std::string_view prefix, std::string_view text) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return ParseNatural(text.substr(prefix.size()));
}

}  // namespace plumbline
