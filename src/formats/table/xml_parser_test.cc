#include "formats/table/xml_parser.h"

#include <gtest/gtest.h>

#include <string>

namespace plumbline::xml {
namespace {

// Writes down what it is told.
class Notes final : public Handler {
 public:
  Status Begin(const Element& element) override {
    text += "<" + std::string(element.space()) + "|" + std::string(element.name());
    if (!element.Attribute("a").empty()) text += " " + std::string(element.Attribute("a"));
    text += ">";
    return element.name() == "bad" ? Status(Error(ErrorCode::kCorrupt, "a bad one")) : Status();
  }
  Status End() override {
    text += "/";
    return {};
  }
  void Text(std::string_view piece) override { text += piece; }
  [[nodiscard]] bool is_done() const override { return text.ends_with("<|stop>"); }

  std::string text;
};

std::string Told(std::string_view document) {
  Notes notes;
  const Status status = Parse(document, notes);
  return status ? notes.text : status.error().message();
}

TEST(XmlParser, ElementsAttributesAndTexts) {
  EXPECT_EQ(Told("<p:one xmlns:p='urn:s' xmlns:q='urn:t' q:a='no' a='x&amp;y'>1<two/>"
                 "<!-- no --><![CDATA[<&]]>&#x41;</p:one>"),
            "<urn:s|one x&y>1<|two>/<&A/");
  EXPECT_EQ(Told("<one xmlns='urn:s'><two a='2'/></one>"), "<urn:s|one><urn:s|two 2>//");
}

TEST(XmlParser, OtherEncodings) {
  std::string wide("\xFF\xFE", 2);
  for (const char c : std::string("<one>\xE9</one>")) wide += {c, '\0'};
  EXPECT_EQ(Told(wide), "<|one>\xC3\xA9/");
  EXPECT_EQ(Told("<?xml version='1.0' encoding='ISO-8859-1'?><one>\xE9</one>"), "<|one>\xC3\xA9/");
}

TEST(XmlParser, AHandlerEndsTheReading) {
  EXPECT_EQ(Told("<one><stop>text</stop><two/></one>"), "<|one><|stop>");
  EXPECT_EQ(Told("<one><stop/></one>"), "<|one><|stop>");
  EXPECT_EQ(Told("<one><bad/>text</one>"), "a bad one");
}

TEST(XmlParser, DamageIsSaidWithItsLine) {
  EXPECT_EQ(Told("<one>\n</two>"), "line 2, column 2: mismatched tag");
  EXPECT_EQ(Told("<one>"), "line 1, column 5: no element found");
  EXPECT_EQ(Told(""), "line 1, column 0: no element found");
  EXPECT_EQ(Told("<p:one/>"), "line 1, column 0: unbound prefix");
  EXPECT_EQ(Told("<one>\xFF</one>"), "line 1, column 5: not well-formed (invalid token)");
}

TEST(XmlParser, EntitiesOfADocumentTypeAreRefused) {
  EXPECT_NE(Told("<!DOCTYPE one [<!ENTITY a 'aaaaaaaa'>]><one>&a;</one>").find("a document type"),
            std::string::npos);
}

TEST(XmlParser, DepthIsBounded) {
  std::string deep;
  for (int i = 0; i < 256; ++i) deep += "<a>";
  std::string end;
  for (int i = 0; i < 256; ++i) end += "</a>";
  EXPECT_TRUE(Told(deep + end).starts_with("<|a>"));
  EXPECT_NE(Told(deep + "<a></a>" + end).find("elements nest too deep"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::xml
