#include "config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "base/file.h"
#include "config/path_rules.h"
#include "config/reconcile.h"
#include "config/selection.h"
#include "config/setting_values.h"

namespace plumbline {
namespace {

using settings::AsBool;
using settings::AsByteCount;
using settings::AsLimit;
using settings::AsString;
using settings::AsStringList;
using settings::Invalid;
using settings::Join;
using settings::Json;
using settings::NotBuilt;
using settings::NumberList;
using settings::OneOf;
using settings::ParseJson;

constexpr std::string_view kTasks[] = {
    "statistics", "tensor",    "overflow_check", "free_benchmark", "run_ut",   "grad_probe",
    "structure",  "acc_check", "diff_check",     "exception_dump", "nan_check"};
constexpr std::string_view kLevels[] = {"L0", "L1", "L2", "mix", "debug"};
constexpr std::string_view kSummaryModes[] = {"statistics", "md5", "xor"};
// What static graphs of MindSpore choose from; given as a list.
constexpr std::string_view kListedModes[] = {"md5", "max", "min", "mean", "l2norm"};
constexpr std::string_view kRiskLevels[] = {"ALL", "CORE", "FOCUS"};
constexpr std::string_view kPrecisions[] = {"low", "high"};
constexpr std::string_view kFileFormats[] = {"npy", "bin"};
constexpr std::string_view kDataModes[] = {"all", "forward", "backward", "input", "output"};
constexpr std::string_view kCheckModes[] = {"all", "aicore", "atomic"};
constexpr std::string_view kCounts[] = {"all", "origin"};
constexpr size_t kMaxDataModes = 4;
constexpr std::string_view kBuiltTasks =
    "statistics, tensor, structure, overflow_check or nan_check";

Status SetTask(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(const std::string task, OneOf(field, value, kTasks));
  if (task == "run_ut" || task == "acc_check") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: \"{}\" configures the offline API check, not the recorder "
                             "(expected {})",
                             field, task, kBuiltTasks));
  }
  for (const Task built : {Task::kStatistics, Task::kTensor, Task::kStructure, Task::kOverflowCheck,
                           Task::kNanCheck}) {
    if (task != TaskName(built)) continue;
    config.task = built;
    return {};
  }
  return NotBuilt(field, task, kBuiltTasks);
}

Status SetLevel(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(const std::string level, OneOf(field, value, kLevels));
  for (const Level built : {Level::kL0, Level::kL1, Level::kL2, Level::kMix, Level::kDebug}) {
    if (level != LevelName(built)) continue;
    config.level = built;
    return {};
  }
  return NotBuilt(field, level, "L0, L1, L2, mix or debug");
}

Status SetDumpPath(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.dump_path, AsString(field, value));
  return {};
}

Status SetRank(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.ranks, NumberList(field, value));
  return {};
}

Status SetStep(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.steps, NumberList(field, value));
  return {};
}

Status SetDataloader(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.enable_dataloader, AsBool(field, value));
  if (config.enable_dataloader) {
    config.warnings.push_back(
        "enable_dataloader: is deprecated; call start(), stop() and step() in the loop instead");
  }
  return {};
}

Status SetAsync(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.async_dump, AsBool(field, value));
  return {};
}

Status SetMaxBytes(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.max_bytes, AsByteCount(field, value));
  return {};
}

Status SetMinFreeBytes(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.min_free_bytes, AsByteCount(field, value));
  return {};
}

Status SetBufferBytes(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.buffer_bytes, AsByteCount(field, value));
  return {};
}

Status SetScope(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.scope, AsStringList(field, value));
  return {};
}

Status SetList(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.list, AsStringList(field, value));
  return {};
}

Status SetDataMode(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(const std::vector<std::string> modes, AsStringList(field, value));
  const auto has = [&](std::string_view mode) { return std::ranges::count(modes, mode) > 0; };
  if (modes.size() > kMaxDataModes) return Invalid(field, value, "at most 4 elements");
  for (const std::string& mode : modes) {
    if (std::ranges::count(kDataModes, mode) > 0) continue;
    return Invalid(field, Json(mode), "elements out of " + Join(kDataModes));
  }
  if (has("all") && modes.size() > 1) return Invalid(field, value, "\"all\" to stand alone");
  const bool any_direction = !has("forward") && !has("backward");
  const bool any_side = !has("input") && !has("output");
  config.data_mode = {.forward = any_direction || has("forward"),
                      .backward = any_direction || has("backward"),
                      .input = any_side || has("input"),
                      .output = any_side || has("output")};
  return {};
}

Status SetSummaryMode(std::string_view field, const Json& value, Config& config) {
  if (value.is_array()) {
    PL_TRY_ASSIGN(const std::vector<std::string> modes, AsStringList(field, value));
    for (const std::string& mode : modes) PL_TRY(OneOf(field, Json(mode), kListedModes));
    config.warnings.push_back(
        fmt::format("{}: a list is for static graphs; statistics are recorded", field));
    return {};
  }
  PL_TRY_ASSIGN(const std::string mode, OneOf(field, value, kSummaryModes));
  config.summary_mode = mode == "md5"   ? SummaryMode::kMd5
                        : mode == "xor" ? SummaryMode::kXor
                                        : SummaryMode::kStatistics;
  return {};
}

Status CheckFileFormat(std::string_view field, const Json& value, Config&) {
  // Only static graphs choose; PyTorch tensors are .pt files whatever it says.
  PL_TRY(OneOf(field, value, kFileFormats));
  return {};
}

Status CheckOnline(std::string_view field, const Json& value, Config&) {
  PL_TRY_ASSIGN(const bool online, AsBool(field, value));
  if (online) return NotBuilt(field, "true", "false");
  return {};
}

Status SetDumpEnable(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.dump_enable, AsBool(field, value));
  return {};
}

Status SetExtraInfo(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.extra_info, AsBool(field, value));
  return {};
}

Status CheckPrecision(std::string_view field, const Json& value, Config&) {
  // Statistics are accumulated in double whatever it says: "low" costs as much as "high".
  PL_TRY(OneOf(field, value, kPrecisions));
  return {};
}

Status SetRiskLevel(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(const std::string level, OneOf(field, value, kRiskLevels));
  config.risk_level = level == "CORE"    ? RiskLevel::kCore
                      : level == "FOCUS" ? RiskLevel::kFocus
                                         : RiskLevel::kAll;
  return {};
}

Status SetTensorList(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.tensor_list, AsStringList(field, value));
  return {};
}

Status SetHitLimit(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.hit_limit, AsLimit(field, value));
  return {};
}

Status CheckMode(std::string_view field, const Json& value, Config&) {
  // Static graphs of MindSpore choose; PyTorch looks at tensors whatever it says.
  PL_TRY(OneOf(field, value, kCheckModes));
  return {};
}

Status SetCount(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(const std::string count, OneOf(field, value, kCounts));
  config.counts_origins_only = count == "origin";
  return {};
}

Status SetBenchPath(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.bench_path, AsString(field, value));
  if (config.bench_path.empty() || KindOf(config.bench_path) == PathKind::kDirectory) return {};
  return Invalid(field, value, "an existing directory with step{N}/rank{R}/dump.json below it");
}

Status IgnoreStringList(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(const std::vector<std::string> list, AsStringList(field, value));
  if (!list.empty()) config.warnings.push_back(fmt::format("{}: has no effect yet", field));
  return {};
}

Status Ignore(std::string_view field, const Json&, Config& config) {
  config.warnings.push_back(fmt::format("{}: has no effect yet", field));
  return {};
}

Status Accept(std::string_view, const Json&, Config&) { return {}; }

// Every key config.json may hold. Rows of one section are applied in this order, which is the order
// in which errors are found. Values that are null, and absent keys, keep the default in Config.
struct Option {
  std::string_view section;  // empty: top level
  std::string_view name;
  Status (*apply)(std::string_view field, const Json& value, Config& config);
};
constexpr std::string_view kStatistics = "statistics";
constexpr std::string_view kTensor = "tensor";
constexpr std::string_view kOverflowCheck = "overflow_check";
constexpr std::string_view kNanCheck = "nan_check";
constexpr Option kOptions[] = {
    {"", "rank", SetRank},
    {"", "step", SetStep},
    {"", "task", SetTask},
    {"", "dump_path", SetDumpPath},
    {"", "level", SetLevel},
    {"", "enable_dataloader", SetDataloader},
    {"", "async_dump", SetAsync},
    {"", "max_bytes", SetMaxBytes},
    {"", "min_free_bytes", SetMinFreeBytes},
    {"", "buffer_bytes", SetBufferBytes},
    {"", "dump_enable", SetDumpEnable},
    {"", "extra_info", SetExtraInfo},
    {"", "precision", CheckPrecision},
    {"", "risk_level", SetRiskLevel},
    {"", "custom_op_namespaces", IgnoreStringList},
    {kStatistics, "scope", SetScope},
    {kStatistics, "list", SetList},
    {kStatistics, "data_mode", SetDataMode},
    {kStatistics, "summary_mode", SetSummaryMode},
    {kStatistics, "tensor_list", SetTensorList},
    {kStatistics, "slice", Ignore},
    {kStatistics, "request_id", Ignore},
    {kStatistics, "device", Accept},
    {kStatistics, "precision", CheckPrecision},
    {kTensor, "scope", SetScope},
    {kTensor, "list", SetList},
    {kTensor, "data_mode", SetDataMode},
    {kTensor, "summary_mode", SetSummaryMode},
    {kTensor, "file_format", CheckFileFormat},
    {kTensor, "online_run_ut", CheckOnline},
    {kTensor, "nfs_path", Accept},
    {kTensor, "host", Accept},
    {kTensor, "port", Accept},
    {kTensor, "tls_path", Accept},
    {kTensor, "online_run_ut_recompute", Accept},
    {kTensor, "bench_path", SetBenchPath},
    {kTensor, "diff_nums", SetHitLimit},
    {kTensor, "slice", Ignore},
    {kTensor, "request_id", Ignore},
    {kOverflowCheck, "scope", SetScope},
    {kOverflowCheck, "list", SetList},
    {kOverflowCheck, "data_mode", SetDataMode},
    {kOverflowCheck, "overflow_nums", SetHitLimit},
    {kOverflowCheck, "check_mode", CheckMode},
    {kOverflowCheck, "count", SetCount},
    {kNanCheck, "scope", SetScope},
    {kNanCheck, "list", SetList},
    {kNanCheck, "data_mode", SetDataMode},
    {kNanCheck, "tensor_list", SetTensorList},
};

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::vector<std::string_view> KnownKeys(std::string_view section) {
  std::vector<std::string_view> keys;
  for (const Option& option : kOptions) {
    if (option.section == section) keys.push_back(option.name);
  }
  // At the top level the sections of all tasks may stand side by side.
  if (section.empty()) keys.insert(keys.end(), std::begin(kTasks), std::end(kTasks));
  return keys;
}

void WarnOfUnknownKeys(std::string_view section, const Json& object, Config& config) {
  const std::vector<std::string_view> known = KnownKeys(section);
  constexpr size_t kLongestKey = 100;  // not worth a guess beyond
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::count(known, key) > 0) continue;
    const std::string shown = section.empty() ? key : fmt::format("{}.{}", section, key);
    if (key.size() > kLongestKey) {
      config.warnings.push_back(
          fmt::format("{}...: unknown key, ignored", shown.substr(0, kLongestKey)));
      continue;
    }
    if (known.empty()) {  // task structure has a section without options
      config.warnings.push_back(fmt::format("{}: unknown key, ignored", shown));
      continue;
    }
    const auto closest = std::ranges::min_element(
        known, {}, [&, &name = key](std::string_view k) { return EditDistance(name, k); });
    config.warnings.push_back(
        fmt::format("{}: unknown key, ignored. Did you mean \"{}\"?", shown, *closest));
  }
}

// Applies the rows of one section in order.
Status ApplySection(std::string_view section, const Json& object, Config& config) {
  for (const Option& option : kOptions) {
    if (option.section != section) continue;
    const auto it = object.find(option.name);
    if (it == object.end() || it->is_null()) continue;
    const std::string field =
        section.empty() ? std::string(option.name) : fmt::format("{}.{}", section, option.name);
    PL_TRY(option.apply(field, *it, config));
  }
  return {};
}

// Puts the constructor's arguments over the file's values. Empty texts do not count as given.
Status Override(const ConfigOverrides& overrides, Json& json) {
  const auto put = [&](const char* key, const std::optional<std::string>& value) {
    if (value && !value->empty()) json[key] = *value;
  };
  put("task", overrides.task);
  put("dump_path", overrides.dump_path);
  put("level", overrides.level);
  if (!overrides.step_json) return {};
  Result<Json> step = ParseJson(*overrides.step_json);
  if (!step) return step.error().In("step");
  if (!step->is_null()) json["step"] = *std::move(step);
  return {};
}

Result<Config> Build(Json json, const ConfigOverrides& overrides) {
  if (!json.is_object()) return Invalid("top level", json, "an object { ... }");
  PL_TRY(Override(overrides, json));
  Config config;
  // An empty text means "not given", as for the constructor.
  for (const char* key : {"task", "level"}) {
    if (json.value(key, Json()) == Json("")) json.erase(key);
  }
  WarnOfUnknownKeys("", json, config);
  PL_TRY(ApplySection("", json, config));
  const std::string_view section = TaskName(config.task);
  const Json values = json.value(section, Json());
  if (!values.is_null()) {
    if (!values.is_object()) return Invalid(section, values, "an object { ... }");
    WarnOfUnknownKeys(section, values, config);
    PL_TRY(ApplySection(section, values, config));
  }
  PL_TRY(settings::Reconcile(config));
  PL_TRY(CheckDumpPath(config.dump_path));
  PL_TRY(Selection::Create(config));
  return config;
}

}  // namespace

std::string_view TaskName(Task task) {
  switch (task) {
    case Task::kTensor:
      return kTensor;
    case Task::kStructure:
      return "structure";
    case Task::kOverflowCheck:
      return kOverflowCheck;
    case Task::kNanCheck:
      return kNanCheck;
    case Task::kStatistics:
      break;
  }
  return kStatistics;
}

std::string_view LevelName(Level level) {
  switch (level) {
    case Level::kL0:
      return "L0";
    case Level::kL1:
      return "L1";
    case Level::kL2:
      return "L2";
    case Level::kDebug:
      return "debug";
    case Level::kMix:
      break;
  }
  return "mix";
}

Result<std::vector<int64_t>> ParseNumberList(std::string_view field, std::string_view json_text) {
  Result<Json> json = ParseJson(json_text);
  if (!json) return json.error().In(field);
  return NumberList(field, *json);
}

Result<Config> ParseConfig(std::string_view text, const std::string& path,
                           const ConfigOverrides& overrides) {
  Result<Json> json = ParseJson(text);
  if (!json) return json.error().In(path);
  Result<Config> config = Build(*std::move(json), overrides);
  if (!config) return config.error().In(path);
  for (std::string& warning : config->warnings) warning = fmt::format("{}: {}", path, warning);
  return config;
}

Result<Config> LoadConfig(const std::optional<std::string>& path,
                          const ConfigOverrides& overrides) {
  if (!path) return Build(Json::object(), overrides);
  std::vector<std::string> warnings;
  PL_TRY(CheckConfigFile(*path, warnings));
  PL_TRY_ASSIGN(const std::string text, ReadFile(*path));
  PL_TRY_ASSIGN(Config config, ParseConfig(text, *path, overrides));
  config.warnings.insert(config.warnings.begin(), warnings.begin(), warnings.end());
  return config;
}

}  // namespace plumbline
