#include "formats/json_rewrite.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "formats/json_document.h"

namespace plumbline::json {
namespace {

std::string Rewritten(std::string_view text, const RewriteOptions& options = {}) {
  std::string out;
  const Status status = Rewrite(text, options, out);
  return status ? out : "error: " + status.error().message();
}

TEST(JsonRewrite, NumbersKeysAndOrderAreKept) {
  EXPECT_EQ(Rewritten(R"({"b": 1.50, "a": [1e400, 123456789012345678901234567890], "b": -0})"),
            "{\n \"b\": 1.50,\n \"a\": [\n  1e400,\n  123456789012345678901234567890\n ],\n"
            " \"b\": -0\n}");
}

TEST(JsonRewrite, EmptyContainersStayOnOneLine) {
  EXPECT_EQ(Rewritten(R"({"a": {}, "b": [ ]})", {.indent = 2}), "{\n  \"a\": {},\n  \"b\": []\n}");
}

TEST(JsonRewrite, StrictHasNoBareTokens) {
  const RewriteOptions strict{.strict = true};
  EXPECT_EQ(Rewritten("[NaN, Infinity, -Infinity, nan, inf, -inf, 1e400, -1e400, 1.0]", strict),
            "[\n \"NaN\",\n \"Infinity\",\n \"-Infinity\",\n \"NaN\",\n \"Infinity\",\n"
            " \"-Infinity\",\n \"Infinity\",\n \"-Infinity\",\n 1.0\n]");
  EXPECT_EQ(Rewritten("[NaN, -Infinity]"), "[\n NaN,\n -Infinity\n]");
}

TEST(JsonRewrite, TextsOfOneKeyAreReplaced) {
  const RewriteOptions options{.replace = [](std::string_view key, std::string_view text) {
    return key == "data_name" ? std::optional(std::string(text) + "!") : std::nullopt;
  }};
  EXPECT_EQ(Rewritten(R"({"x": "data_name", "o": {"data_name": "a\u00e9"}})", options),
            "{\n \"x\": \"data_name\",\n \"o\": {\n  \"data_name\": \"a\\u00e9!\"\n }\n}");
}

TEST(JsonRewrite, OuterLevelsIndentTheText) {
  EXPECT_EQ(Rewritten("[1]", {.indent = 2, .outer_levels = 2}), "[\n      1\n    ]");
}

TEST(JsonDocument, SeparatesAndEscapes) {
  Document out;
  out.Open('{');
  out.Member("a\"", "b\n");
  out.Number("n", 18446744073709551615u);
  out.Texts("t", {"x", "y"});
  out.Key("raw");
  out.Raw("[NaN]");
  out.Truth("no", false);
  out.Close('}');
  EXPECT_EQ(*out.Finish(),
            "{\n  \"a\\\"\": \"b\\n\",\n  \"n\": 18446744073709551615,\n  \"t\": [\n"
            "    \"x\",\n    \"y\"\n  ],\n  \"raw\": [\n    NaN\n  ],\n  \"no\": false\n}");
}

// Whatever the real tool wrote, unknown keys included, is written again without a change.
TEST(JsonRewrite, FilesOfUpstreamComeBackByteForByte) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(PLUMBLINE_TEST_DATA)) {
    const std::string name = entry.path().filename().string();
    if (name != "dump.json" && name != "debug.json" && name != "stack.json") continue;
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(Rewritten(text), text) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 18u);
}

TEST(JsonRewrite, DamageIsAnError) {
  for (const char* text : {"", "{", "[1,", "{\"a\": }", "[1] x", "{\"a\" 1}"}) {
    EXPECT_EQ(Rewritten(text).substr(0, 6), "error:") << text;
  }
}

}  // namespace
}  // namespace plumbline::json
