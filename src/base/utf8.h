// UTF-8, for writers whose readers refuse anything else.

#ifndef PLUMBLINE_BASE_UTF8_H_
#define PLUMBLINE_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace plumbline {

// What some programs write before a text.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// U+FFFD, which stands for what cannot be written.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Bytes of the character at the start of `text`; 0 if it begins with none: a cut or overlong
// sequence, a surrogate, a byte of another encoding. Requires: not empty.
size_t Utf8CharacterBytes(std::string_view text);

bool IsUtf8(std::string_view text);

// Whether a byte goes on with a character that began before it.
inline bool IsUtf8Continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80;
}

// The longest beginning of at most `most_bytes` bytes that cuts no character.
std::string_view Utf8Beginning(std::string_view text, size_t most_bytes);

// Appends a character; a lone surrogate in its three-byte form. Requires: at most U+10FFFF.
void AppendUtf8(uint32_t code_point, std::string& out);

// The text with U+FFFD for every byte that belongs to no character, and for every lone surrogate in
// its three-byte form.
std::string ReplaceInvalidUtf8(std::string_view text);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_UTF8_H_
