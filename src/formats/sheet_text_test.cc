#include "formats/sheet_text.h"

#include <gtest/gtest.h>

namespace plumbline::xlsx {
namespace {

std::string Written(std::string_view text) {
  std::string out;
  AppendSheetText(text, out);
  return out;
}

TEST(SheetText, PlainTextStaysAsItIs) {
  EXPECT_EQ(Written("Functional.linear_1.0 [2, 3]"), "<t>Functional.linear_1.0 [2, 3]</t>");
  EXPECT_EQ(Written(""), "<t></t>");
}

TEST(SheetText, MarkupIsEscaped) {
  EXPECT_EQ(Written("<class 'a' & \"b\">"), "<t>&lt;class 'a' &amp; \"b\"&gt;</t>");
}

TEST(SheetText, BlanksAtTheEndsArePreserved) {
  EXPECT_EQ(Written("inf\t"), "<t xml:space=\"preserve\">inf\t</t>");
  EXPECT_EQ(Written(" a"), "<t xml:space=\"preserve\"> a</t>");
  EXPECT_EQ(Written("a\n b"), "<t>a\n b</t>");
}

TEST(SheetText, ControlCharactersAndEscapesAreEscaped) {
  EXPECT_EQ(Written("a\x1B"
                    "b\r"),
            "<t>a_x001B_b_x000D_</t>");
  EXPECT_EQ(Written("_x000D_ _x00g0_ _x00"), "<t>_x005F_x000D_ _x00g0_ _x00</t>");
}

TEST(SheetText, OnlyCharactersOfXmlRemain) {
  EXPECT_EQ(Written("\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80"),
            "<t>\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80</t>");
  EXPECT_EQ(Written("a\xFF"), "<t>a\xEF\xBF\xBD</t>");
  EXPECT_EQ(Written("\xC3"), "<t>\xEF\xBF\xBD</t>");                   // cut
  EXPECT_EQ(Written("\xC0\xAF"), "<t>\xEF\xBF\xBD\xEF\xBF\xBD</t>");   // overlong
  EXPECT_EQ(Written("\xEF\xBF\xBE").find('\xBE'), std::string::npos);  // U+FFFE
  EXPECT_EQ(Written("\xED\xA0\x80").find('\xED'), std::string::npos);  // a lone surrogate
}

TEST(SheetText, LongTextsAreCutBetweenCharacters) {
  const std::string wide(32766, 'x');
  EXPECT_EQ(Written(wide + "\xC3\xA9"), "<t>" + wide + "</t>");
  EXPECT_EQ(Written(std::string(40000, 'x')).size(), 32767u + 7);
}

}  // namespace
}  // namespace plumbline::xlsx
