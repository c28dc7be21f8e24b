#include "report/markup_text.h"

#include <gtest/gtest.h>

namespace plumbline::report {
namespace {

std::string Html(std::string_view text) {
  std::string out;
  AppendHtmlText(text, out);
  return out;
}

std::string Xml(std::string_view text) {
  std::string out;
  AppendXmlText(text, out);
  return out;
}

TEST(MarkupText, TagsAndEntitiesAreText) {
  EXPECT_EQ(Html("</script>&amp;"), "&lt;/script&gt;&amp;amp;");
  EXPECT_EQ(Xml("]]> & <a>"), "]]&gt; &amp; &lt;a&gt;");
}

TEST(MarkupText, LinesStayInHtmlAndInAttributes) {
  EXPECT_EQ(Html("a\n\"b\""), "a\n\"b\"");
  EXPECT_EQ(Xml("a\n\"b\""), "a&#10;&quot;b&quot;");
}

TEST(MarkupText, XmlHasNoControlCharacters) {
  EXPECT_EQ(Xml(std::string_view("a\0b\x1F\t", 5)), "a?b??");
  EXPECT_EQ(Xml("\xC3\xA9"), "\xC3\xA9");
}

TEST(MarkupText, OnlyCharactersRemain) {
  for (const auto& write : {Html, Xml}) {
    EXPECT_EQ(write("a\xFF"), "a\xEF\xBF\xBD");
    EXPECT_EQ(write("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");
    EXPECT_EQ(write("\xED\xA0\x80").find('\xED'), std::string::npos);  // a lone surrogate
    EXPECT_EQ(write("\xEF\xBF\xBF"), "\xEF\xBF\xBD");                  // U+FFFF
  }
  EXPECT_EQ(Html(std::string_view("\0", 1)), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace plumbline::report
