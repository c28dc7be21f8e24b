#include "base/text_digest.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace plumbline {
namespace {

constexpr size_t kBlockBytes = 64;
using Block = std::array<uint32_t, 16>;

uint32_t Word(const std::byte* at, bool big_endian) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) {
    const size_t shift = big_endian ? 24 - 8 * i : 8 * i;
    word |= std::to_integer<uint32_t>(at[i]) << shift;
  }
  return word;
}

// Calls update(block) for every block of the bytes and of their padding: a one bit, zeros, and the
// number of bits in eight bytes.
template <class Update>
void ForEachBlock(std::span<const std::byte> bytes, bool big_endian, const Update& update) {
  const auto feed = [&](const std::byte* at) {
    Block block;
    for (size_t i = 0; i < block.size(); ++i) block[i] = Word(at + 4 * i, big_endian);
    update(block);
  };
  size_t at = 0;
  for (; at + kBlockBytes <= bytes.size(); at += kBlockBytes) feed(bytes.data() + at);
  std::array<std::byte, 2 * kBlockBytes> tail{};
  const size_t rest = bytes.size() - at;
  if (rest > 0) std::memcpy(tail.data(), bytes.data() + at, rest);
  tail[rest] = std::byte{0x80};
  const size_t size = rest + 9 <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (size_t i = 0; i < 8; ++i) {
    const size_t shift = big_endian ? 56 - 8 * i : 8 * i;
    tail[size - 8 + i] = static_cast<std::byte>(bits >> shift);
  }
  for (size_t from = 0; from < size; from += kBlockBytes) feed(tail.data() + from);
}

// floor(2^32 * |sin(i + 1)|)
const std::array<uint32_t, 64>& Md5Constants() {
  static const std::array<uint32_t, 64> constants = [] {
    std::array<uint32_t, 64> values{};
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<uint32_t>(
          std::floor(4294967296.0 * std::abs(std::sin(static_cast<double>(i + 1)))));
    }
    return values;
  }();
  return constants;
}

constexpr int kMd5Shifts[4][4] = {
    {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

void UpdateMd5(const Block& block, std::array<uint32_t, 4>& state) {
  auto [a, b, c, d] = state;
  for (size_t i = 0; i < 64; ++i) {
    uint32_t mixed = 0;
    size_t k = 0;
    switch (i / 16) {
      case 0:
        mixed = (b & c) | (~b & d);
        k = i;
        break;
      case 1:
        mixed = (d & b) | (~d & c);
        k = (5 * i + 1) % 16;
        break;
      case 2:
        mixed = b ^ c ^ d;
        k = (3 * i + 5) % 16;
        break;
      default:
        mixed = c ^ (b | ~d);
        k = (7 * i) % 16;
    }
    const uint32_t sum = mixed + a + Md5Constants()[i] + block[k];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kMd5Shifts[i / 16][i % 4]);
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
}

void UpdateSha1(const Block& block, std::array<uint32_t, 5>& state) {
  std::array<uint32_t, 80> words{};
  std::memcpy(words.data(), block.data(), sizeof(block));
  for (size_t i = 16; i < words.size(); ++i) {
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  auto [a, b, c, d, e] = state;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint32_t mixed = i < 20   ? (b & c) | (~b & d)
                           : i < 40 ? b ^ c ^ d
                           : i < 60 ? (b & c) | (b & d) | (c & d)
                                    : b ^ c ^ d;
    constexpr uint32_t kConstants[] = {0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6};
    const uint32_t next = std::rotl(a, 5) + mixed + e + kConstants[i / 20] + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}

}  // namespace

std::string Md5Hex(std::span<const std::byte> bytes) {
  std::array<uint32_t, 4> state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476};
  ForEachBlock(bytes, /*big_endian=*/false, [&](const Block& block) { UpdateMd5(block, state); });
  std::string text;
  for (const uint32_t word : state) {
    for (int shift = 0; shift < 32; shift += 8)
      text += fmt::format("{:02x}", (word >> shift) & 255);
  }
  return text;
}

std::string Sha1Hex(std::span<const std::byte> bytes) {
  std::array<uint32_t, 5> state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  ForEachBlock(bytes, /*big_endian=*/true, [&](const Block& block) { UpdateSha1(block, state); });
  std::string text;
  for (const uint32_t word : state) text += fmt::format("{:08x}", word);
  return text;
}

}  // namespace plumbline
