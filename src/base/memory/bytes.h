// Bounds-checked reading and writing of little-endian integers.

#ifndef PLUMBLINE_BASE_MEMORY_BYTES_H_
#define PLUMBLINE_BASE_MEMORY_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline {

// Cursor over borrowed bytes, which must outlive it and the views it hands out. A read that does
// not fit is kCorrupt, names the offset, and does not move the cursor. Thread-compatible.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<uint8_t> ReadU8();
  Result<uint16_t> ReadU16();
  Result<uint32_t> ReadU32();
  Result<uint64_t> ReadU64();
  // The next `count` bytes, not copied. `count` is compared with what remains first.
  Result<std::span<const std::byte>> ReadBytes(uint64_t count);
  Result<std::string_view> ReadText(uint64_t count);
  // Bytes up to and without the next `end`, which is skipped.
  Result<std::string_view> ReadUntil(char end);
  Status Skip(uint64_t count);
  // kCorrupt if `offset` lies beyond the end; the end itself is allowed.
  Status Seek(uint64_t offset);

  [[nodiscard]] size_t offset() const { return offset_; }
  [[nodiscard]] size_t remaining() const { return bytes_.size() - offset_; }

 private:
  template <class T>
  Result<T> ReadInteger();
  [[nodiscard]] Error TooShort(uint64_t count) const;

  std::span<const std::byte> bytes_;
  size_t offset_ = 0;
};

// Append in little-endian order.
void AppendU16(uint16_t value, std::string& out);
void AppendU32(uint32_t value, std::string& out);
void AppendU64(uint64_t value, std::string& out);

std::string_view AsText(std::span<const std::byte> bytes);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_MEMORY_BYTES_H_
