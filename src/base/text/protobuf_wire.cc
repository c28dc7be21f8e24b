#include "base/text/protobuf_wire.h"

#include <fmt/format.h>

#include <bit>

#include "base/memory/bytes.h"

namespace plumbline::protobuf {
namespace {

constexpr uint64_t kWireMask = 7;
constexpr unsigned kWireBits = 3;
constexpr uint64_t kPayloadMask = 0x7f;

void AppendVarint(uint64_t value, std::string& out) {
  for (; value > kPayloadMask; value >>= 7) {
    out += static_cast<char>((value & kPayloadMask) | 0x80);
  }
  out += static_cast<char>(value);
}

void AppendTag(uint64_t number, Wire wire, std::string& out) {
  AppendVarint(number << kWireBits | static_cast<uint64_t>(wire), out);
}

}  // namespace

Error MessageReader::Bad(std::string_view what) const {
  return Error(ErrorCode::kCorrupt, fmt::format("byte {}: {}", offset_ + at_, what));
}

Result<uint64_t> MessageReader::Varint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (is_done()) return Bad("the message ends inside a number");
    const auto byte = std::to_integer<uint64_t>(bytes_[at_++]);
    value |= (byte & kPayloadMask) << shift;
    if (byte <= kPayloadMask) return value;
  }
  return Bad("a number of more than ten bytes");
}

Result<std::span<const std::byte>> MessageReader::Take(uint64_t size) {
  const size_t left = bytes_.size() - at_;
  if (size > left) return Bad(fmt::format("a field of {} bytes (expected at most {})", size, left));
  const auto part = bytes_.subspan(at_, size);
  at_ += size;
  return part;
}

Result<Field> MessageReader::Next() {
  PL_TRY_ASSIGN(const uint64_t tag, Varint());
  Field field;
  field.number = tag >> kWireBits;
  field.wire = static_cast<Wire>(tag & kWireMask);
  if (field.number == 0) return Bad("a field with number 0");
  switch (field.wire) {
    case Wire::kVarint: {
      PL_TRY_ASSIGN(field.value, Varint());
      return field;
    }
    case Wire::kFixed64: {
      PL_TRY_ASSIGN(field.bytes, Take(8));
      return field;
    }
    case Wire::kFixed32: {
      PL_TRY_ASSIGN(field.bytes, Take(4));
      return field;
    }
    case Wire::kBytes: {
      PL_TRY_ASSIGN(const uint64_t size, Varint());
      PL_TRY_ASSIGN(field.bytes, Take(size));
      return field;
    }
  }
  return Bad(fmt::format("a field of unknown wire type {}", tag & kWireMask));
}

void MessageWriter::AddNumber(uint64_t number, uint64_t value) {
  if (value == 0) return;
  AppendTag(number, Wire::kVarint, text_);
  AppendVarint(value, text_);
}

void MessageWriter::AddBytes(uint64_t number, std::string_view bytes) {
  if (!bytes.empty()) AddMessage(number, bytes);
}

void MessageWriter::AddMessage(uint64_t number, std::string_view message) {
  AppendTag(number, Wire::kBytes, text_);
  AppendVarint(message.size(), text_);
  text_ += message;
}

void MessageWriter::AddPacked(uint64_t number, std::span<const uint64_t> values) {
  std::string packed;
  for (const uint64_t value : values) AppendVarint(value, packed);
  AddBytes(number, packed);
}

void MessageWriter::AddDouble(uint64_t number, double value) {
  AppendTag(number, Wire::kFixed64, text_);
  AppendU64(std::bit_cast<uint64_t>(value), text_);
}

void MessageWriter::AddFloat(uint64_t number, float value) {
  AppendTag(number, Wire::kFixed32, text_);
  AppendU32(std::bit_cast<uint32_t>(value), text_);
}

}  // namespace plumbline::protobuf
