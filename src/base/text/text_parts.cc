#include "base/text/text_parts.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

namespace plumbline {

namespace {

// ED A0..BF xx: a code point between D800 and DFFF.
bool IsSurrogate(std::string_view text) {
  return text.size() >= 3 && text[0] == '\xED' && static_cast<unsigned char>(text[1]) >= 0xA0 &&
         IsUtf8Continuation(text[1]) && IsUtf8Continuation(text[2]);
}

// Bytes up to the first that belongs to no character.
size_t ValidBytes(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080U;
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = kHighBits;
    if (text.size() - at >= sizeof(eight)) std::memcpy(&eight, text.data() + at, sizeof(eight));
    if ((eight & kHighBits) == 0) {
      at += sizeof(eight);
      continue;
    }
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const size_t size = Utf8CharacterBytes(text.substr(at));
    if (size == 0) break;
    at += size;
  }
  return at;
}

}  // namespace

size_t Utf8CharacterBytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (size == 0 || first > 0xF4 || text.size() < size || IsSurrogate(text)) return 0;
  uint32_t code = first & (0xFFU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if (!IsUtf8Continuation(text[i])) return 0;
    code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  return code < kLeast[size] || code > 0x10FFFF ? 0 : size;
}

bool IsUtf8(std::string_view text) { return ValidBytes(text) == text.size(); }

std::string_view Utf8Beginning(std::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  while (most_bytes > 0 && IsUtf8Continuation(text[most_bytes])) --most_bytes;
  return text.substr(0, most_bytes);
}

void AppendUtf8(uint32_t code_point, std::string& out) {
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
    return;
  }
  const int continuations = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kLead[continuations] | code_point >> (6 * continuations));
  for (int i = continuations - 1; i >= 0; --i) {
    out += static_cast<char>(0x80 | (code_point >> (6 * i) & 0x3F));
  }
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  while (true) {
    const size_t valid = ValidBytes(text);
    out.append(text, 0, valid);
    text.remove_prefix(valid);
    if (text.empty()) return out;
    out += kReplacementCharacter;
    text.remove_prefix(IsSurrogate(text) ? 3 : 1);
  }
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string NearestText(std::string_view word, std::span<const std::string> known) {
  constexpr size_t kLongestWord = 100;
  if (word.size() < 2 || word.size() > kLongestWord) return {};
  const size_t most = std::max<size_t>(word.size() / 3, 1);
  size_t least = most + 1;
  std::string nearest;
  for (const std::string& candidate : known) {
    // Letters in another order are one slip of the fingers and two changes.
    std::string sorted_word(word), sorted_candidate(candidate);
    std::ranges::sort(sorted_word);
    std::ranges::sort(sorted_candidate);
    size_t distance = EditDistance(word, candidate);
    if (distance == 2 && sorted_word == sorted_candidate) distance = 1;
    if (distance == 0 || distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

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

std::vector<std::string> LinesIn(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty()) return {};
  const std::vector<std::string_view> lines = SplitAt(text, '\n');
  return {lines.begin(), lines.end()};
}

std::string_view Trimmed(std::string_view text, std::string_view blanks) {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
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
