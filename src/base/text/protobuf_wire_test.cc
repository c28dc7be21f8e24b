#include "base/text/protobuf_wire.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/memory/bytes.h"

namespace plumbline::protobuf {
namespace {

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(ProtobufWire, ReadsWhatItWrites) {
  MessageWriter inner;
  inner.AddPacked(1, std::vector<uint64_t>{0, 127, 128, UINT64_MAX});
  MessageWriter writer;
  writer.AddNumber(1, 300);
  writer.AddNumber(2, 0);
  writer.AddMessage(3, inner.text());
  writer.AddBytes(4, "");
  writer.AddBytes(536870911, "ab");
  writer.AddDouble(5, -1.5);
  writer.AddFloat(6, 0);
  MessageReader reader(BytesOf(writer.text()));
  Field field = *reader.Next();
  EXPECT_EQ(field.number, 1U);
  EXPECT_EQ(field.value, 300U);
  field = *reader.Next();
  EXPECT_EQ(field.number, 3U);
  MessageReader inside = reader.Inside(field);
  const Field packed = *inside.Next();
  MessageReader numbers = inside.Inside(packed);
  for (const uint64_t expected : {uint64_t{0}, uint64_t{127}, uint64_t{128}, UINT64_MAX}) {
    EXPECT_EQ(*numbers.Varint(), expected);
  }
  EXPECT_TRUE(numbers.is_done());
  EXPECT_TRUE(inside.is_done());
  field = *reader.Next();
  EXPECT_EQ(field.number, 536870911U);
  EXPECT_EQ(field.text(), "ab");
  field = *reader.Next();
  EXPECT_EQ(field.number, 5U);
  EXPECT_EQ(field.text(), std::string_view("\0\0\0\0\0\0\xF8\xBF", 8));
  field = *reader.Next();
  EXPECT_EQ(field.number, 6U);
  EXPECT_EQ(field.text(), std::string_view("\0\0\0\0", 4));
  EXPECT_TRUE(reader.is_done());
}

TEST(ProtobufWire, FixedFieldsAreSteppedOver) {
  const std::string text(
      "\x09"
      "12345678"
      "\x15"
      "1234"
      "\x18\x05",
      16);
  MessageReader reader(BytesOf(text));
  EXPECT_EQ(reader.Next()->text(), "12345678");
  EXPECT_EQ(reader.Next()->text(), "1234");
  EXPECT_EQ(reader.Next()->value, 5U);
}

TEST(ProtobufWire, DamageNamesItsPlace) {
  const struct {
    std::string text;
    std::string message;
  } cases[] = {
      {"\x80", "byte 11: the message ends inside a number"},
      {std::string(11, '\xff'), "byte 20: a number of more than ten bytes"},
      {std::string("\x02\x00", 2), "byte 11: a field with number 0"},
      {"\x0b", "byte 11: a field of unknown wire type 3"},
      {"\x0a\x03xy", "byte 12: a field of 3 bytes (expected at most 2)"},
      {"\x0d\x01", "byte 11: a field of 4 bytes (expected at most 1)"},
  };
  for (const auto& one : cases) {
    MessageReader reader(BytesOf(one.text), 10);
    const Result<Field> field = reader.Next();
    ASSERT_FALSE(field) << one.message;
    EXPECT_EQ(field.error().code(), ErrorCode::kCorrupt);
    EXPECT_EQ(field.error().message(), one.message);
  }
}

TEST(ProtobufWire, PlacesInsideCountFromTheStart) {
  const std::string text("\x08\x01\x12\x02\x08\x80", 6);
  MessageReader reader(BytesOf(text));
  ASSERT_TRUE(reader.Next());
  const Result<Field> field = reader.Next();
  ASSERT_TRUE(field);
  MessageReader inside = reader.Inside(*field);
  EXPECT_EQ(inside.Next().error().message(), "byte 6: the message ends inside a number");
}

}  // namespace
}  // namespace plumbline::protobuf
