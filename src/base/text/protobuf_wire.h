// Protocol buffer messages field by field: the wire format alone, without message descriptions.
//
// The protobuf library is not used, because the Python extension shares its process with frameworks
// that bring versions of it of their own. Encoding:
// https://protobuf.dev/programming-guides/encoding

#ifndef PLUMBLINE_BASE_TEXT_PROTOBUF_WIRE_H_
#define PLUMBLINE_BASE_TEXT_PROTOBUF_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plumbline/result.h"

namespace plumbline::protobuf {

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// One field as it stands in a message.
struct Field {
  uint64_t number = 0;
  Wire wire = Wire::kVarint;
  uint64_t value = 0;                // of kVarint
  std::span<const std::byte> bytes;  // of the others; borrowed from the message

  [[nodiscard]] bool is_number() const { return wire == Wire::kVarint; }
  [[nodiscard]] bool is_bytes() const { return wire == Wire::kBytes; }
  [[nodiscard]] std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

// Cursor over the fields of one message, whose bytes must outlive it and its fields. A message
// that is cut or none is kCorrupt, with the place: "byte 17: ...", counted from `offset`.
// Thread-compatible.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes, size_t offset = 0)
      : bytes_(bytes), offset_(offset) {}

  [[nodiscard]] bool is_done() const { return at_ == bytes_.size(); }
  // Requires: not is_done().
  Result<Field> Next();
  // The next number alone, as packed numbers follow each other.
  Result<uint64_t> Varint();
  // The message inside a field of kBytes of this one; its places count on from the same start.
  [[nodiscard]] MessageReader Inside(const Field& field) const {
    return MessageReader(field.bytes,
                         offset_ + static_cast<size_t>(field.bytes.data() - bytes_.data()));
  }

 private:
  [[nodiscard]] Error Bad(std::string_view what) const;
  Result<std::span<const std::byte>> Take(uint64_t size);

  std::span<const std::byte> bytes_;
  size_t offset_;
  size_t at_ = 0;
};

// Appends fields to a message. A number of 0 and empty bytes are left out, as proto3 does; a
// sub-message that is there and empty is written by AddMessage().
class MessageWriter {
 public:
  void AddNumber(uint64_t number, uint64_t value);
  void AddBytes(uint64_t number, std::string_view bytes);
  void AddMessage(uint64_t number, std::string_view message);
  void AddPacked(uint64_t number, std::span<const uint64_t> values);
  // Also 0: within a oneof, that the field is there says which one it is.
  void AddDouble(uint64_t number, double value);
  void AddFloat(uint64_t number, float value);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace plumbline::protobuf

#endif  // PLUMBLINE_BASE_TEXT_PROTOBUF_WIRE_H_
