// Which known word a mistyped one was meant to be.

#ifndef PLUMBLINE_BASE_NEAREST_TEXT_H_
#define PLUMBLINE_BASE_NEAREST_TEXT_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace plumbline {

// How many characters are to be put in, left out or replaced.
size_t EditDistance(std::string_view a, std::string_view b);

// The one of `known` that is nearest to `word`, the first of several; empty when none is near: more
// than a third of the characters (of two to four: more than one) would have to change, or the word
// is longer than any that is worth a guess.
std::string NearestText(std::string_view word, std::span<const std::string> known);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_NEAREST_TEXT_H_
