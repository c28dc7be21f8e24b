// What the table says about type and default of every option is what ParseConfig does.

#include "config/options.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace plumbline::settings {
namespace {

using Json = nlohmann::json;

// A configuration with one option set, in the section of the task it belongs to.
Result<Config> WithOption(std::string_view section, std::string_view name, const Json& value) {
  Json json = {{"dump_path", "/tmp/options_test"}};
  if (section.empty()) {
    json[std::string(name)] = value;
  } else {
    json["task"] = section;
    json[std::string(section)] = {{name, value}};
  }
  return ParseConfig(json.dump(), "config.json", {});
}

// The value that a default stands for; null for words such as "required".
Json DefaultOf(const Option& option) {
  const std::string text(option.default_value.substr(0, option.default_value.find(" (")));
  const bool quoted = text.starts_with('`');
  const std::string bare = quoted ? text.substr(1, text.size() - 2) : text;
  const Json value = Json::parse(bare, nullptr, false);
  if (!value.is_discarded()) return value;
  return quoted ? Json(bare) : Json();
}

template <class Check>
void ForEachPlace(const Check& check) {
  for (const Option& option : Options()) {
    for (const std::string_view section : NamesOf(option.sections)) {
      SCOPED_TRACE(fmt::format("{}.{}", section, option.name));
      check(section, option);
    }
  }
}

TEST(Options, TheStatedDefaultIsTheOneThatAnAbsentKeyHas) {
  int compared = 0;
  ForEachPlace([&](std::string_view section, const Option& option) {
    const Json value = DefaultOf(option);
    if (value.is_null()) return;
    const Result<Config> stated = WithOption(section, option.name, value);
    const Result<Config> absent = WithOption(section, option.name, nullptr);
    ASSERT_TRUE(stated) << stated.error().message();
    ASSERT_TRUE(absent) << absent.error().message();
    EXPECT_TRUE(*stated == *absent) << value;
    ++compared;
  });
  EXPECT_GT(compared, 30);
}

TEST(Options, DefaultsInWordsAreTheKnownOnes) {
  const std::set<std::string_view> words = {"required", "not given", "none", "none (all)",
                                            "1 GiB or 2 % of the file system, whichever is less"};
  for (const Option& option : Options()) {
    if (!DefaultOf(option).is_null()) continue;
    EXPECT_TRUE(words.contains(option.default_value)) << option.name;
  }
}

TEST(Options, TheStatedTypeIsTheOnlyOneAccepted) {
  const Json number(7.5);
  const std::map<std::string_view, std::vector<Json>> wrong = {
      {"string", {number, true, Json::object()}},
      {"bool", {number, 1, "true", Json::array()}},
      {"integer", {number, true, "1", Json::array()}},
      {"list", {number, true, "0", Json::object()}},
      {"list of numbers", {number, true, Json::array({"1"}), Json::array({true})}},
      {"list of objects", {number, true, Json::object(), Json::array({1}), Json::array({"dim"})}},
      {"list of strings", {number, true, Json::array({1}), "forward"}},
      {"string or list of strings", {number, true, Json::array({1}), Json::object()}},
      {"list of two strings", {number, true, Json::array({1, 2}), Json::array({"one"})}}};
  ForEachPlace([&](std::string_view section, const Option& option) {
    if (option.type == "any") {
      EXPECT_TRUE(WithOption(section, option.name, number));
      return;
    }
    ASSERT_TRUE(wrong.contains(option.type)) << option.type;
    for (const Json& value : wrong.at(option.type)) {
      const Result<Config> config = WithOption(section, option.name, value);
      ASSERT_FALSE(config) << value;
      EXPECT_EQ(config.error().code(), ErrorCode::kInvalidArgument) << value;
      EXPECT_NE(config.error().message().find(option.name), std::string::npos) << value;
    }
  });
}

TEST(Options, NoKeyStandsTwiceInASection) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  ForEachPlace([&](std::string_view section, const Option& option) {
    EXPECT_TRUE(seen.emplace(section, option.name).second);
    EXPECT_EQ(SectionNamed(section) & option.sections, SectionNamed(section));
  });
}

TEST(Options, EveryMeaningFitsATableCell) {
  for (const Option& option : Options()) {
    EXPECT_FALSE(option.meaning.empty()) << option.name;
    EXPECT_EQ(option.meaning.find_first_of("|\n"), std::string_view::npos) << option.name;
  }
}

TEST(Options, OnlyTasksWithOptionsHaveASection) {
  EXPECT_EQ(SectionNamed("structure"), 0);
  EXPECT_EQ(SectionNamed("run_ut"), 0);
  EXPECT_NE(SectionNamed(""), 0);
}

}  // namespace
}  // namespace plumbline::settings
