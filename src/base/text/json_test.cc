#include "base/text/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

namespace plumbline::json {

namespace {

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

std::string Escaped(std::string_view text) {
  std::string out;
  AppendString(text, out);
  return out;
}

// The document's error, or "" if it is well formed.
std::string ErrorOf(std::string_view text, int max_depth = 512) {
  Reader in(text, max_depth);
  if (in.SkipValue() && in.ReadEnd()) return "";
  return in.error().message();
}

Number NumberIn(std::string_view text) {
  Reader in(text);
  Number value;
  EXPECT_EQ(in.Peek(), Kind::kNumber) << text;
  EXPECT_TRUE(in.ReadNumber(value) && in.ReadEnd()) << text;
  return value;
}

TEST(Json, StringsAreEscapedAndReadAsPythonDoes) {
  std::ifstream in(PLUMBLINE_TEST_DATA "/python_text/strings.txt");
  std::string line;
  int count = 0;
  while (std::getline(in, line)) {
    const size_t space = line.find(' ');
    const std::string text = FromHex(std::string_view(line).substr(0, space));
    const std::string json = line.substr(space + 1);
    EXPECT_EQ(Escaped(text), json);
    Reader reader(json);
    std::string_view value;
    EXPECT_TRUE(reader.ReadString(value) && reader.ReadEnd()) << json;
    EXPECT_EQ(value, text) << json;
    ++count;
  }
  EXPECT_GT(count, 900);
}

TEST(Json, BytesThatAreNotUtf8AreWrittenAsLowSurrogates) {
  EXPECT_EQ(Escaped("a\xff\xc3z\xe4\xb8"), "\"a\\udcff\\udcc3z\\udce4\\udcb8\"");
  EXPECT_EQ(Escaped("\xc0\x80\xf5\x80\x80\x80"), "\"\\udcc0\\udc80\\udcf5\\udc80\\udc80\\udc80\"");
}

TEST(Json, RawUtf8IsReadAndDamagedUtf8IsCorrupt) {
  Reader in("\"\xe4\xb8\xad-0123456789\"");
  std::string_view value;
  ASSERT_TRUE(in.ReadString(value));
  EXPECT_EQ(value, "\xe4\xb8\xad-0123456789");
  for (const char* bad :
       {"\"\xff\"", "\"\xe4\xb8\"", "\"\xed\xa0\x80\"", "\"\xc0\x80\"", "\"\x80 \"",
        "\"\xf4\x90\x80\x80\"", "\"\\n\xff\"", "\"a\nb\"", "\"01234567\x1f\""}) {
    EXPECT_NE(ErrorOf(bad), "") << bad;
  }
}

TEST(Json, NumbersKeepTheirKind) {
  EXPECT_EQ(std::get<int64_t>(NumberIn("-42")), -42);
  EXPECT_EQ(std::get<int64_t>(NumberIn("9223372036854775807")), INT64_MAX);
  EXPECT_EQ(std::get<int64_t>(NumberIn("-9223372036854775808")), INT64_MIN);
  EXPECT_EQ(std::get<std::string_view>(NumberIn("9223372036854775808")), "9223372036854775808");
  EXPECT_EQ(std::get<std::string_view>(NumberIn("-123456789012345678901")),
            "-123456789012345678901");
  EXPECT_EQ(std::get<double>(NumberIn("2.0")), 2.0);
  EXPECT_EQ(std::get<double>(NumberIn("1e-05")), 1e-05);
  EXPECT_TRUE(std::signbit(std::get<double>(NumberIn("-0.0"))));
}

TEST(Json, SpecialAndHugeNumbersAreAccepted) {
  for (const char* text : {"NaN", "nan", "-nan"}) {
    EXPECT_TRUE(std::isnan(std::get<double>(NumberIn(text)))) << text;
  }
  for (const char* text : {"Infinity", "inf", "1e400"}) {
    EXPECT_EQ(std::get<double>(NumberIn(text)), INFINITY) << text;
  }
  for (const char* text : {"-Infinity", "-inf", "-1e400"}) {
    EXPECT_EQ(std::get<double>(NumberIn(text)), -INFINITY) << text;
  }
  EXPECT_EQ(std::get<double>(NumberIn("1e-400")), 0.0);
}

TEST(Json, MalformedTextIsCorruptWithItsByte) {
  EXPECT_EQ(ErrorOf("[1, x]"), "byte 4: not JSON (expected a value, got 0x78)");
  EXPECT_EQ(ErrorOf("{\"a\" 1}"), "byte 5: not JSON (expected a colon, got 0x31)");
  for (const char* bad :
       {"[1,]",  "[1 2]", "{\"a\":1,}", "{a:1}",   "01",  "1.",   "-",       "+1",
        ".5",    "1e",    "tru",        "nul",     "Nan", "[1]]", "\"\\x\"", "\"\\u12g4\"",
        "{1:2}", "",      "[",          "{\"a\":", "Inf", "1 2"}) {
    EXPECT_NE(ErrorOf(bad), "") << bad;
  }
}

TEST(Json, EveryTruncationIsReportedAsTruncated) {
  const std::string text =
      R"({"name": [1.5, -2, NaN, "te\u4e2dxt", true, null, {"deep": [[], {}]}], "b": false})";
  EXPECT_EQ(ErrorOf(text), "");
  for (size_t size = 0; size < text.size(); ++size) {
    // A copy of exactly this size, so that a read beyond the end is caught by the sanitizer.
    const std::vector<char> cut(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));
    Reader in(std::string_view(cut.data(), cut.size()));
    EXPECT_FALSE(in.SkipValue() && in.ReadEnd());
    EXPECT_EQ(in.failure(), Reader::Failure::kTruncated) << size;
    EXPECT_LE(in.offset(), size);
  }
}

TEST(Json, TooDeepIsUnsupported) {
  EXPECT_EQ(ErrorOf("[[[]]]", 3), "");
  Reader in("[[[[]]]]", 3);
  EXPECT_FALSE(in.SkipValue());
  EXPECT_EQ(in.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(ErrorOf(std::string(1000000, '[')), "");
}

// Found by fuzzing: a failure at the last visible byte, then calls that skipped the blanks after
// it.
TEST(Json, CallsAfterAFailureDoNotMove) {
  const std::string text = "{x  ";
  Reader in(text);
  std::string_view key;
  bool truth;
  EXPECT_TRUE(in.EnterObject());
  EXPECT_FALSE(in.NextMember(key));
  EXPECT_EQ(in.Peek(), Kind::kNone);
  EXPECT_FALSE(in.ReadBool(truth));
  EXPECT_FALSE(in.ReadEnd());
  EXPECT_EQ(in.offset(), 1U);
  EXPECT_EQ(in.error().message(), "byte 1: not JSON (expected a string, got 0x78)");
}

TEST(Json, ByteOrderMarkIsSkipped) { EXPECT_EQ(ErrorOf("\xEF\xBB\xBF{}"), ""); }

TEST(Json, KnownValuesAreSteppedOverOnlyWhereTheyStand) {
  Reader in(R"({"a": ["x", "]"], "b":["x", "]"] , "c": ["x"]})");
  const std::string_view known = R"(["x", "]"])";
  std::string_view key;
  ASSERT_TRUE(in.EnterObject() && in.NextMember(key));
  EXPECT_FALSE(in.SkipKnown("[\"y\"]"));
  EXPECT_TRUE(in.SkipKnown(known));
  ASSERT_TRUE(in.NextMember(key));
  EXPECT_EQ(key, "b");
  EXPECT_TRUE(in.SkipKnown(known));
  ASSERT_TRUE(in.NextMember(key));
  EXPECT_FALSE(in.SkipKnown(known));
  EXPECT_TRUE(in.SkipValue());
  EXPECT_FALSE(in.NextMember(key));
  EXPECT_TRUE(in.ReadEnd()) << in.error().message();
}

TEST(Json, ObjectsAreEnteredBehindAKnownHead) {
  const std::string_view head = R"({"type": "a", "n":)";
  Reader in(R"([ {"type": "a", "n": 1, "m": 2}, {"type": "b", "n": 3}, {"type": "a", "n": []}])",
            3);
  std::string_view key;
  Number number;
  ASSERT_TRUE(in.EnterArray() && in.NextElement());
  ASSERT_TRUE(in.EnterKnown(head));
  ASSERT_TRUE(in.ReadNumber(number));
  ASSERT_TRUE(in.NextMember(key));
  EXPECT_EQ(key, "m");
  ASSERT_TRUE(in.SkipValue());
  EXPECT_FALSE(in.NextMember(key));
  ASSERT_TRUE(in.NextElement());
  EXPECT_FALSE(in.EnterKnown(head));
  ASSERT_TRUE(in.SkipValue());
  ASSERT_TRUE(in.NextElement());
  ASSERT_TRUE(in.EnterKnown(head));
  EXPECT_FALSE(in.EnterKnown("["));  // a list in it would be too deep
  EXPECT_TRUE(in.EnterArray());
  EXPECT_FALSE(in.NextElement());
  EXPECT_FALSE(in.NextMember(key));
  EXPECT_FALSE(in.NextElement());
  EXPECT_TRUE(in.ReadEnd()) << in.error().message();
}

TEST(Json, MembersComeInOrderWithDecodedKeys) {
  Reader in(R"({"a\n": {}, "b": []})");
  std::string_view key;
  ASSERT_TRUE(in.EnterObject());
  ASSERT_TRUE(in.NextMember(key));
  EXPECT_EQ(key, "a\n");
  ASSERT_TRUE(in.SkipValue());
  ASSERT_TRUE(in.NextMember(key));
  EXPECT_EQ(key, "b");
  ASSERT_TRUE(in.SkipValue());
  EXPECT_FALSE(in.NextMember(key));
  EXPECT_TRUE(in.ReadEnd());
}

Value Of(std::string_view text) { return Value::Parse(text).value(); }

TEST(JsonValue, KindsOfValues) {
  const Value value = Of(R"( {"a": null, "b": true, "c": "x\u00e9\n", "d": [1, -2.5], "e": {}} )");
  ASSERT_TRUE(value.is_object());
  EXPECT_TRUE(value.Find("a")->is_null());
  EXPECT_TRUE(*value.Find("b")->AsBool());
  EXPECT_EQ(*value.Find("c")->AsText(), "x\xC3\xA9\n");
  EXPECT_EQ(value.Find("d")->AsList()->size(), 2U);
  EXPECT_EQ(value.Find("d")->AsList()->back().AsReal(), -2.5);
  EXPECT_TRUE(value.Find("e")->is_object());
  EXPECT_EQ(value.Find("f"), nullptr);
  EXPECT_EQ(value.Find("d")->Find("a"), nullptr);
  EXPECT_EQ(value.AsText(), nullptr);
}

TEST(JsonValue, NumbersKeepTheirKind) {
  EXPECT_EQ(Of("-9223372036854775808").AsInteger(), INT64_MIN);
  EXPECT_EQ(Of("9223372036854775808").AsInteger(), std::nullopt);
  EXPECT_EQ(Of("9223372036854775808").AsNatural(), uint64_t{1} << 63);
  EXPECT_EQ(Of("18446744073709551615").AsNatural(), UINT64_MAX);
  EXPECT_EQ(Of("18446744073709551616").AsNatural(), std::nullopt);
  EXPECT_EQ(Of("18446744073709551616").AsReal(), 18446744073709551616.0);
  EXPECT_FALSE(Of("18446744073709551616").is_integer());
  EXPECT_EQ(Of("-1").AsNatural(), std::nullopt);
  EXPECT_EQ(Of("1.0").AsInteger(), std::nullopt);
  EXPECT_EQ(Of("7").AsReal(), 7.0);
  EXPECT_EQ(Of("true").AsReal(), std::nullopt);
}

TEST(JsonValue, RefusesWhatIsNotStrict) {
  const auto place = [](std::string_view text) -> std::optional<size_t> {
    size_t at = 0;
    if (Value::Parse(text, &at)) return std::nullopt;
    return at;
  };
  EXPECT_EQ(place(""), 0U);
  EXPECT_EQ(place("{\"a\": 1,}"), 8U);
  EXPECT_EQ(place("[1, x]"), 4U);
  EXPECT_EQ(place("[1] 2"), 4U);
  EXPECT_EQ(place("[01]"), 2U);
  for (const char* text : {"NaN", "-Infinity", "nan", "inf", "1e400", "\"\\ud800\"",
                           "{\"\\udc00\": 1}", "\"\xFF\"", "\"\t\"", "[1", "{\"a\"}"}) {
    EXPECT_TRUE(place(text)) << text;
  }
  EXPECT_EQ(Value::Parse(std::string(600, '[')).error().code(), ErrorCode::kUnsupported);
  EXPECT_FALSE(place("\xEF\xBB\xBF{}"));
  EXPECT_FALSE(place("1e-400"));
}

TEST(JsonValue, MembersKeepTheirOrderAndTheLastOfOneKeyCounts) {
  Value value = Of(R"({"b": 1, "a": 2, "b": 3})");
  EXPECT_EQ(value.Find("b")->AsInteger(), 3);
  EXPECT_EQ(value.Keys(), (std::vector<std::string_view>{"a", "b"}));
  value.Remove("b");
  value.Put("c", Value(std::vector<int64_t>{1, 2}));
  value.Put("a", Value("x"));
  EXPECT_EQ(value.Text(), R"({"a":"x","c":[1,2]})");
  EXPECT_EQ(value, Of(R"({"a": "x", "c": [1, 2]})"));
  EXPECT_NE(value, Of(R"({"a": "x", "c": [1, 2.5]})"));
}

TEST(JsonValue, TextOnOneLineAndIndented) {
  const Value value =
      Of(R"({"a": [], "b": {}, "c": [0.1, 1e300, -0.0, null], "d": "\u007f\ud83d\ude00"})");
  EXPECT_EQ(value.Text(), R"({"a":[],"b":{},"c":[0.1,1e+300,-0.0,null],"d":"\u007f\ud83d\ude00"})");
  EXPECT_EQ(Of(R"({"a": [1], "b": {}})").Text(2), "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}");
  EXPECT_EQ(Value(std::string_view("a\xFF")).Text(), "\"a\\ufffd\"");
}

}  // namespace

}  // namespace plumbline::json
