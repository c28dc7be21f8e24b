#include "base/memory/packed_text.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace plumbline {
namespace {

TEST(Base64, SpellsTheVectorsOfTheStandard) {
  EXPECT_EQ(Base64Of(""), "");
  EXPECT_EQ(Base64Of("f"), "Zg==");
  EXPECT_EQ(Base64Of("fo"), "Zm8=");
  EXPECT_EQ(Base64Of("foo"), "Zm9v");
  EXPECT_EQ(Base64Of("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64Of("\xFF\xFE"), "//4=");
}

// By zlib and by hand, not by the code under test.
std::string Unpacked(const std::string& letters) {
  std::string bytes;
  uint32_t word = 0;
  int bits = 0;
  for (const char c : letters) {
    const size_t at = std::string_view(
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456"
                          "789+/")
                          .find(c);
    if (at == std::string_view::npos) break;
    word = word << 6 | static_cast<uint32_t>(at);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(word >> bits & 255U);
  }
  std::string out(8 << 20, '\0');
  z_stream stream{};
  inflateInit2(&stream, -15);
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(PackText, AnotherLibraryReadsIt) {
  EXPECT_EQ(Unpacked(PackText("")), "");
  EXPECT_EQ(Unpacked(PackText("a")), "a");
  std::string many;
  for (int64_t i = 0; i < 400000; ++i) many += std::to_string(i * 7919 % 10007) + ",";
  EXPECT_EQ(Unpacked(PackText(many)), many);
  EXPECT_EQ(PackText(many), PackText(many));
  std::string noise;
  uint32_t state = 1;
  for (int i = 0; i < 3000000; ++i) {
    state = state * 1664525U + 1013904223U;
    noise += static_cast<char>(state >> 24);
  }
  EXPECT_EQ(Unpacked(PackText(noise)), noise);
}

}  // namespace
}  // namespace plumbline
