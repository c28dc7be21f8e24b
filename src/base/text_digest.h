// MD5 and SHA-1, which other tools' tables hold as hexadecimal text. For recognising equal bytes;
// neither is safe against intent.

#ifndef PLUMBLINE_BASE_TEXT_DIGEST_H_
#define PLUMBLINE_BASE_TEXT_DIGEST_H_

#include <cstddef>
#include <span>
#include <string>

namespace plumbline {

// Of all the bytes, in lower-case hexadecimal digits: 32 (RFC 1321) and 40 (RFC 3174).
std::string Md5Hex(std::span<const std::byte> bytes);
std::string Sha1Hex(std::span<const std::byte> bytes);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_TEXT_DIGEST_H_
