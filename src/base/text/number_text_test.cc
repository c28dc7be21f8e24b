#include "base/text/number_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/memory/digest.h"

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

// Values of every size, ties and what lies beside them, zeros and what is no number.
TEST(NumberText, FixedEqualsFmt) {
  std::mt19937_64 random(7);
  std::vector<double> values = {0.0,     -0.0,    1e-7,        -1e-7,       0.5e-6,
                                -0.5e-6, 2.5e-6,  4294.967295, 4294.967296, 1e15,
                                1e300,   -1e-300, 0x1p-1074,   0.9999995,   999999.5};
  for (const double odd :
       {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    values.push_back(odd);
  }
  for (int i = 0; i < 20000; ++i) {
    if (i % 20 == 0) values.push_back(std::bit_cast<double>(random()));
    values.push_back(static_cast<double>(random() >> 20) * 0x1p-40);
    // Ties of three and six decimals, as near as a double comes to them.
    for (const double half : {0.5e-3, 0.5e-6}) {
      const double tie = static_cast<double>(random() % 5000000) * 2 * half + half;
      values.insert(values.end(), {tie, -tie, std::nextafter(tie, 0), std::nextafter(tie, 1e9)});
    }
    values.push_back(static_cast<double>(random() % 100000) / 64);  // exact ties
  }
  for (const double value : values) {
    if (std::isnan(value)) continue;
    for (const int decimals : {0, 3, 6}) {
      std::string text = "x";
      AppendFixed(value, decimals, text);
      ASSERT_EQ(text, fmt::format("x{:.{}f}", value, decimals));
    }
  }
}

// Values of every size, ties and what lies beside them, and what rounds to one digit more.
TEST(NumberText, GeneralEqualsPrintf) {
  std::mt19937_64 random(11);
  std::vector<double> values = {0.0,      -0.0,    1e-4,  9.9999995e-5, 1e-5,  999999.5,
                                999999.4, 1e6,     1e-12, 9.9e-13,      1e15,  9.999995e14,
                                1e22,     -1e-300, 128,   0x1p-1074,    1e300, 100000};
  values.push_back(std::numeric_limits<double>::infinity());
  values.push_back(-std::numeric_limits<double>::infinity());
  for (int i = 0; i < 20000; ++i) {
    values.push_back(std::bit_cast<double>(random()));
    values.push_back(
        std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 100) - 110));
    values.push_back(static_cast<double>(static_cast<float>(random() % 10000000) * 1e-6F));
    // Ties of six digits, as near as a double comes to them.
    const double power = std::pow(10, static_cast<int>(random() % 20) - 10);
    const double tie = (static_cast<double>(random() % 900000 + 100000) + 0.5) * power;
    values.insert(values.end(), {tie, -tie, std::nextafter(tie, 0), std::nextafter(tie, 1e99)});
    const double next = std::pow(10, static_cast<int>(random() % 26) - 12);
    values.insert(values.end(), {next, std::nextafter(next, 0), std::nextafter(next, 1e99)});
    values.push_back(static_cast<double>(random() % 100000000) / 64);  // exact ties
  }
  for (const double value : values) {
    if (std::isnan(value)) continue;
    for (const int digits : {1, 2, 5, 6, 9, 10, 17}) {
      std::string text = "x";
      AppendGeneral(value, digits, text);
      std::array<char, 64> expected;
      std::snprintf(expected.data(), expected.size(), "x%.*g", digits, value);
      ASSERT_EQ(text, expected.data());
    }
  }
  std::string text;
  AppendGeneral(std::numeric_limits<double>::quiet_NaN(), 6, text);
  EXPECT_EQ(text, "nan");
}

}  // namespace
}  // namespace plumbline
