#include "base/number_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

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

}  // namespace
}  // namespace plumbline
