#include "base/memory/bytes.h"

#include <gtest/gtest.h>

#include <limits>

namespace plumbline {
namespace {

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Bytes, IntegersComeBackInLittleEndianOrder) {
  std::string text = "\x7f";
  AppendU16(0x0102, text);
  AppendU32(0x03040506, text);
  AppendU64(0x0708090a0b0c0d0e, text);
  EXPECT_EQ(text.substr(1, 2), "\x02\x01");
  ByteReader in(Bytes(text));
  EXPECT_EQ(in.ReadU8().value(), 0x7f);
  EXPECT_EQ(in.ReadU16().value(), 0x0102);
  EXPECT_EQ(in.ReadU32().value(), 0x03040506U);
  EXPECT_EQ(in.ReadU64().value(), 0x0708090a0b0c0d0eU);
  EXPECT_EQ(in.remaining(), 0U);
}

TEST(Bytes, ShortReadIsCorruptAndDoesNotMove) {
  const std::string text = "abc";
  ByteReader in(Bytes(text));
  EXPECT_EQ(in.ReadU32().error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(in.offset(), 0U);
  EXPECT_EQ(in.ReadText(3).value(), "abc");
  EXPECT_EQ(in.ReadU8().error().code(), ErrorCode::kCorrupt);
}

TEST(Bytes, LargestLengthIsCorrupt) {
  const std::string text = "abc";
  ByteReader in(Bytes(text));
  constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();
  EXPECT_FALSE(in.ReadBytes(kLargest).has_value());
  EXPECT_FALSE(in.Skip(kLargest).has_value());
  EXPECT_FALSE(in.Seek(kLargest).has_value());
  EXPECT_TRUE(in.Seek(3).has_value());
}

TEST(Bytes, ReadUntilSkipsTheEnd) {
  const std::string text = "ab\ncd";
  ByteReader in(Bytes(text));
  EXPECT_EQ(in.ReadUntil('\n').value(), "ab");
  EXPECT_EQ(in.offset(), 3U);
  EXPECT_EQ(in.ReadUntil('\n').error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace plumbline
