#include "base/memory/digest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace plumbline {

namespace {

std::span<const std::byte> BytesOfText(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// "The quick ..." and its digests were computed with Python's zlib and xxhash.
constexpr std::string_view kSentence = "The quick brown fox jumps over the lazy dog";

TEST(Crc32, CheckValueAndZlibVectors) {
  EXPECT_EQ(Crc32(BytesOfText("123456789")), 0xcbf43926u);
  EXPECT_EQ(Crc32(BytesOfText(kSentence)), 0x414fa339u);
  EXPECT_EQ(Crc32({}), 0u);
}

TEST(Crc32, ContinuedInPiecesEqualsTheWhole) {
  for (size_t cut = 0; cut <= kSentence.size(); ++cut) {
    const uint32_t first = Crc32(BytesOfText(kSentence.substr(0, cut)));
    EXPECT_EQ(Crc32(BytesOfText(kSentence.substr(cut)), first), 0x414fa339u) << cut;
  }
}

TEST(Crc32, EmptyInputKeepsTheValue) { EXPECT_EQ(Crc32({}, 0x1234u), 0x1234u); }

TEST(Crc32, UpstreamTensorVectors) {
  const float range[] = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(Crc32Hex(Crc32(std::as_bytes(std::span(range)))), "91e79017");
  const float one = 1;
  EXPECT_EQ(Crc32Hex(Crc32(std::as_bytes(std::span(&one, 1)))), "aca16a6a");
  EXPECT_EQ(Crc32Hex(Crc32(BytesOfText(std::string_view("\x01", 1)))), "a505df1b");
  const int64_t pair[] = {1, 2};
  EXPECT_EQ(Crc32Hex(Crc32(std::as_bytes(std::span(pair)))), "00f6ddb9");
}

TEST(Crc32, HexKeepsLeadingZeros) { EXPECT_EQ(Crc32Hex(0xabu), "000000ab"); }

TEST(XorOfWords, VectorsOfTheRealTool) {
  const float range[] = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(XorHex(XorOfWords(std::as_bytes(std::span(range)))), "0x3f60000000800000");
  const int64_t pair[] = {1, 2};
  EXPECT_EQ(XorHex(XorOfWords(std::as_bytes(std::span(pair)))), "0x0000000000000003");
  EXPECT_EQ(XorOfWords({}), 0u);
}

TEST(XorOfWords, PiecesCombineAtEveryLength) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 37 + 11);
  for (size_t size = 0; size <= text.size(); ++size) {
    uint64_t expected = 0;
    for (size_t i = 0; i < size; ++i) {
      expected ^= uint64_t{static_cast<uint8_t>(text[i])} << (i % 8 * 8);
    }
    const auto bytes = BytesOfText(std::string_view(text).substr(0, size));
    ASSERT_EQ(XorOfWords(bytes), expected) << size;
    for (const size_t cut : {size / 3, size / 2, size}) {
      ASSERT_EQ(XorCombine(XorOfWords(bytes.first(cut)), XorOfWords(bytes.subspan(cut)), cut),
                expected);
    }
  }
}

TEST(Crc32c, CheckValueAndContinuation) {
  EXPECT_EQ(Crc32c(BytesOfText("123456789")), 0xe3069283u);
  EXPECT_EQ(Crc32c(BytesOfText("6789"), Crc32c(BytesOfText("12345"))), 0xe3069283u);
  EXPECT_EQ(Crc32c({}), 0u);
}

// RFC 3720, appendix B.4: 32 bytes of zeros.
TEST(Crc32c, Rfc3720Zeros) {
  const std::vector<std::byte> zeros(32);
  EXPECT_EQ(Crc32c(zeros), 0x8a9136aau);
}

// The digest of empty input, as published with the algorithm.
TEST(Xxh3, EmptyInputVector) {
  const Digest128 expected = {0x6001c324468d497fULL, 0x99aa06d3014798d8ULL};
  EXPECT_EQ(Xxh3Of({}), expected);
  EXPECT_EQ(Xxh3().Finish(), expected);
}

TEST(Xxh3, PiecesEqualTheWhole) {
  std::vector<std::byte> bytes(5000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 >> 3);
  const std::span<const std::byte> all(bytes);
  const Digest128 whole = Xxh3Of(all);
  for (const size_t piece : {1u, 63u, 256u, 1024u, 4999u}) {
    Xxh3 digest;
    for (size_t at = 0; at < all.size(); at += piece) {
      digest.Update(all.subspan(at, std::min(piece, all.size() - at)));
    }
    EXPECT_EQ(digest.Finish(), whole) << piece;
  }
}

TEST(Xxh3, ResetStartsAgain) {
  Xxh3 digest;
  digest.Update(BytesOfText("something"));
  digest.Reset();
  digest.Update(BytesOfText("123456789"));
  EXPECT_EQ(digest.Finish(), Xxh3Of(BytesOfText("123456789")));
}

TEST(Xxh3, OneBitChangesTheDigest) {
  std::vector<std::byte> bytes(100);
  const Digest128 before = Xxh3Of(bytes);
  bytes[50] = std::byte{1};
  EXPECT_NE(Xxh3Of(bytes), before);
}

// Vectors of RFC 1321 and RFC 3174, and lengths around the end of a block as hashlib gives them.
TEST(TextDigest, KnownVectors) {
  EXPECT_EQ(*Md5Hex({}), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(*Md5Hex(BytesOfText("abc")), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(*Md5Hex(BytesOfText("message digest")), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(*Sha1Hex({}), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(*Sha1Hex(BytesOfText("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(*Sha1Hex(BytesOfText("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

TEST(TextDigest, LengthsAroundABlock) {
  EXPECT_EQ(*Md5Hex(BytesOfText(std::string(55, 'a'))), "ef1772b6dff9a122358552954ad0df65");
  EXPECT_EQ(*Md5Hex(BytesOfText(std::string(56, 'a'))), "3b0c8ac703f828b04c6c197006d17218");
  EXPECT_EQ(*Md5Hex(BytesOfText(std::string(64, 'a'))), "014842d480b571495a4a0363793f7367");
  EXPECT_EQ(*Sha1Hex(BytesOfText(std::string(55, 'a'))),
            "c1c8bbdc22796e28c0e15163d20899b65621d65a");
  EXPECT_EQ(*Sha1Hex(BytesOfText(std::string(64, 'a'))),
            "0098ba824b5c16427bd7a1122a5a442a25ec644d");
}

Digest128 PlacedDigest(std::span<const std::byte> bytes, size_t element_bytes) {
  Digest128 digest;
  AddToPositionDigest(bytes, element_bytes, 0, &digest);
  return digest;
}

// Computed with Python's integers, by the definition in docs/formats/dump_json.md.
TEST(PositionDigest, IsThatOfItsDefinition) {
  const std::array<uint32_t, 3> words = {0, 1, 0xFFFFFFFF};
  EXPECT_EQ(PositionDigestHex(PlacedDigest(std::as_bytes(std::span(words)), 4)),
            "10546e07f79c0ca6f9c084a4c050e32a");
  EXPECT_EQ(PositionDigestHex(PlacedDigest({}, 4)), std::string(32, '0'));
}

TEST(PositionDigest, PartsAddUpAndOrderCounts) {
  std::vector<uint16_t> words(1000);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint16_t>(i * 77);
  const auto bytes = std::as_bytes(std::span(words));
  Digest128 parts;
  AddToPositionDigest(bytes.first(600), 2, 0, &parts);
  AddToPositionDigest(bytes.subspan(600), 2, 300, &parts);
  EXPECT_EQ(PositionDigestHex(parts), PositionDigestHex(PlacedDigest(bytes, 2)));
  std::swap(words[3], words[4]);
  EXPECT_NE(PositionDigestHex(parts), PositionDigestHex(PlacedDigest(bytes, 2)));
}

}  // namespace

}  // namespace plumbline
