#include "precheck/settings.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file/test_directory.h"

namespace plumbline::precheck::settings_test {
namespace {

Result<PrecheckSettings> Parse(std::string_view text) {
  return ParsePrecheckSettings(text, "config.json");
}

Result<PrecheckSettings> Load(const std::string& config_json, const std::string& defaults = "") {
  return LoadPrecheckSettings({.config_json = config_json, .defaults_yaml = defaults});
}

TEST(PrecheckSettings, EveryKeyIsRead) {
  const auto settings =
      Parse(R"({"task": "run_ut", "run_ut": {"white_list": ["matmul", "linalg.inv"],
      "black_list": ["__add__"], "error_data_path": ".", "seed": 7, "precision": 3}})");
  ASSERT_TRUE(settings) << settings.error().message();
  EXPECT_EQ(settings->white_list, (std::vector<std::string>{"matmul", "linalg.inv"}));
  EXPECT_EQ(settings->black_list, std::vector<std::string>{"__add__"});
  EXPECT_EQ(settings->error_data_path, ".");
  EXPECT_EQ(settings->seed, 7u);
  EXPECT_EQ(settings->precision, 3);
  EXPECT_TRUE(settings->warnings.empty());
}

TEST(PrecheckSettings, WithoutASectionAllIsDefault) {
  const auto settings = Parse(R"({"task": "statistics", "level": "L1", "dump_path": "x"})");
  ASSERT_TRUE(settings) << settings.error().message();
  EXPECT_TRUE(settings->white_list.empty());
  EXPECT_EQ(settings->error_data_path, "./");
  EXPECT_EQ(settings->precision, 14);
  EXPECT_FALSE(settings->seed);
}

TEST(PrecheckSettings, TheNewerSectionWins) {
  const auto settings =
      Parse(R"({"run_ut": {"white_list": ["add"]}, "acc_check": {"white_list": ["mul"]}})");
  EXPECT_EQ(settings->white_list, std::vector<std::string>{"mul"});
}

TEST(PrecheckSettings, MistakesNameTheKey) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"run_ut": {"white_list": ["matmul", "nonsense"]}})",
       "run_ut.white_list: nonsense is no"},
      {R"({"run_ut": {"black_list": "matmul"}})", "run_ut.black_list: is \"matmul\""},
      {R"({"acc_check": {"white_list": [1]}})", "acc_check.white_list"},
      {R"({"run_ut": {"error_data_path": "/no/such/place"}})", "run_ut.error_data_path"},
      {R"({"run_ut": {"precision": 21}})", "run_ut.precision"},
      {R"({"run_ut": {"precision": true}})", "run_ut.precision"},
      {R"({"run_ut": {"seed": -1}})", "run_ut.seed"},
      {R"({"run_ut": []})", "run_ut: is []"},
      {R"({"task": "nix", "run_ut": {}})", "task: is \"nix\""},
      {R"({"level": "L9", "run_ut": {}})", "level: is \"L9\""},
      {R"([])", "top level"},
      {R"({)", "not valid JSON"},
      {R"({"run_ut": {"is_online": 1}})", "run_ut.is_online"},
      {R"({"run_ut": {"port": 70000}})", "run_ut.port"},
      {R"({"run_ut": {"rank_list": ["a"]}})", "run_ut.rank_list"},
  };
  for (const auto& [text, expected] : cases) {
    const auto settings = Parse(text);
    ASSERT_FALSE(settings) << text;
    EXPECT_NE(settings.error().message().find(expected), std::string::npos)
        << settings.error().message();
    EXPECT_EQ(settings.error().message().find("config.json: "), 0u);
  }
}

TEST(PrecheckSettings, KeysOfTheOnlineCheck) {
  const auto settings = Parse(
      R"({"run_ut": {"is_online": true, "nfs_path": "", "host": "10.0.0.7", "port": 28000,
                     "rank_list": [0, 3], "tls_path": "certificates"}})");
  ASSERT_TRUE(settings) << settings.error().message();
  EXPECT_TRUE(settings->warnings.empty());
  EXPECT_TRUE(settings->is_online);
  EXPECT_EQ(settings->host, "10.0.0.7");
  EXPECT_EQ(settings->port, 28000);
  EXPECT_EQ(settings->rank_list, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(settings->tls_path, "certificates");
}

TEST(PrecheckSettings, UnknownKeysAreWarnedOfAndOnlineKeysAccepted) {
  const auto settings = Parse(
      R"({"run_ut": {"whitelist": ["add"], "is_online": false, "host": "h", "rank_list": [0]}})");
  ASSERT_TRUE(settings) << settings.error().message();
  ASSERT_EQ(settings->warnings.size(), 1u);
  EXPECT_NE(settings->warnings[0].find("Did you mean \"white_list\"?"), std::string::npos);
}

TEST(PrecheckSettings, FilesHaveTheRulesOfConfigurations) {
  plumbline::testing::TestDirectory directory;
  std::ofstream(directory.Path("config.json")) << R"({"run_ut": {"seed": 3}})";
  EXPECT_EQ(Load(directory.Path("config.json"))->seed, 3u);
  const auto missing = Load(directory.Path("none.json"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  std::ofstream(directory.Path("config.txt")) << "{}";
  EXPECT_FALSE(Load(directory.Path("config.txt")));
}

TEST(PrecheckSettings, SingleKeysReplaceThoseOfTheDefaults) {
  plumbline::testing::TestDirectory directory;
  std::ofstream(directory.Path("config.yaml"))
      << "white_list: [add, mul]\nblack_list: []\nerror_data_path: './'\nprecision: 9\n"
         "is_online: False\nhost: \"\"\n";
  std::ofstream(directory.Path("config.json")) << R"({"run_ut": {"white_list": ["matmul"]}})";
  const auto alone = Load("", directory.Path("config.yaml"));
  ASSERT_TRUE(alone) << alone.error().message();
  EXPECT_EQ(alone->white_list, (std::vector<std::string>{"add", "mul"}));
  const auto both = Load(directory.Path("config.json"), directory.Path("config.yaml"));
  ASSERT_TRUE(both) << both.error().message();
  EXPECT_EQ(both->white_list, std::vector<std::string>{"matmul"});
  EXPECT_EQ(both->precision, 9);
  EXPECT_TRUE(both->warnings.empty());
  for (const char* wrong :
       {"precision: true", "white_list: nix", "white_list: [1]", "- a", "a: ["}) {
    std::ofstream(directory.Path("wrong.yaml")) << wrong;
    const auto settings = Load("", directory.Path("wrong.yaml"));
    ASSERT_FALSE(settings) << wrong;
    EXPECT_EQ(settings.error().code(), ErrorCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace plumbline::precheck::settings_test
