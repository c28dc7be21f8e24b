// Texts taken apart: cut at a character, read as a number as a whole, compared without case. ASCII
// only, no locale.

#ifndef PLUMBLINE_BASE_TEXT_PARTS_H_
#define PLUMBLINE_BASE_TEXT_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

// The parts between `mark`s, borrowed from `text`; at least one, which may be empty.
std::vector<std::string_view> SplitAt(std::string_view text, char mark);

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

#endif  // PLUMBLINE_BASE_TEXT_PARTS_H_
