#include "base/text/text_parts.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plumbline {

namespace {

TEST(Utf8, CharactersOfEveryLength) {
  EXPECT_EQ(Utf8CharacterBytes(std::string_view("\0", 1)), 1U);
  EXPECT_EQ(Utf8CharacterBytes("\x7F!"), 1U);
  EXPECT_EQ(Utf8CharacterBytes("\xC3\xA9"), 2U);
  EXPECT_EQ(Utf8CharacterBytes("\xED\x9F\xBF"), 3U);  // the last before the surrogates
  EXPECT_EQ(Utf8CharacterBytes("\xEF\xBF\xBF"), 3U);
  EXPECT_EQ(Utf8CharacterBytes("\xF4\x8F\xBF\xBF"), 4U);  // U+10FFFF
}

TEST(Utf8, EverythingElseIsNone) {
  for (const std::string_view text :
       {"\x80", "\xC3", "\xC3(", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xED\xBF\xBF",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_EQ(Utf8CharacterBytes(text), 0U);
    EXPECT_FALSE(IsUtf8(text));
  }
}

TEST(Utf8, WhatIsNoCharacterIsReplaced) {
  EXPECT_EQ(ReplaceInvalidUtf8(""), "");
  EXPECT_EQ(ReplaceInvalidUtf8("a\xC3\xA9"), "a\xC3\xA9");
  EXPECT_EQ(ReplaceInvalidUtf8("a\xFF"
                               "b\xED\xA0\x80"
                               "c\xC3"),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD"
            "c\xEF\xBF\xBD");
  EXPECT_TRUE(IsUtf8(ReplaceInvalidUtf8("\xF0\x9F\x98")));
}

TEST(Utf8, ABeginningCutsNoCharacter) {
  const std::string_view text = "a\xC3\xA9\xF0\x9F\x98\x80";
  EXPECT_EQ(Utf8Beginning(text, 0), "");
  EXPECT_EQ(Utf8Beginning(text, 1), "a");
  EXPECT_EQ(Utf8Beginning(text, 2), "a");
  EXPECT_EQ(Utf8Beginning(text, 3), "a\xC3\xA9");
  EXPECT_EQ(Utf8Beginning(text, 6), "a\xC3\xA9");
  EXPECT_EQ(Utf8Beginning(text, 7), text);
  EXPECT_EQ(Utf8Beginning(text, 8), text);
}

TEST(Utf8, CharactersAreWritten) {
  std::string out;
  for (const uint32_t code : {0x7FU, 0x80U, 0x7FFU, 0x800U, 0xFFFFU, 0x10000U, 0x10FFFFU}) {
    AppendUtf8(code, out);
  }
  EXPECT_EQ(out, "\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF");
  std::string surrogate;
  AppendUtf8(0xD800, surrogate);
  EXPECT_EQ(surrogate, "\xED\xA0\x80");
}

const std::vector<std::string> kWords = {"compare", "check", "convert", "export", "new", "good"};

TEST(NearestText, NamesWhatWasMeant) {
  EXPECT_EQ(NearestText("compre", kWords), "compare");
  EXPECT_EQ(NearestText("comapre", kWords), "compare");
  EXPECT_EQ(NearestText("exprt", kWords), "export");
  EXPECT_EQ(NearestText("nwe", kWords), "new");
  EXPECT_EQ(NearestText("god", kWords), "good");
}

TEST(NearestText, SaysNothingWhereNothingIsNear) {
  for (const char* word : {"", "x", "banana", "ok", "compare", "recompilation"}) {
    EXPECT_EQ(NearestText(word, kWords), "") << word;
  }
  EXPECT_EQ(NearestText("compre", {}), "");
  EXPECT_EQ(NearestText(std::string(200, 'x'), kWords), "");
}

TEST(NearestText, CountsChanges) {
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(EditDistance("same", "same"), 0U);
}

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

TEST(LinesIn, EndsBelongToLines) {
  EXPECT_EQ(LinesIn(""), std::vector<std::string>{});
  EXPECT_EQ(LinesIn("a"), std::vector<std::string>{"a"});
  EXPECT_EQ(LinesIn("a\n\nb\n"), (std::vector<std::string>{"a", "", "b"}));
}

}  // namespace

}  // namespace plumbline
