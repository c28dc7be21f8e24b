#include "config/graph_dump/dump_settings.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

namespace plumbline::graph_dump {

namespace {

// Which of 0 to 200 a text selects, as items of single numbers and ranges.
std::string Selected(std::string_view text) {
  const Result<Iterations> iterations = ParseIterations(text);
  if (!iterations) return "error";
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i <= 200; ++i) {
    if (iterations->Contains(static_cast<uint64_t>(i))) numbers.push_back(i);
  }
  return numbers.empty() ? "none" : IterationText(numbers, /*with_ranges=*/true);
}

size_t Warnings(std::string_view text) { return ParseIterations(text)->warnings.size(); }

TEST(Iterations, SelectWhatTheirItemsSay) {
  EXPECT_EQ(Selected("all"), "0-200");
  EXPECT_EQ(Selected("0|5-8|100-120"), "0|5-8|100-120");
  EXPECT_EQ(Selected("5-5"), "5");
  EXPECT_EQ(Selected("007"), "7");
  EXPECT_EQ(Selected("3-6|5-8|4"), "3-8");
  for (const char* text : {"5-5", "007", "0|5-8", "3-6|5-8|4"}) EXPECT_EQ(Warnings(text), 0U);
}

TEST(Iterations, ItemsThatNeverMatchAreWarnings) {
  for (const char* text : {"8-5", "1-2-3", "3-", "-3", "4294967296", "99999999999999999999"}) {
    EXPECT_EQ(Selected(text), "none") << text;
    EXPECT_EQ(Warnings(text), 1U) << text;
  }
  EXPECT_EQ(Selected("|3"), "3");
  EXPECT_EQ(Selected("3||4"), "3-4");
  EXPECT_EQ(Warnings("3||4"), 1U);
  EXPECT_EQ(Selected("8-5|2"), "2");
}

TEST(Iterations, OtherCharactersAreNamedWithTheirPlace) {
  for (const char* text : {"ALL", "a", "0,5", "0 | 5", "", "all|3"}) {
    EXPECT_EQ(Selected(text), "error") << text;
  }
  EXPECT_NE(ParseIterations("0 | 5").error().message().find("' ' at position 1"),
            std::string::npos);
}

TEST(Iterations, AreWrittenAsUpstreamDoes) {
  const std::array<int64_t, 4> numbers = {0, 5, 6, 7};
  EXPECT_EQ(IterationText(numbers, /*with_ranges=*/false), "0|5|6|7");
  EXPECT_EQ(IterationText({}, /*with_ranges=*/false), "all");
}

using Json = nlohmann::ordered_json;

Json Valid() {
  DumpSettings settings;
  settings.path = "/data/dump";
  settings.support_device = {0};
  settings.sync.emplace();
  return Json::parse(DumpSettingsText(settings));
}

Json With(const char* section, const char* key, const Json& value) {
  Json json = Valid();
  json[section][key] = value;
  return json;
}
Json Common(const char* key, const Json& value) { return With("common_dump_settings", key, value); }
Json Sync(const char* key, const Json& value) { return With("e2e_dump_settings", key, value); }

CheckedSettings Check(const Json& json, DeviceKind device = DeviceKind::kUnknown) {
  const Result<CheckedSettings> checked = CheckDumpSettings(json.dump(), device);
  EXPECT_TRUE(checked);
  return checked ? *checked : CheckedSettings();
}

// Whether the only error is about `key`.
bool Blames(const Json& json, const std::string& key, DeviceKind device = DeviceKind::kUnknown) {
  const CheckedSettings checked = Check(json, device);
  return checked.errors.size() == 1 && checked.errors[0].find(key + ": ") != std::string::npos;
}
bool Warns(const Json& json, const std::string& key, DeviceKind device = DeviceKind::kUnknown) {
  const CheckedSettings checked = Check(json, device);
  return checked.errors.empty() && checked.warnings.size() == 1 &&
         checked.warnings[0].find(key) != std::string::npos;
}

TEST(DumpSettings, WhatIsWrittenIsValid) {
  for (const DeviceKind device :
       {DeviceKind::kUnknown, DeviceKind::kCpu, DeviceKind::kGpu, DeviceKind::kAscend}) {
    const CheckedSettings checked = Check(Valid(), device);
    EXPECT_TRUE(checked.errors.empty());
    EXPECT_TRUE(checked.warnings.empty());
    EXPECT_EQ(Json::parse(DumpSettingsText(checked.settings)), Valid());
  }
}

TEST(DumpSettings, EveryKeyIsKept) {
  Json json = Common("saved_data", "statistic");
  json["common_dump_settings"]["statistic_category"] = {"max", "hash:md5"};
  json["common_dump_settings"]["op_debug_mode"] = 3;
  json["common_dump_settings"]["overflow_number"] = 2;
  json["common_dump_settings"]["initial_iteration"] = 7;
  json["e2e_dump_settings"] = {{"enable", false},
                               {"trans_flag", false},
                               {"stat_calc_mode", "device"},
                               {"device_stat_precision_mode", "low"},
                               {"sample_mode", 1},
                               {"sample_num", 5}};
  EXPECT_EQ(Json::parse(DumpSettingsText(Check(json, DeviceKind::kAscend).settings)), json);
}

TEST(DumpSettings, MissingKeysAreNamed) {
  for (const char* key :
       {"dump_mode", "net_name", "iteration", "input_output", "kernels", "support_device"}) {
    Json json = Valid();
    json["common_dump_settings"].erase(key);
    EXPECT_TRUE(Blames(json, key)) << key;
  }
  Json async = Valid();
  async.erase("e2e_dump_settings");
  EXPECT_TRUE(Blames(async, "op_debug_mode"));
  Json none = Valid();
  none.erase("common_dump_settings");
  EXPECT_TRUE(Blames(none, "common_dump_settings"));
  Json newest = Valid();
  newest["e2e_dump_settings"].erase("trans_flag");
  EXPECT_TRUE(Warns(newest, "e2e_dump_settings.trans_flag"));
  Json no_path = Valid();
  no_path["common_dump_settings"].erase("path");
  EXPECT_TRUE(Warns(no_path, "MS_DIAGNOSTIC_DATA_PATH"));
}

TEST(DumpSettings, WrongTypesAreNamed) {
  const Json wrong = Json::object();
  const Json valid = Valid();
  for (const auto& [key, value] : valid["common_dump_settings"].items()) {
    EXPECT_TRUE(Blames(Common(key.c_str(), wrong), key)) << key;
  }
  for (const char* key : {"op_debug_mode", "file_format", "overflow_number", "statistic_category",
                          "initial_iteration"}) {
    EXPECT_TRUE(Blames(Common(key, wrong), key)) << key;
  }
  for (const char* key : {"enable", "trans_flag", "save_kernel_args", "stat_calc_mode",
                          "device_stat_precision_mode", "sample_mode", "sample_num"}) {
    EXPECT_TRUE(Blames(Sync(key, wrong), key)) << key;
  }
  Json section = Valid();
  section["e2e_dump_settings"] = true;
  EXPECT_TRUE(Blames(section, "e2e_dump_settings"));
}

TEST(DumpSettings, WrongValuesAreNamed) {
  EXPECT_TRUE(Blames(Common("dump_mode", 3), "dump_mode"));
  EXPECT_TRUE(Blames(Common("dump_mode", -1), "dump_mode"));
  EXPECT_TRUE(Blames(Common("input_output", 3), "input_output"));
  EXPECT_TRUE(Blames(Common("op_debug_mode", 5), "op_debug_mode"));
  EXPECT_TRUE(Blames(Common("path", "data"), "path"));
  EXPECT_TRUE(Blames(Common("path", "/home/a.b"), "path"));  // as MindSpore 2.10.0
  EXPECT_TRUE(Blames(Common("net_name", "a.b"), "net_name"));
  EXPECT_TRUE(Blames(Common("net_name", ""), "net_name"));
  EXPECT_TRUE(Blames(Common("iteration", ""), "iteration"));
  EXPECT_TRUE(Blames(Common("saved_data", "all"), "saved_data"));
  EXPECT_TRUE(Blames(Common("kernels", {1}), "kernels"));
  EXPECT_TRUE(Blames(Common("support_device", {-1}), "support_device"));
  EXPECT_TRUE(Blames(Common("statistic_category", {"sum"}), "statistic_category"));
  EXPECT_TRUE(Blames(Sync("sample_num", 0), "sample_num"));
  EXPECT_TRUE(Blames(Sync("sample_mode", 2), "sample_mode"));
  Json regex = Common("kernels", {"a", "name-regex([)"});
  regex["common_dump_settings"]["dump_mode"] = 1;
  EXPECT_TRUE(Blames(regex, "common_dump_settings: kernels[1]"));
}

TEST(DumpSettings, ASelectionOfNothingIsAnError) {
  for (const char* nothing : {"8-5", "|", "3-", "1-2-3", "4294967296"}) {
    EXPECT_TRUE(Blames(Common("iteration", nothing), "common_dump_settings.iteration")) << nothing;
  }
  EXPECT_TRUE(Check(Common("iteration", "8-5|0")).errors.empty());
}

TEST(DumpSettings, EntriesThatContradictEachOther) {
  EXPECT_TRUE(Blames(Common("overflow_number", 1), "overflow_number"));
  EXPECT_TRUE(Warns(Common("kernels", {"relu"}), "kernels: has no effect"));
  EXPECT_TRUE(Warns(Common("op_debug_mode", 1), "op_debug_mode: is 1"));
  EXPECT_TRUE(Warns(Common("op_debug_mode", 4), "iteration is taken as all", DeviceKind::kAscend));
  EXPECT_TRUE(Warns(Common("statistic_category", {"max"}), "statistic_category: has no effect"));
  EXPECT_TRUE(Warns(Common("iteration", "8-5|2"), "can never match"));
  EXPECT_TRUE(Warns(Common("file_format", "npy"), "file_format: has no effect"));
  EXPECT_TRUE(Warns(Sync("stat_calc_mode", "device"), "taken as \"host\"", DeviceKind::kAscend));
  Json async = Common("saved_data", "full");
  async.erase("e2e_dump_settings");
  async["common_dump_settings"]["op_debug_mode"] = 0;
  EXPECT_TRUE(Blames(async, "saved_data"));
  async["common_dump_settings"]["file_format"] = "npy";
  EXPECT_TRUE(Check(async).errors.empty());
}

TEST(DumpSettings, DevicesCannotDoEverything) {
  EXPECT_TRUE(Blames(Common("saved_data", "full"), "saved_data", DeviceKind::kCpu));
  EXPECT_TRUE(Check(Common("saved_data", "full"), DeviceKind::kGpu).errors.empty());
  EXPECT_TRUE(Blames(Common("dump_mode", 2), "dump_mode", DeviceKind::kCpu));
  EXPECT_TRUE(Check(Common("dump_mode", 2), DeviceKind::kAscend).errors.empty());
  EXPECT_TRUE(Warns(Common("op_debug_mode", 3), "only Ascend knows", DeviceKind::kCpu));
  EXPECT_TRUE(Warns(Sync("sample_mode", 1), "sample_mode", DeviceKind::kCpu));
}

TEST(DumpSettings, UnknownKeysHaveAGuess) {
  EXPECT_TRUE(Warns(Common("kernel", Json::array()), "Did you mean \"kernels\"?"));
  Json json = Valid();
  json["e2e_dump_setting"] = Json::object();
  EXPECT_TRUE(Warns(json, "Did you mean \"e2e_dump_settings\"?"));
}

TEST(DumpSettings, OtherTextsAreOneError) {
  for (const char* text : {"", "{", "[]", "\xEF\xBB\xBF{}", "null"}) {
    const auto checked = CheckDumpSettings(text, DeviceKind::kUnknown);
    ASSERT_FALSE(checked) << text;
    EXPECT_EQ(checked.error().code(), ErrorCode::kInvalidArgument);
  }
}

}  // namespace

}  // namespace plumbline::graph_dump
