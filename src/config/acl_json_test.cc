#include "config/acl_json.h"

#include <gtest/gtest.h>

namespace plumbline::acl_json {
namespace {

// As documents of the ACL runtime print it.
constexpr std::string_view kPrinted = R"({
    "dump":
    {
            "dump_list":[]
            "dump_path":"./output_IR2TBE"# where it goes
            "dump_mode":"all"
            "dump_op_switch":"on"
    }
})";

constexpr std::string_view kMeant = R"({
    "dump":
    {
            "dump_list":[],
            "dump_path":"./output_IR2TBE",
            "dump_mode":"all",
            "dump_op_switch":"on"
    }
})";

std::vector<std::string> ErrorsOf(const std::string& members) {
  const auto checked = Check("{\"dump\": {" + members + "}}", /*is_lenient=*/false);
  return checked ? checked->errors : std::vector<std::string>{checked.error().message()};
}

TEST(AclJson, ThePrintedFileIsRepaired) {
  const auto checked = Check(kPrinted, /*is_lenient=*/true);
  ASSERT_TRUE(checked) << checked.error().message();
  EXPECT_EQ(checked->text, kMeant);
  EXPECT_TRUE(checked->errors.empty());
  EXPECT_EQ(checked->repairs,
            (std::vector<std::string>{
                "line 4, column 27: a comma is missing", "line 5, column 42: a comment",
                "line 5, column 42: a comma is missing", "line 6, column 30: a comma is missing"}));
}

TEST(AclJson, ThePrintedFileIsRefusedWithItsPlace) {
  const auto checked = Check(kPrinted, /*is_lenient=*/false);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(checked.error().message().find("line 4, column 27: a comma is missing"), 0U);
  EXPECT_NE(checked.error().message().find("4 to repair"), std::string::npos);
}

TEST(AclJson, JsonIsTakenAsItIs) {
  for (const std::string_view text :
       {kMeant,
        std::string_view(R"({"dump": {"dump_path": "/a#b//c, \"d\"", "dump_debug": "on"}})"),
        std::string_view(R"({"a": [1, -2.5e3, true, null, {}], "dump": {"dump_scene": "x"}})")}) {
    const auto checked = Check(text, /*is_lenient=*/false);
    ASSERT_TRUE(checked) << checked.error().message();
    EXPECT_EQ(checked->text, text);
    EXPECT_TRUE(Repair(text).repairs.empty());
    EXPECT_TRUE(checked->errors.empty());
  }
}

TEST(AclJson, CommasBehindTheLastMemberGo) {
  const auto checked = Check("{\"dump\": {\"dump_path\": \"a\", // here\n},\n}", true);
  ASSERT_TRUE(checked) << checked.error().message();
  EXPECT_EQ(checked->text, "{\"dump\": {\"dump_path\": \"a\" \n}\n}");
  EXPECT_EQ(checked->repairs.size(), 3U);
}

TEST(AclJson, CommentsOfManyLinesAndAByteOrderMarkGo) {
  const std::string_view text =
      "\xEF\xBB\xBF{/* one */\"dump\": {\"dump_path\": 5/* two\n \"}, */,\n\"dump_list\": []}}/**/";
  const auto checked = Check(text, /*is_lenient=*/true);
  ASSERT_TRUE(checked) << checked.error().message();
  EXPECT_EQ(checked->text, "{\"dump\": {\"dump_path\": 5\n,\n\"dump_list\": []}}");
  EXPECT_EQ(checked->repairs,
            (std::vector<std::string>{"line 1, column 1: a byte order mark",
                                      "line 1, column 5: a comment", "line 1, column 37: a comment",
                                      "line 3, column 18: a comment"}));
  const auto strict = Check(text, /*is_lenient=*/false);
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().message().find("line 1, column 1: a byte order mark"), 0U);
  EXPECT_NE(strict.error().message().find("4 to repair"), std::string::npos);
  EXPECT_FALSE(Check("{\"dump\": {\"dump_path\": \"a\"} /* never ends *}", true));
  EXPECT_EQ(Check("{\"dump\": {\"dump_path\": \"/*a*/\"}}", false)->text,
            "{\"dump\": {\"dump_path\": \"/*a*/\"}}");
}

TEST(AclJson, WhatIsNoJsonHasItsPlace) {
  for (const auto& [text, place] : std::vector<std::pair<std::string, std::string>>{
           {"", "line 1, column 1"},
           {"{\n \"dump\": ", "line 2, column 10"},
           {"{\"dump\":\n {\"dump_path\" \"a\"}}", "line 2"},
           {"{\"dump\": {\"dump_path\": \"a}}", "line 1"},
           {"{\"dump\": {,}}", "line 1"},
           {"[]", "has no object \"dump\""},
           {"{\"dump\": []}", "has no object \"dump\""}}) {
    for (const bool is_lenient : {false, true}) {
      const auto checked = Check(text, is_lenient);
      ASSERT_FALSE(checked) << text;
      EXPECT_NE(checked.error().message().find(place), std::string::npos)
          << text << ": " << checked.error().message();
    }
  }
}

TEST(AclJson, EveryCutIsAnError) {
  for (size_t size = 0; size < kPrinted.size(); ++size) {
    EXPECT_FALSE(Check(kPrinted.substr(0, size), /*is_lenient=*/true)) << size;
  }
}

TEST(AclJson, WrongEntriesAreNamed) {
  const std::string path = R"("dump_path": "a", )";
  EXPECT_TRUE(ErrorsOf(path + R"("dump_list": [{"model_name": "m", "layer": ["a"]}, {"layer": []}],
                                 "dump_data": "stats", "dump_stats": ["Max", "L2norm"],
                                 "dump_step": "0|3-5", "dump_level": "kernel")")
                  .empty());
  for (const auto& [members, field] : std::vector<std::pair<std::string, std::string>>{
           {R"("dump_mode": "all")", "dump.dump_path: is missing"},
           {R"("dump_path": "")", "dump.dump_path: "},
           {R"("dump_path": 3)", "dump.dump_path: "},
           {path + R"("dump_mode": "both")", "dump.dump_mode: "},
           {path + R"("dump_op_switch": true)", "dump.dump_op_switch: "},
           {path + R"("dump_debug": "yes")", "dump.dump_debug: "},
           {path + R"("dump_data": "none")", "dump.dump_data: "},
           {path + R"("dump_level": "x")", "dump.dump_level: "},
           {path + R"("dump_stats": ["Mean"])", "dump.dump_stats: "},
           {path + R"("dump_step": "a")", "dump.dump_step: "},
           {path + R"("dump_step": 3)", "dump.dump_step: "},
           {path + R"("dump_list": {})", "dump.dump_list: "},
           {path + R"("dump_list": ["op1"])", "dump.dump_list: "},
           {path + R"("dump_list": [{}])", "dump.dump_list: "}}) {
    const std::vector<std::string> errors = ErrorsOf(members);
    ASSERT_EQ(errors.size(), 1U) << members;
    EXPECT_EQ(errors[0].find(field), 0U) << errors[0];
  }
}

TEST(AclJson, EntriesWithoutEffectAreWarnings) {
  const auto checked =
      Check(R"({"dump": {"dump_path": "a", "dump_mod": "all", "dump_stats": ["Max"]}})", false);
  ASSERT_TRUE(checked);
  ASSERT_EQ(checked->warnings.size(), 2U);
  EXPECT_NE(checked->warnings[0].find("Did you mean \"dump_mode\"?"), std::string::npos);
  EXPECT_NE(checked->warnings[1].find("dump.dump_stats"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::acl_json
