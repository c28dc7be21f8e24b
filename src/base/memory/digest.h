// Digests: CRC-32 (the checksum upstream calls md5), XOR of words, XXH3-128 (content address), a
// sum over elements that a device computes too, MD5 and SHA-1.

#ifndef PLUMBLINE_BASE_MEMORY_DIGEST_H_
#define PLUMBLINE_BASE_MEMORY_DIGEST_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "plumbline/result.h"

namespace plumbline {

// CRC-32 with zlib's polynomial and conventions, continued from `crc` (0 to start). Empty input
// returns `crc`. Check value: "123456789" gives 0xcbf43926.
uint32_t Crc32(std::span<const std::byte> bytes, uint32_t crc = 0);
// CRC-32 of two runs one after the other, from theirs; `second_bytes` is the length of the second.
uint32_t Crc32Combine(uint32_t first, uint32_t second, uint64_t second_bytes);
// CRC-32C (Castagnoli), for journal records.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);
// Eight lower-case hex digits.
std::string Crc32Hex(uint32_t crc);

// XOR of the little-endian 64-bit words of the bytes, zero-padded to whole words.
uint64_t XorOfWords(std::span<const std::byte> bytes);
// The same of two runs one after the other; `first_bytes` is the length of the first.
uint64_t XorCombine(uint64_t first, uint64_t second, uint64_t first_bytes);
// "0x" and sixteen lower-case hex digits.
std::string XorHex(uint64_t words);

struct Digest128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend auto operator<=>(const Digest128&, const Digest128&) = default;
};

// A digest that any device computes in parallel: two sums modulo 2^64 over the elements, each mixed
// with its number in row-major order (docs/formats/dump_json.md has the definition;
// python/plumbline/pytorch/device computes the same). Zeros for an empty tensor.
// Adds elements of 1, 2, 4 or 8 bytes, the first of them number `first`. One of 16 bytes is two of
// 8: `first` counts these.
void AddToPositionDigest(std::span<const std::byte> elements, size_t element_bytes, uint64_t first,
                         Digest128* digest);
// 32 lower-case hex digits, `high` first.
std::string PositionDigestHex(const Digest128& digest);

// XXH3-128 of bytes that are all there.
Digest128 Xxh3Of(std::span<const std::byte> bytes);

// XXH3-128 over bytes that arrive in pieces; equal to the digest of their concatenation. Allocates
// nothing. Thread-compatible.
class Xxh3 {
 public:
  static constexpr size_t kStateBytes = 576;

  Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;
  void Reset();
  void Update(std::span<const std::byte> bytes);
  [[nodiscard]] Digest128 Finish() const;

 private:
  alignas(64) std::byte state_[kStateBytes];  // XXH3_state_t, kept out of this header
};

// MD5 and SHA-1, which other tools' tables hold as hexadecimal text. For recognising equal bytes;
// neither is safe against intent. By OpenSSL, which is loaded with the first of them.

// Of all the bytes, in lower-case hexadecimal digits: 32 (RFC 1321) and 40 (RFC 3174). A
// configuration of OpenSSL that allows safe digests only (FIPS) does not matter. kUnsupported where
// the library is missing or was built without them: then it is so for all bytes. Thread-safe.
Result<std::string> Md5Hex(std::span<const std::byte> bytes);
Result<std::string> Sha1Hex(std::span<const std::byte> bytes);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_MEMORY_DIGEST_H_
