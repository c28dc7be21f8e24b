#include "base/memory/bytes.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace plumbline {
namespace {

static_assert(std::endian::native == std::endian::little,
              "loads and stores below copy the machine's order");

template <class T>
void AppendInteger(T value, std::string& out) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  out.append(raw, sizeof(T));
}

}  // namespace

Error ByteReader::TooShort(uint64_t count) const {
  return Error(ErrorCode::kCorrupt,
               fmt::format("ends early at byte {} (expected {} more bytes, got {})", offset_, count,
                           remaining()));
}

template <class T>
Result<T> ByteReader::ReadInteger() {
  if (remaining() < sizeof(T)) return TooShort(sizeof(T));
  T value;
  std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
  offset_ += sizeof(T);
  return value;
}

Result<uint8_t> ByteReader::ReadU8() { return ReadInteger<uint8_t>(); }
Result<uint16_t> ByteReader::ReadU16() { return ReadInteger<uint16_t>(); }
Result<uint32_t> ByteReader::ReadU32() { return ReadInteger<uint32_t>(); }
Result<uint64_t> ByteReader::ReadU64() { return ReadInteger<uint64_t>(); }

Result<std::span<const std::byte>> ByteReader::ReadBytes(uint64_t count) {
  if (remaining() < count) return TooShort(count);
  const auto bytes = bytes_.subspan(offset_, static_cast<size_t>(count));
  offset_ += bytes.size();
  return bytes;
}

Result<std::string_view> ByteReader::ReadText(uint64_t count) {
  PL_TRY_ASSIGN(const auto bytes, ReadBytes(count));
  return AsText(bytes);
}

Result<std::string_view> ByteReader::ReadUntil(char end) {
  const std::string_view rest = AsText(bytes_.subspan(offset_));
  const size_t at = rest.find(end);
  if (at == std::string_view::npos) return TooShort(rest.size() + 1);
  offset_ += at + 1;
  return rest.substr(0, at);
}

Status ByteReader::Skip(uint64_t count) {
  if (remaining() < count) return TooShort(count);
  offset_ += static_cast<size_t>(count);
  return {};
}

Status ByteReader::Seek(uint64_t offset) {
  if (offset > bytes_.size()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("names byte {} but has only {} bytes", offset, bytes_.size()));
  }
  offset_ = static_cast<size_t>(offset);
  return {};
}

void AppendU16(uint16_t value, std::string& out) { AppendInteger(value, out); }
void AppendU32(uint32_t value, std::string& out) { AppendInteger(value, out); }
void AppendU64(uint64_t value, std::string& out) { AppendInteger(value, out); }

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace plumbline
