#include "base/utf8.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(out,
            "\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF");
  std::string surrogate;
  AppendUtf8(0xD800, surrogate);
  EXPECT_EQ(surrogate, "\xED\xA0\x80");
}

}  // namespace
}  // namespace plumbline
