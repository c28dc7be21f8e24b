#include "config/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "config/selection.h"

namespace plumbline {
namespace {

using Numbers = std::vector<int64_t>;

Result<Config> Parse(std::string_view text, const ConfigOverrides& overrides = {}) {
  return ParseConfig(text, "config.json", overrides);
}

// Expects an error of that code whose message holds every one of `texts`.
void ExpectError(const Result<Config>& result, ErrorCode code,
                 const std::vector<std::string>& texts) {
  ASSERT_FALSE(result) << texts.front();
  EXPECT_EQ(result.error().code(), code) << result.error().message();
  for (const std::string& text : texts) {
    EXPECT_NE(result.error().message().find(text), std::string::npos)
        << "no \"" << text << "\" in: " << result.error().message();
  }
}

TEST(Config, KeysInTheSectionOfATaskWithoutOptionsAreNamed) {
  const auto config = ParseConfig(
      R"({"task": "structure", "level": "mix", "dump_path": "./d", "structure": {"scope": []}})",
      "config.json", {});
  ASSERT_TRUE(config) << config.error().message();
  ASSERT_EQ(config->warnings.size(), 1u);
  EXPECT_EQ(config->warnings[0], "config.json: structure.scope: unknown key, ignored");
}

TEST(Config, SlicesAreReadPartByPart) {
  const auto config = Parse(
      R"({"dump_path": "d", "statistics": {"request_id": "r-1", "slice": [
          {"end": -1}, {}, {"dim": 2, "size": 0, "begin": -3, "end": null, "step": 2}]}})");
  ASSERT_TRUE(config) << config.error().message();
  const std::vector<TensorSlice> expected = {{.end = -1}, {.dim = 2, .size = 0, .begin = -3}};
  EXPECT_EQ(config->slices, expected);
  EXPECT_EQ(config->request_id, "r-1");
  ASSERT_EQ(config->warnings.size(), 1u);
  EXPECT_NE(config->warnings[0].find("statistics.slice.step: unknown key"), std::string::npos);
}

TEST(Config, SlicesThatAreNoneAreErrors) {
  const auto expect = [](std::string_view slices, const std::vector<std::string>& texts) {
    const std::string text =
        fmt::format(R"({{"dump_path": "d", "task": "tensor", "tensor": {{"slice": {}}}}})", slices);
    ExpectError(Parse(text), ErrorCode::kInvalidArgument, texts);
  };
  expect("3", {"tensor.slice: is 3", "a list of objects"});
  expect("[[0, 1]]", {"tensor.slice: is [0,1]", "every element to be an object"});
  expect(R"([{"begin": 1.5}])", {"tensor.slice.begin: is 1.5", "an integer"});
  expect(R"([{"end": true}])", {"tensor.slice.end: is true", "an integer"});
  expect(R"([{"dim": -1}])", {"tensor.slice.dim: is -1", "at least 0"});
  expect(R"([{"size": -4}])", {"tensor.slice.size: is -4", "at least 0"});
  ExpectError(Parse(R"({"dump_path": "d", "statistics": {"request_id": 7}})"),
              ErrorCode::kInvalidArgument, {"statistics.request_id: is 7", "a string"});
}

TEST(Config, SlicesHaveNoEffectWhereValuesAreNamed) {
  for (const char* level : {"debug", "L2"}) {
    const auto config = Parse(fmt::format(
        R"({{"dump_path": "d", "level": "{}", "task": "tensor", "tensor": {{"request_id": "r",
            "list": ["Tensor.add.0.forward"], "slice": [{{"end": 1}}]}}}})",
        level));
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_TRUE(config->slices.empty());
    EXPECT_EQ(config->request_id, "");
    ASSERT_EQ(config->warnings.size(), 2u);
    EXPECT_NE(config->warnings[0].find("tensor.slice: has no effect at level"), std::string::npos);
  }
}

TEST(Config, DefaultsApplyToAbsentAndNullFields) {
  for (const char* text :
       {R"({"dump_path": "out"})",
        R"({"dump_path": "out", "task": null, "level": null, "rank": null, "step": null,
            "enable_dataloader": null, "statistics": null})",
        R"({"dump_path": "out", "task": "", "level": "",
            "statistics": {"scope": null, "list": null, "data_mode": null}})"}) {
    const auto config = Parse(text);
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->task, Task::kStatistics);
    EXPECT_EQ(config->level, Level::kL1);
    EXPECT_EQ(config->dump_path, "out");
    EXPECT_TRUE(config->ranks.empty());
    EXPECT_TRUE(config->steps.empty());
    EXPECT_TRUE(config->scope.empty());
    EXPECT_TRUE(config->list.empty());
    EXPECT_EQ(config->summary_mode, SummaryMode::kStatistics);
    EXPECT_TRUE(config->warnings.empty());
  }
}

// The file upstream ships (collection 2.7).
TEST(Config, UpstreamsDefaultFileIsAcceptedWithoutWarnings) {
  const auto config = Parse(R"({
    "task": "statistics", "dump_path": "./dump_path", "rank": [], "step": [], "level": "L1",
    "enable_dataloader": false, "async_dump": false,
    "tensor": {"scope": [], "list": [], "data_mode": ["all"], "file_format": "npy"},
    "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"},
    "overflow_check": {"overflow_nums": 1, "check_mode": "all"},
    "run_ut": {"white_list": [], "black_list": [], "error_data_path": "./"},
    "grad_probe": {"grad_level": "L1", "param_list": [], "bounds": [-1, 0, 1]},
    "free_benchmark": {"scope": [], "list": [], "fuzz_device": "npu"}})");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->warnings.empty()) << config->warnings.front();
}

TEST(Config, EveryFieldIsRead) {
  const auto config = Parse(R"({
    "task": "tensor", "dump_path": "/tmp/out", "rank": [1, "3-4"], "step": ["0-2", 5, 1],
    "level": "mix", "async_dump": true,
    "tensor": {"scope": ["Torch.a.0.forward", "Module.b.B.forward.0"], "list": ["relu"],
               "data_mode": ["forward", "input"], "summary_mode": "md5"}})");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->task, Task::kTensor);
  EXPECT_EQ(config->level, Level::kMix);
  EXPECT_EQ(config->ranks, (Numbers{1, 3, 4}));
  EXPECT_EQ(config->steps, (Numbers{0, 1, 2, 5}));
  EXPECT_TRUE(config->async_dump);
  EXPECT_EQ(config->scope.size(), 2U);
  EXPECT_EQ(config->list, std::vector<std::string>{"relu"});
  EXPECT_TRUE(config->data_mode.forward && config->data_mode.input);
  EXPECT_FALSE(config->data_mode.backward || config->data_mode.output);
  EXPECT_EQ(config->summary_mode, SummaryMode::kMd5);
}

TEST(Config, ConstructorArgumentsWinAndChooseTheSection) {
  const std::string text = R"({"task": "statistics", "dump_path": "a", "level": "L0", "step": [9],
    "statistics": {"list": ["s"]}, "tensor": {"list": ["t"]}})";
  const auto config = Parse(
      text, {.task = "tensor", .dump_path = "b", .level = "mix", .step_json = "[1, \"2-3\"]"});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->task, Task::kTensor);
  EXPECT_EQ(config->dump_path, "b");
  EXPECT_EQ(config->level, Level::kMix);
  EXPECT_EQ(config->steps, (Numbers{1, 2, 3}));
  EXPECT_EQ(config->list, std::vector<std::string>{"t"});
}

TEST(Config, EmptyArgumentsDoNotWinButAnEmptyStepListDoes) {
  const std::string text = R"({"dump_path": "a", "level": "L0", "step": [9]})";
  const auto config = Parse(text, {.task = "", .dump_path = "", .level = "", .step_json = "[]"});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->dump_path, "a");
  EXPECT_EQ(config->level, Level::kL0);
  EXPECT_TRUE(config->steps.empty());
}

struct BadConfig {
  const char* text;
  std::vector<std::string> message;
};

const BadConfig kBadConfigs[] = {
    {R"({"dump_path": "a", "task": "statistic"})", {"task", "\"statistic\"", "one of"}},
    {R"({"dump_path": "a", "task": 3})", {"task", "3"}},
    {R"({"dump_path": "a", "task": "run_ut"})", {"task", "run_ut", "not the recorder"}},
    {R"({"dump_path": "a", "level": "l1"})", {"level", "\"l1\"", "L0, L1, L2, mix, debug"}},
    {R"({"dump_path": 3})", {"dump_path", "3", "a string"}},
    {R"({})", {"dump_path", "missing"}},
    {R"({"dump_path": ""})", {"dump_path", "missing"}},
    {R"({"dump_path": "a b"})", {"dump_path", "special characters"}},
    {R"({"dump_path": "a", "enable_dataloader": 1})", {"enable_dataloader", "true or false"}},
    {R"({"dump_path": "a", "async_dump": "yes"})", {"async_dump", "\"yes\""}},
    {R"({"dump_path": "a", "extra_info": 0})", {"extra_info", "true or false"}},
    {R"({"dump_path": "a", "statistics": []})", {"statistics", "an object"}},
    {R"({"dump_path": "a", "statistics": {"scope": "x"}})", {"statistics.scope", "\"x\""}},
    {R"({"dump_path": "a", "statistics": {"scope": ["x"]}})",
     {"statistics.scope: is [\"x\"]", "2 names, not 1"}},
    {R"({"dump_path": "a", "statistics": {"scope": ["x", "y"]}})", {"scope", "\"x\""}},
    {R"({"dump_path": "a", "statistics": {"list": [1]}})", {"statistics.list", "[1]"}},
    {R"({"dump_path": "a", "statistics": {"tensor_list": "a"}})", {"statistics.tensor_list"}},
    {R"({"dump_path": "a", "statistics": {"data_mode": "all"}})", {"data_mode", "list"}},
    {R"({"dump_path": "a", "statistics": {"data_mode": [1]}})", {"data_mode", "list"}},
    {R"({"dump_path": "a", "statistics": {"data_mode": ["all", "input"]}})", {"alone"}},
    {R"({"dump_path": "a", "statistics": {"data_mode": ["in"]}})", {"\"in\"", "forward"}},
    {R"({"dump_path": "a", "statistics": {"data_mode":
           ["input", "output", "input", "output", "input"]}})",
     {"at most 4"}},
    {R"({"dump_path": "a", "statistics": {"summary_mode": "md4"}})", {"summary_mode", "md4"}},
    {R"({"dump_path": "a", "task": "tensor", "tensor": {"file_format": "pt"}})", {"file_format"}},
    {R"({"dump_path": "a", "task": "tensor", "async_dump": true})", {"tensor.list", "empty"}},
    {R"([])", {"top level", "an object"}},
    {R"("x")", {"top level"}},
    {"{", {"not valid JSON", "byte 1"}},
    {"", {"not valid JSON"}},
    {"{\"a\": 1,}", {"not valid JSON", "byte 8"}},
    {"// c\n{}", {"not valid JSON"}},
    {"{\"a\": NaN}", {"not valid JSON"}},
    {"{} x", {"not valid JSON"}},
    {"{\"dump_path\": \"\xff\"}", {"not valid JSON"}},
};

TEST(Config, WrongValuesNameFieldValueAndExpectation) {
  for (const BadConfig& bad : kBadConfigs) {
    std::vector<std::string> message = bad.message;
    message.emplace_back("config.json");
    ExpectError(Parse(bad.text), ErrorCode::kInvalidArgument, message);
  }
}

TEST(Config, ValidButUnbuiltChoicesAreUnsupported) {
  for (const char* task : {"diff_check", "exception_dump"}) {
    ExpectError(Parse(fmt::format(R"({{"dump_path": "a", "task": "{}"}})", task)),
                ErrorCode::kUnsupported, {task, "not built yet"});
  }
}

TEST(Config, OnlineCheckNeedsAPlaceAndWholeCalls) {
  const auto parse = [](std::string_view keys) {
    return Parse(fmt::format(
        R"({{"dump_path": "a", "task": "tensor", "tensor": {{"online_run_ut": true, {}}}}})", keys));
  };
  const Config tcp = *parse(R"("host": "10.0.0.7", "port": 28000, "online_run_ut_recompute": true)");
  EXPECT_TRUE(tcp.online.is_on);
  EXPECT_EQ(tcp.online.host, "10.0.0.7");
  EXPECT_EQ(tcp.online.port, 28000);
  EXPECT_EQ(tcp.online.tls_path, "./");
  EXPECT_FALSE(tcp.data_mode.backward);
  EXPECT_EQ(parse(R"("nfs_path": "/shared", "online_block": true)")->online.directory, "/shared");
  for (const char* keys :
       {R"("port": 1)", R"("host": "gpu-7", "port": 1)", R"("host": "10.0.0.7")",
        R"("host": "10.0.0.7", "port": 65536)", R"("nfs_path": "a", "data_mode": ["output"])"}) {
    ExpectError(parse(keys), ErrorCode::kInvalidArgument, {"tensor."});
  }
}

TEST(Config, PerturbationsTellEveryErrorAtOnce) {
  const auto parse = [](std::string_view section) {
    return Parse(fmt::format(
        R"({{"dump_path": "a", "task": "free_benchmark", "free_benchmark": {{{}}}}})", section));
  };
  const PerturbationConfig defaults = parse("")->perturbation;
  EXPECT_EQ(defaults.modes, std::vector{Perturbation::kImprovePrecision});
  EXPECT_EQ(defaults.max_sample, 20);
  EXPECT_EQ(parse(R"("pert_mode": ["bit_noise", "bit_noise", "add_noise"])")->perturbation.modes,
            (std::vector{Perturbation::kBitNoise, Perturbation::kAddNoise}));
  EXPECT_FALSE(parse(R"("fuzz_device": "cuda")")->perturbation.on_cpu);
  ExpectError(parse(R"("pert_mode": "x", "max_sample": 0, "fuzz_stage": 3)"),
              ErrorCode::kInvalidArgument,
              {"free_benchmark.pert_mode: is \"x\"", "free_benchmark.max_sample: is 0",
               "free_benchmark.fuzz_stage: is 3"});
  ExpectError(parse(R"("handler_type": "fix", "fuzz_stage": "backward", "if_preheat": true)"),
              ErrorCode::kInvalidArgument, {"fuzz_stage", "if_preheat"});
  ExpectError(Parse(R"({"dump_path": "a", "task": "free_benchmark", "level": "mix"})"),
              ErrorCode::kInvalidArgument, {"level", "L1"});
}

TEST(Config, OverflowLimit) {
  const auto parse = [](std::string_view limit) {
    return Parse(fmt::format(
        R"({{"dump_path": "a", "task": "overflow_check", "overflow_check": {{{}}}}})", limit));
  };
  EXPECT_EQ(parse("")->hit_limit, 1);
  EXPECT_EQ(parse(R"("overflow_nums": 7)")->hit_limit, 7);
  EXPECT_EQ(parse(R"("overflow_nums": null)")->hit_limit, 1);
  EXPECT_EQ(parse(R"("overflow_nums": -1)")->hit_limit, std::nullopt);
  for (const char* wrong : {"0", "-5", "-2", "1.5", "1.0", "true", "false", "\"1\"", "[1]",
                            "9223372036854775808", "-9223372036854775808"}) {
    ExpectError(parse(fmt::format(R"("overflow_nums": {})", wrong)), ErrorCode::kInvalidArgument,
                {"overflow_check.overflow_nums", "-1 (no limit) or an integer of at least 1"});
  }
  ExpectError(parse(R"("overflow_nums": 100000000000000000000)"), ErrorCode::kInvalidArgument,
              {"is about 1e+20, beyond 64 bits"});
  EXPECT_TRUE(parse("")->counts_origins_only);
  EXPECT_TRUE(parse(R"("count": "origin", "check_mode": "atomic")")->counts_origins_only);
  EXPECT_FALSE(parse(R"("count": "all")")->counts_origins_only);
  EXPECT_FALSE(parse("")->finds_saturated);
  EXPECT_TRUE(parse(R"("saturated": true)")->finds_saturated);
  ExpectError(parse(R"("count": "first")"), ErrorCode::kInvalidArgument,
              {"overflow_check.count", "all, origin"});
  ExpectError(parse(R"("check_mode": "aic")"), ErrorCode::kInvalidArgument,
              {"overflow_check.check_mode", "all, aicore, atomic"});
  ExpectError(Parse(R"({"dump_path": "a", "task": "overflow_check", "level": "debug"})"),
              ErrorCode::kInvalidArgument, {"level", "debug", "L0, L1 or mix"});
}

TEST(Config, NanCheckIsForWholeCallsOfApis) {
  EXPECT_TRUE(Parse(R"({"dump_path": "a", "task": "nan_check"})"));
  for (const char* level : {"L0", "mix", "debug"}) {
    ExpectError(
        Parse(fmt::format(R"({{"dump_path": "a", "task": "nan_check", "level": "{}"}})", level)),
        ErrorCode::kInvalidArgument, {"level", level, "L1"});
  }
  ExpectError(
      Parse(R"({"dump_path": "a", "task": "nan_check", "nan_check": {"data_mode": ["input"]}})"),
      ErrorCode::kInvalidArgument, {"nan_check.data_mode", "output"});
}

TEST(Config, BenchPathNeedsADirectoryAndChecksums) {
  const auto parse = [](std::string_view options) {
    return Parse(
        fmt::format(R"({{"dump_path": "a", "task": "tensor", "tensor": {{{}}}}})", options));
  };
  const auto config = parse(R"("bench_path": ".", "summary_mode": "md5", "diff_nums": 3)");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->bench_path, ".");
  EXPECT_EQ(config->hit_limit, 3);
  ExpectError(parse(R"("bench_path": "./nowhere", "summary_mode": "md5")"),
              ErrorCode::kInvalidArgument, {"tensor.bench_path", "./nowhere", "existing"});
  ExpectError(parse(R"("bench_path": ".")"), ErrorCode::kInvalidArgument,
              {"tensor.bench_path", "md5"});
  ExpectError(parse(R"("diff_nums": 0)"), ErrorCode::kInvalidArgument, {"tensor.diff_nums", "0"});
}

TEST(Config, SettingsOfLaterReleases) {
  const auto config = Parse(
      R"({"dump_path": "a", "extra_info": false, "precision": "high", "risk_level": "CORE",
          "dump_enable": false,
          "statistics": {"summary_mode": "xor", "tensor_list": ["relu"]}})");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->warnings.empty());
  EXPECT_FALSE(config->extra_info);
  EXPECT_EQ(config->risk_level, RiskLevel::kCore);
  EXPECT_EQ(config->dump_enable, false);
  EXPECT_EQ(config->summary_mode, SummaryMode::kXor);
  EXPECT_EQ(config->tensor_list, std::vector<std::string>{"relu"});
  const auto defaults = Parse(R"({"dump_path": "a"})");
  EXPECT_TRUE(defaults->extra_info);
  EXPECT_EQ(defaults->risk_level, RiskLevel::kAll);
  EXPECT_FALSE(defaults->dump_enable.has_value());
}

TEST(Config, LimitsOfTensorFiles) {
  const auto config = Parse(
      R"({"dump_path": "a", "max_bytes": 5000000000, "min_free_bytes": 0, "buffer_bytes": 1})");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->max_bytes, 5'000'000'000U);
  EXPECT_EQ(config->min_free_bytes, 0U);
  EXPECT_EQ(config->buffer_bytes, 1U);
  const auto defaults = Parse(R"({"dump_path": "a"})");
  ASSERT_TRUE(defaults);
  EXPECT_EQ(defaults->max_bytes, 0U);
  EXPECT_FALSE(defaults->min_free_bytes.has_value());
  EXPECT_EQ(defaults->buffer_bytes, 512U << 20);
}

TEST(Config, SettingsOfLaterReleasesAreChecked) {
  const struct {
    std::string_view text, named;
  } cases[] = {
      {R"("extra_info": 0)", "extra_info: is 0"},
      {R"("dump_enable": "on")", "dump_enable: is \"on\""},
      {R"("max_bytes": -1)", "max_bytes: is -1 (expected a number of bytes, 0 or more)"},
      {R"("max_bytes": "1G")", "max_bytes: is \"1G\""},
      {R"("min_free_bytes": 1.5)", "min_free_bytes: is 1.5"},
      {R"("buffer_bytes": true)", "buffer_bytes: is true"},
      {R"("precision": "double")", "precision: is \"double\" (expected one of low, high)"},
      {R"("risk_level": "core")", "risk_level: is \"core\" (expected one of ALL, CORE, FOCUS)"},
      {R"("statistics": {"tensor_list": "relu"})", "statistics.tensor_list: is \"relu\""},
      {R"("statistics": {"summary_mode": ["md5", "mode"]})",
       "statistics.summary_mode: is \"mode\""},
      {R"("statistics": {"summary_mode": "crc"})", "statistics.summary_mode: is \"crc\""},
  };
  for (const auto& one : cases) {
    ExpectError(Parse(fmt::format(R"({{"dump_path": "a", {}}})", one.text)),
                ErrorCode::kInvalidArgument, {std::string(one.named)});
  }
}

TEST(Config, ListedSummaryModesRecordStatistics) {
  const auto config =
      Parse(R"({"dump_path": "a", "statistics": {"summary_mode": ["md5", "l2norm"]}})");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->summary_mode, SummaryMode::kStatistics);
  EXPECT_EQ(config->warnings.size(), 1U);
}

TEST(Config, StructureReadsNoValuesAndRecordsModules) {
  const auto mix = Parse(R"({"dump_path": "a", "task": "structure", "level": "L0"})");
  ASSERT_TRUE(mix) << mix.error().message();
  EXPECT_EQ(mix->level, Level::kL0);
  EXPECT_TRUE(mix->warnings.empty());
  EXPECT_FALSE(WantsDirection(mix->data_mode, CallKind::kForward));
  EXPECT_FALSE(WantsInput(mix->data_mode, CallKind::kBackward));
  EXPECT_FALSE(WantsOutput(mix->data_mode, CallKind::kBackward));
  const auto forced = Parse(R"({"dump_path": "a", "task": "structure"})");
  ASSERT_TRUE(forced);
  EXPECT_EQ(forced->level, Level::kMix);
  ASSERT_EQ(forced->warnings.size(), 1U);
  EXPECT_NE(forced->warnings[0].find("level: is \"L1\""), std::string::npos);
}

TEST(Config, LevelL2NamesOneCall) {
  const auto config = Parse(
      R"({"dump_path": "a", "level": "L2", "task": "tensor", "tensor": {"list": ["Torch.add.0.forward"]}})");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->level, Level::kL2);
  EXPECT_EQ(LevelName(config->level), "L2");
  const auto selection = Selection::Create(*config);
  ASSERT_TRUE(selection.has_value());
  EXPECT_TRUE(selection->selects_all());
  for (const char* list : {"[]", R"(["Torch.add.0.forward", "Torch.add.1.forward"])"}) {
    ExpectError(Parse(fmt::format(
                    R"({{"dump_path": "a", "level": "L2", "statistics": {{"list": {}}}}})", list)),
                ErrorCode::kInvalidArgument, {"list", "expected 1 at level L2"});
  }
  ExpectError(Parse(R"({"dump_path": "a", "level": "L2", "statistics": {"list": ["a"],
                        "scope": ["Torch.add.0.forward", "Torch.add.1.forward"]}})"),
              ErrorCode::kInvalidArgument, {"scope", "level L2"});
  for (const char* name : {"add", "Torch.add.0", "Module.fc.Linear.forward.0"}) {
    ExpectError(
        Parse(fmt::format(
            R"({{"dump_path": "a", "level": "L2", "statistics": {{"list": ["{}"]}}}})", name)),
        ErrorCode::kInvalidArgument, {name, "statistics.list", "expected a complete name"});
  }
}

TEST(Config, DebugLevelHasNoFilters) {
  const auto config = Parse(
      R"({"dump_path": "a", "level": "debug", "step": [1], "task": "tensor", "async_dump": true,
          "tensor": {"scope": ["x", "y"]}})");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->level, Level::kDebug);
  ASSERT_EQ(config->warnings.size(), 1U);
  EXPECT_NE(config->warnings[0].find("step: has no effect"), std::string::npos);
}

TEST(Config, UnknownKeysWarnWithTheClosestKnownOne) {
  const auto config = Parse(
      R"({"dump_path": "a", "ranks": [0], "statistics": {"sumary_mode": "md5", "scop": []}})");
  ASSERT_TRUE(config) << config.error().message();
  ASSERT_EQ(config->warnings.size(), 3U);
  EXPECT_EQ(config->warnings[0],
            "config.json: ranks: unknown key, ignored. Did you mean \"rank\"?");
  EXPECT_NE(config->warnings[1].find("statistics.scop: unknown key"), std::string::npos);
  EXPECT_NE(config->warnings[1].find("\"scope\""), std::string::npos);
  EXPECT_NE(config->warnings[2].find("\"summary_mode\""), std::string::npos);
}

TEST(Config, DeprecatedDataloaderSwitchWarns) {
  const auto config = Parse(R"({"dump_path": "a", "enable_dataloader": true})");
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->enable_dataloader);
  ASSERT_EQ(config->warnings.size(), 1U);
  EXPECT_NE(config->warnings[0].find("deprecated"), std::string::npos);
}

struct ModeCase {
  const char* modes;
  bool forward, backward, input, output;
};

TEST(Config, DataModeNamesNeitherMeansBoth) {
  const ModeCase cases[] = {
      {R"([])", true, true, true, true},
      {R"(["all"])", true, true, true, true},
      {R"(["forward"])", true, false, true, true},
      {R"(["backward"])", false, true, true, true},
      {R"(["input"])", true, true, true, false},
      {R"(["output"])", true, true, false, true},
      {R"(["forward", "backward"])", true, true, true, true},
      {R"(["forward", "input"])", true, false, true, false},
      {R"(["forward", "output"])", true, false, false, true},
      {R"(["backward", "input"])", false, true, true, false},
      {R"(["backward", "output"])", false, true, false, true},
      {R"(["input", "output"])", true, true, true, true},
      {R"(["forward", "backward", "input"])", true, true, true, false},
      {R"(["forward", "backward", "output"])", true, true, false, true},
      {R"(["forward", "input", "output"])", true, false, true, true},
      {R"(["backward", "input", "output"])", false, true, true, true},
      {R"(["forward", "backward", "input", "output"])", true, true, true, true},
  };
  for (const ModeCase& c : cases) {
    const auto config =
        Parse(fmt::format(R"({{"dump_path": "a", "statistics": {{"data_mode": {}}}}})", c.modes));
    ASSERT_TRUE(config) << c.modes;
    EXPECT_EQ(config->data_mode.forward, c.forward) << c.modes;
    EXPECT_EQ(config->data_mode.backward, c.backward) << c.modes;
    EXPECT_EQ(config->data_mode.input, c.input) << c.modes;
    EXPECT_EQ(config->data_mode.output, c.output) << c.modes;
  }
}

TEST(NumberList, UnionIsUniqueAndAscending) {
  EXPECT_EQ(ParseNumberList("step", R"(["0-2", 5, 1])").value_or(Numbers{}), (Numbers{0, 1, 2, 5}));
  EXPECT_EQ(ParseNumberList("step", R"([1000000, "0-0"])").value_or(Numbers{}),
            (Numbers{0, 1000000}));
  EXPECT_TRUE(ParseNumberList("step", "[]")->empty());
  EXPECT_TRUE(ParseNumberList("step", "null")->empty());
  EXPECT_EQ(ParseNumberList("step", R"(["0-1000000", "0-1000000", "5-1000000"])")->size(),
            1000001U);
}

struct BadList {
  const char* text;
  const char* value;
  const char* expected;
};

TEST(NumberList, EveryErrorRow) {
  const BadList cases[] = {
      {"3", "3", "a list"},
      {"\"3\"", "\"3\"", "a list"},
      {"{}", "{}", "a list"},
      {"[1.5]", "1.5", "an integer or a range"},
      {"[1.0]", "1.0", "an integer or a range"},
      {"[true]", "true", "an integer or a range"},
      {"[null]", "null", "an integer or a range"},
      {"[[1]]", "[1]", "an integer or a range"},
      {"[-1]", "-1", "between 0 and 1000000"},
      {"[1000001]", "1000001", "between 0 and 1000000"},
      {"[9223372036854775808]", "9223372036854775808", "between 0 and 1000000"},
      {"[99999999999999999999999]", "e+22", "an integer or a range"},
      {R"(["0-1000001"])", "\"0-1000001\"", "0 to 1000000"},
      {R"(["0-99999999999999999999"])", "99999", "0 to 1000000"},
      {R"(["3"])", "\"3\"", "\"3-5\""},
      {R"(["1-2-3"])", "\"1-2-3\"", "\"3-5\""},
      {R"(["a-b"])", "\"a-b\"", "decimal number"},
      {R"(["1-"])", "\"1-\"", "decimal number"},
      {R"(["-1"])", "\"-1\"", "decimal number"},
      {R"(["1 -2"])", "\"1 -2\"", "decimal number"},
      {R"([""])", "\"\"", "\"3-5\""},
      {R"(["5-3"])", "\"5-3\"", "left boundary"},
      {"[1", "byte", "JSON"},
  };
  for (const BadList& bad : cases) {
    const auto list = ParseNumberList("rank", bad.text);
    ASSERT_FALSE(list) << bad.text;
    EXPECT_EQ(list.error().code(), ErrorCode::kInvalidArgument);
    const std::string& message = list.error().message();
    EXPECT_TRUE(message.starts_with("rank: ")) << message;
    EXPECT_NE(message.find(bad.value), std::string::npos) << message;
    EXPECT_NE(message.find(bad.expected), std::string::npos) << message;
  }
}

TEST(NumberList, MoreThanAMillionElementsIsAnError) {
  std::string text = "[0";
  for (int i = 0; i < 1000000; ++i) text += ",0";
  EXPECT_FALSE(ParseNumberList("step", text + "]"));
}

TEST(LoadConfig, FileRules) {
  const testing::TestDirectory dir;
  const std::string good = dir.Path("config.json");
  ASSERT_TRUE(WriteFileAtomically(good, R"({"dump_path": "out"})", false));
  EXPECT_TRUE(LoadConfig(good, {}));

  ExpectError(LoadConfig(dir.Path("missing.json"), {}), ErrorCode::kNotFound, {"missing.json"});
  ExpectError(LoadConfig(dir.path(), {}), ErrorCode::kInvalidArgument, {"not a regular file"});
  ASSERT_EQ(::symlink(good.c_str(), dir.Path("link.json").c_str()), 0);
  ExpectError(LoadConfig(dir.Path("link.json"), {}), ErrorCode::kInvalidArgument,
              {"symbolic link"});
  ASSERT_TRUE(WriteFileAtomically(dir.Path("a b.json"), "{}", false));
  ExpectError(LoadConfig(dir.Path("a b.json"), {}), ErrorCode::kInvalidArgument,
              {"special characters"});
  ASSERT_TRUE(WriteFileAtomically(dir.Path("config.txt"), "{}", false));
  ExpectError(LoadConfig(dir.Path("config.txt"), {}), ErrorCode::kInvalidArgument, {".json"});
}

TEST(LoadConfig, WithoutAFileTheArgumentsAreEnough) {
  const auto config = LoadConfig(std::nullopt, {.dump_path = "out"});
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->task, Task::kStatistics);
  ExpectError(LoadConfig(std::nullopt, {}), ErrorCode::kInvalidArgument, {"dump_path", "missing"});
}

TEST(LoadConfig, DumpPathThatIsAFileOrALinkIsRefused) {
  const testing::TestDirectory dir;
  ASSERT_TRUE(WriteFileAtomically(dir.Path("file"), "", false));
  ASSERT_EQ(::symlink(dir.path().c_str(), dir.Path("link").c_str()), 0);
  ExpectError(LoadConfig(std::nullopt, {.dump_path = dir.Path("file")}),
              ErrorCode::kInvalidArgument, {"not a directory"});
  ExpectError(LoadConfig(std::nullopt, {.dump_path = dir.Path("link")}),
              ErrorCode::kInvalidArgument, {"symbolic link"});
}

}  // namespace
}  // namespace plumbline
