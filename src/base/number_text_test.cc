#include "base/number_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <random>
#include <span>
#include <string>

#include "base/digest.h"

namespace plumbline {
namespace {

TEST(NumberText, EqualsPythonForEveryStoredFloat) {
  std::ifstream in(PLUMBLINE_TEST_DATA "/python_text/floats.txt");
  std::string bits, repr, json;
  int count = 0;
  while (in >> bits >> repr >> json) {
    const auto value = std::bit_cast<double>(uint64_t{std::strtoull(bits.c_str(), nullptr, 16)});
    EXPECT_EQ(PythonFloat(value), repr) << bits;
    std::string text = "x";
    AppendJsonFloat(value, text);
    EXPECT_EQ(text, "x" + json) << bits;
    ++count;
  }
  EXPECT_GT(count, 3000);
}

// A million doubles of random bits, spelled as json.dumps does: make_python_text.py has the sums.
TEST(NumberText, AMillionDoublesEqualPython) {
  constexpr int kBlock = 100'000;
  std::ifstream in(PLUMBLINE_TEST_DATA "/python_text/million_floats.txt");
  uint64_t state = 20260103;
  std::string expected;
  int blocks = 0;
  for (; in >> expected; ++blocks) {
    std::string text;
    for (int i = 0; i < kBlock; ++i) {
      state += 0x9E3779B97F4A7C15;
      uint64_t z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
      AppendJsonFloat(std::bit_cast<double>(z ^ (z >> 31)), text);
      text += '\n';
    }
    EXPECT_EQ(Crc32Hex(Crc32(std::as_bytes(std::span(text)))), expected) << "block " << blocks;
  }
  EXPECT_EQ(blocks, 10);
}

TEST(NumberText, RandomDoublesReadBackExactly) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100000; ++i) {
    const auto value = std::bit_cast<double>(uint64_t{random()});
    if (!std::isfinite(value)) continue;
    const std::string text = PythonFloat(value);
    EXPECT_EQ(std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr)),
              std::bit_cast<uint64_t>(value))
        << text;
  }
}

TEST(NumberText, CountsOfThings) {
  EXPECT_EQ(CountText(0, "call"), "0 calls");
  EXPECT_EQ(CountText(1, "call"), "1 call");
  EXPECT_EQ(CountText(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(CountText(12, "entry", "entries"), "12 entries");
}

}  // namespace
}  // namespace plumbline
