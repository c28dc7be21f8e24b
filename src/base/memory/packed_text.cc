#include "base/memory/packed_text.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumbline {
namespace {

constexpr size_t kChunk = size_t{1} << 20;  // igzip takes 32-bit sizes

std::string Deflated(std::string_view text) {
  std::vector<uint8_t> level_buffer(ISAL_DEF_LVL3_DEFAULT);
  isal_zstream stream{};
  isal_deflate_init(&stream);
  stream.level = 3;
  stream.level_buf = level_buffer.data();
  stream.level_buf_size = static_cast<uint32_t>(level_buffer.size());
  std::string packed;
  do {
    const std::string_view chunk = text.substr(0, kChunk);
    text.remove_prefix(chunk.size());
    stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(chunk.data()));
    stream.avail_in = static_cast<uint32_t>(chunk.size());
    stream.end_of_stream = text.empty() ? 1 : 0;
    do {
      const size_t size = packed.size();
      packed.resize(size + chunk.size() / 2 + 1024);
      stream.next_out = reinterpret_cast<uint8_t*>(packed.data() + size);
      stream.avail_out = static_cast<uint32_t>(packed.size() - size);
      // Cannot fail: the level and its buffer fit, and there is room.
      (void)isal_deflate(&stream);
      packed.resize(packed.size() - stream.avail_out);
    } while (stream.avail_in > 0 || stream.avail_out == 0);
  } while (!text.empty());
  return packed;
}

}  // namespace

std::string Base64Of(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out((bytes.size() + 2) / 3 * 4, '=');
  size_t at = 0;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) {
      word = word << 8 | (k < count ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k <= count; ++k) out[at + k] = kLetters[word >> (18 - 6 * k) & 63U];
    at += 4;
  }
  return out;
}

std::string PackText(std::string_view text) { return Base64Of(Deflated(text)); }

}  // namespace plumbline
