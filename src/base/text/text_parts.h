// Parts of texts: characters of UTF-8, the nearest of known words, texts cut and read as numbers.

#ifndef PLUMBLINE_BASE_TEXT_TEXT_PARTS_H_
#define PLUMBLINE_BASE_TEXT_TEXT_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

// UTF-8, for writers whose readers refuse anything else.

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

// Which known word a mistyped one was meant to be.

// How many characters are to be put in, left out or replaced.
size_t EditDistance(std::string_view a, std::string_view b);

// The one of `known` that is nearest to `word`, the first of several; empty when none is near: more
// than a third of the characters (of two to four: more than one) would have to change, or the word
// is longer than any that is worth a guess.
std::string NearestText(std::string_view word, std::span<const std::string> known);

// Texts taken apart: cut at a character, read as a number as a whole, compared without case. ASCII
// only, no locale.

// The parts between `mark`s, borrowed from `text`; at least one, which may be empty.
std::vector<std::string_view> SplitAt(std::string_view text, char mark);
// The lines of `text` without their ends; none of an empty text.
std::vector<std::string> LinesIn(std::string_view text);

// Without the bytes of `blanks` at both ends, borrowed from `text`.
std::string_view Trimmed(std::string_view text, std::string_view blanks = " \t\r\n");

std::string LowerCase(std::string_view text);

// Whether `text` is one or more decimal digits and nothing else.
bool IsDigits(std::string_view text);

// The number that all of `text` spells. Nothing for an empty text, a leading plus, spaces, and what
// does not fit.
std::optional<int64_t> ParseInteger(std::string_view text);
std::optional<int64_t> ParseNatural(std::string_view text);  // digits only
std::optional<double> ParseReal(std::string_view text);      // also "nan", "-inf", "1e-5"

// The natural number behind `prefix`: 3 of "rank3" with "rank".
std::optional<int64_t> NaturalAfter(std::string_view prefix, std::string_view text);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_TEXT_TEXT_PARTS_H_
