#include "online/frame.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/memory/bytes.h"
#include "base/memory/digest.h"

namespace plumbline::online {
namespace {

std::vector<std::byte> Bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

// Feeds bytes in pieces of `piece` bytes; the bodies of the frames, or "!" behind them where it
// ends with an error.
std::vector<std::string> Read(const std::string& text, size_t piece) {
  FrameReader reader;
  std::vector<std::string> bodies;
  for (size_t at = 0; at < text.size();) {
    const auto room = reader.Room();
    const size_t count = std::min({piece, room.size(), text.size() - at});
    std::memcpy(room.data(), text.data() + at, count);
    reader.Take(count);
    at += count;
    for (;;) {
      FrameReader::Frame frame;
      const Result<bool> next = reader.Next(frame);
      if (!next) {
        bodies.emplace_back("!");
        return bodies;
      }
      if (!*next) break;
      bodies.emplace_back(AsText(frame.body()));
    }
  }
  return bodies;
}

FrameHeader HeaderOf(uint64_t sequence) {
  FrameHeader header;
  header.session = 0x1234567890abcdef;
  header.sequence = sequence;
  header.step = 7;
  header.rank = 3;
  header.dropped = 11;
  return header;
}

TEST(Frame, ArrivesWholeInPiecesOfAnySize) {
  const std::string text = EncodeFrame(HeaderOf(1), "one") + EncodeFrame(HeaderOf(2), "") +
                           EncodeFrame(HeaderOf(3), std::string(1000, 'x'));
  const std::vector<std::string> expected{"one", "", std::string(1000, 'x')};
  for (const size_t piece : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, text.size()}) {
    EXPECT_EQ(Read(text, piece), expected) << piece;
  }
}

TEST(Frame, HeaderKeepsEveryField) {
  const auto bytes = EncodeHeader(HeaderOf(9));
  const FrameHeader header = *ParseHeader(bytes);
  EXPECT_EQ(header.session, 0x1234567890abcdefU);
  EXPECT_EQ(header.sequence, 9U);
  EXPECT_EQ(header.step, 7);
  EXPECT_EQ(header.rank, 3);
  EXPECT_EQ(header.dropped, 11U);
}

TEST(Frame, AnyFlippedBitIsNoticed) {
  const std::string text = EncodeFrame(HeaderOf(1), std::string(64, 'b'));
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_EQ(Read(damaged, damaged.size()), std::vector<std::string>{"!"}) << at;
  }
}

TEST(Frame, LengthOfANonsenseHeaderIsNotAllocated) {
  FrameHeader header = HeaderOf(1);
  header.body_bytes = kMostBodyBytes;
  const auto bytes = EncodeHeader(header);
  FrameReader reader;
  std::memcpy(reader.Room().data(), bytes.data(), bytes.size());
  reader.Take(bytes.size());
  FrameReader::Frame frame;
  EXPECT_FALSE(*reader.Next(frame));
  EXPECT_LE(reader.Room().size(), size_t{8} << 20);
  header.body_bytes = kMostBodyBytes + 1;
  EXPECT_FALSE(ParseHeader(EncodeHeader(header)));
}

TEST(Record, HoldsItsTensorsAtAlignedPlaces) {
  const std::vector<std::byte> packed = Bytes("packed entry");
  const std::vector<std::byte> one = Bytes("12345678"), other = Bytes("abcd");
  const std::vector<FrameTensor> tensors{{"a.pt", DType::kFloat32, {2}, one},
                                         {"b.pt", DType::kUInt8, {2, 2}, other}};
  uint64_t body_bytes = 0;
  std::string body = EncodeRecordStart(packed, tensors, body_bytes);
  body += "12345678";
  body.resize(Padded(body.size()), '\0');
  body += "abcd";
  ASSERT_EQ(body.size(), body_bytes);
  const std::vector<std::byte> bytes = Bytes(body);
  const Record record = *ParseRecord(bytes);
  EXPECT_EQ(AsText(record.packed), "packed entry");
  ASSERT_EQ(record.tensors.size(), 2U);
  EXPECT_EQ(record.tensors[0].name, "a.pt");
  EXPECT_EQ(record.tensors[0].sizes, Shape{2});
  EXPECT_EQ(AsText(record.tensors[1].bytes), "abcd");
  const auto offset = static_cast<size_t>(record.tensors[1].bytes.data() - bytes.data());
  EXPECT_EQ(offset % kFrameAlignment, 0U);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseRecord(std::span(bytes).first(size))) << size;
  }
}

}  // namespace
}  // namespace plumbline::online
