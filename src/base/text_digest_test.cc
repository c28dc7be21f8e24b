#include "base/text_digest.h"

#include <gtest/gtest.h>

#include <string_view>

namespace plumbline {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// Vectors of RFC 1321 and RFC 3174, and lengths around the end of a block as hashlib gives them.
TEST(TextDigest, KnownVectors) {
  EXPECT_EQ(Md5Hex({}), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(Md5Hex(Bytes("abc")), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(Md5Hex(Bytes("message digest")), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(Sha1Hex({}), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(Sha1Hex(Bytes("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(Sha1Hex(Bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

TEST(TextDigest, LengthsAroundABlock) {
  EXPECT_EQ(Md5Hex(Bytes(std::string(55, 'a'))), "ef1772b6dff9a122358552954ad0df65");
  EXPECT_EQ(Md5Hex(Bytes(std::string(56, 'a'))), "3b0c8ac703f828b04c6c197006d17218");
  EXPECT_EQ(Md5Hex(Bytes(std::string(64, 'a'))), "014842d480b571495a4a0363793f7367");
  EXPECT_EQ(Sha1Hex(Bytes(std::string(55, 'a'))), "c1c8bbdc22796e28c0e15163d20899b65621d65a");
  EXPECT_EQ(Sha1Hex(Bytes(std::string(64, 'a'))), "0098ba824b5c16427bd7a1122a5a442a25ec644d");
}

}  // namespace
}  // namespace plumbline
