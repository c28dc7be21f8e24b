#include "formats/json/json_feed.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/file/test_directory.h"
#include "base/process/sanitizer_for_test.h"
#include "formats/json/dump_json.h"

namespace plumbline {

namespace {

using testing::TestDirectory;

constexpr int kDepth = 16;
constexpr size_t kMegabyte = size_t{1} << 20;

// The numbers of the list in the file, read one by one; the error where there is one.
Result<std::vector<int64_t>> NumbersIn(const std::string& path) {
  PL_TRY_ASSIGN(StreamedText file, StreamedText::Open(path));
  JsonFeed feed(file, kDepth);
  std::vector<int64_t> numbers;
  PL_TRY(feed.Read([&]() -> Status {
    if (!feed.in().EnterArray()) return feed.in().error();
    return {};
  }));
  for (;;) {
    bool more = false;
    json::Number number;
    PL_TRY(feed.Read([&]() -> Status {
      more = feed.in().NextElement();
      if (more) feed.in().ReadNumber(number);
      if (feed.in().failed()) return feed.in().error();
      return {};
    }));
    if (!more) break;
    numbers.push_back(std::get<int64_t>(number));
    feed.Release(feed.in().offset());
  }
  PL_TRY(feed.ReadEnd());
  return numbers;
}

// A list of numbers of `bytes` bytes or a little more, behind so many blanks.
std::string ListText(size_t bytes, size_t blanks, std::vector<int64_t>& numbers) {
  std::mt19937_64 random(7);
  std::string text = "[" + std::string(blanks, ' ');
  while (text.size() < bytes) {
    numbers.push_back(static_cast<int64_t>(random() >> (1 + random() % 62)));
    text += (numbers.size() > 1 ? ", " : "") + std::to_string(numbers.back());
  }
  return text + "]";
}

TEST(JsonFeed, NumbersThatMeetTheEndOfALoadedPartAreWhole) {
  const TestDirectory directory;
  const std::string path = directory.Path("list.json");
  // A list beyond the first parts, and one that moves every number over their ends.
  for (const size_t blanks : {size_t{0}, size_t{1}, size_t{7}, 3 * kMegabyte, 9 * kMegabyte}) {
    std::vector<int64_t> expected;
    ASSERT_TRUE(
        WriteFileAtomically(path, ListText(blanks + 9 * kMegabyte, blanks, expected), false));
    const auto numbers = NumbersIn(path);
    ASSERT_TRUE(numbers) << numbers.error().message();
    EXPECT_TRUE(*numbers == expected) << blanks;
  }
}

TEST(JsonFeed, DamageFarBehindIsFoundWithItsByte) {
  const TestDirectory directory;
  const std::string path = directory.Path("list.json");
  std::vector<int64_t> expected;
  std::string text = ListText(6 * kMegabyte, 0, expected);
  text.pop_back();
  ASSERT_TRUE(WriteFileAtomically(path, text, false));
  EXPECT_NE(NumbersIn(path).error().message().find(std::to_string(text.size())), text.npos);
  ASSERT_TRUE(WriteFileAtomically(path, text + "] x", false));
  EXPECT_NE(NumbersIn(path).error().message().find(std::to_string(text.size() + 2)), text.npos);
}

// A file with such an end, of which no memory may be taken, extended to gigabytes of zeros.
std::string Sparse(const TestDirectory& directory, const std::string& text) {
  std::string path = directory.Path("sparse.json");
  EXPECT_TRUE(WriteFileAtomically(path, text, false));
  std::filesystem::resize_file(path, uint64_t{3} << 30);
  return path;
}

TEST(JsonFeed, OfADamagedFileOfAnySizeLittleIsLoaded) {
  const TestDirectory directory;
  std::vector<int64_t> numbers;
  const std::string list = ListText(kMegabyte, 0, numbers);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_DATA, &before), 0);
  struct rlimit limit = before;
  // AddressSanitizer maps memory of its own, which has no limit.
  if (!kHasAddressSanitizer) limit.rlim_cur = size_t{256} << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &limit), 0);
  for (const std::string& text : {std::string(), std::string("["), list, std::string("[1, \"x")}) {
    const auto read = NumbersIn(Sparse(directory, text));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), ErrorCode::kCorrupt) << read.error().message();
  }
  const auto dump = dump_json::ReadDump(Sparse(directory, "{\"data\": {}}"), true);
  EXPECT_TRUE(dump && dump->loss.truncated);
  EXPECT_FALSE(dump_json::ReadStack(Sparse(directory, "{\"a\": [\"x\"]")));
  EXPECT_FALSE(dump_json::ReadCallTree(Sparse(directory, "{\"a\": null")));
  ::setrlimit(RLIMIT_DATA, &before);
}

TEST(JsonFeed, AnyNumberOfBlanksMayFollow) {
  const TestDirectory directory;
  const std::string path = directory.Path("list.json");
  ASSERT_TRUE(WriteFileAtomically(path, "[1, 2]" + std::string(13 * kMegabyte, ' '), false));
  EXPECT_TRUE(NumbersIn(path));
  ASSERT_TRUE(WriteFileAtomically(path, "[1, 2]" + std::string(13 * kMegabyte, ' ') + "x", false));
  EXPECT_FALSE(NumbersIn(path));
}

TEST(JsonFeed, EntriesLargerThanAnyPartAreRead) {
  // Names, texts and lists of megabytes, in the header, in an entry and behind the entries.
  const std::string large(5 * kMegabyte, 'x');
  std::string text = "{\"note\": \"" + large + "\", \"task\": \"statistics\", \"data\": {";
  for (const std::string& name : {std::string("a"), large, std::string("b")}) {
    text += "\"" + name + ".forward\": {\"output\": [{\"type\": \"str\", \"value\": \"" + large +
            "\"}]}, ";
  }
  text += "\"c.forward\": {\"output\": []}}, \"rest\": [\"" + large + "\"]}";
  const TestDirectory directory;
  const std::string path = directory.Path("dump.json");
  ASSERT_TRUE(WriteFileAtomically(path, text, false));
  const auto from_file = dump_json::ReadDump(path, false);
  ASSERT_TRUE(from_file) << from_file.error().message().substr(0, 200);
  ASSERT_EQ(from_file->calls.size(), 4U);
  EXPECT_EQ(from_file->header.task, "statistics");
  EXPECT_TRUE(from_file->calls[1].name == large + ".forward");
  const Value* output = from_file->calls[2].Find("output");
  ASSERT_NE(output, nullptr);
  const Value* value = output->As<ValueList>()->front().Find("value");
  ASSERT_NE(value, nullptr);
  EXPECT_TRUE(*value->As<std::string>() == large);
}

}  // namespace

}  // namespace plumbline

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
