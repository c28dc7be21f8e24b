// Texts packed into letters, for what must stand inside another text.

#ifndef PLUMBLINE_BASE_MEMORY_PACKED_TEXT_H_
#define PLUMBLINE_BASE_MEMORY_PACKED_TEXT_H_

#include <string>
#include <string_view>

namespace plumbline {

// The base64 (RFC 4648, with padding) of a raw deflate stream (RFC 1951) of `text`. The same text
// gives the same letters.
std::string PackText(std::string_view text);
// RFC 4648, with padding.
std::string Base64Of(std::string_view bytes);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_MEMORY_PACKED_TEXT_H_
