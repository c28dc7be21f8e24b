#include "base/utf8.h"

#include <cstring>

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

}  // namespace plumbline
