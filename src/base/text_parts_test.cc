#include "base/text_parts.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plumbline {
namespace {

TEST(TextParts, CutsAtEveryMark) {
  EXPECT_EQ(SplitAt("a.b..c", '.'), (std::vector<std::string_view>{"a", "b", "", "c"}));
  EXPECT_EQ(SplitAt("", '.'), std::vector<std::string_view>{""});
  EXPECT_EQ(SplitAt("/x/", '/'), (std::vector<std::string_view>{"", "x", ""}));
}

TEST(TextParts, LowersAsciiOnly) { EXPECT_EQ(LowerCase("Float32_\xC3\x84Z"), "float32_\xC3\x84z"); }

TEST(TextParts, DigitsAreOneOrMore) {
  EXPECT_TRUE(IsDigits("007"));
  for (const char* text : {"", "-1", "1 ", "x1"}) EXPECT_FALSE(IsDigits(text)) << text;
}

TEST(TextParts, NumbersAreWholeTexts) {
  EXPECT_EQ(ParseInteger("-12"), -12);
  EXPECT_EQ(ParseNatural("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(ParseReal("1e-5"), 1e-5);
  EXPECT_TRUE(std::isnan(*ParseReal("nan")));
  EXPECT_EQ(ParseReal("-inf"), -INFINITY);
  for (const char* text : {"", "+1", " 1", "1 ", "1x", "9223372036854775808"}) {
    EXPECT_EQ(ParseInteger(text), std::nullopt) << text;
    EXPECT_EQ(ParseNatural(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseNatural("-0"), std::nullopt);
  for (const char* text : {"", "+1", "1.0.", "1e999"}) EXPECT_EQ(ParseReal(text), std::nullopt);
}

TEST(TextParts, NumbersBehindAPrefix) {
  EXPECT_EQ(NaturalAfter("rank", "rank3"), 3);
  EXPECT_EQ(NaturalAfter("rank", "rank"), std::nullopt);
  EXPECT_EQ(NaturalAfter("rank", "step3"), std::nullopt);
  EXPECT_EQ(NaturalAfter("rank", "rank-3"), std::nullopt);
}

}  // namespace
}  // namespace plumbline
