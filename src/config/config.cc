#include "config/config.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "config/options.h"
#include "config/perturbation_options.h"
#include "config/selection.h"

namespace plumbline {

namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 30;
constexpr size_t kMaxPathBytes = 4096;
constexpr size_t kMaxNameBytes = 255;

bool IsPathByte(char c, std::string_view extra) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         extra.find(c) != std::string_view::npos;
}

Status CheckPathText(std::string_view path, std::string_view extra_bytes) {
  if (path.size() > kMaxPathBytes) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}...: path of {} bytes is too long (expected at most {})",
                             path.substr(0, 60), path.size(), kMaxPathBytes));
  }
  if (BaseName(path).size() > kMaxNameBytes) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}...: name of {} bytes is too long (expected at most {})",
                             path.substr(0, 60), BaseName(path).size(), kMaxNameBytes));
  }
  for (const char c : path) {
    if (IsPathByte(c, extra_bytes)) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: contains special characters (expected letters, digits and {})",
                             path, extra_bytes));
  }
  return {};
}

}  // namespace

Status CheckConfigFile(const std::string& path, std::vector<std::string>& warnings) {
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(path));
  const auto refuse = [&](std::string_view what) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, what));
  };
  if (facts.is_link) return refuse("is a symbolic link (expected a regular file)");
  if (facts.kind != PathKind::kFile) return refuse("is not a regular file");
  PL_TRY_ASSIGN(const std::string real, RealPath(path));
  PL_TRY(CheckPathText(real, "_.:/-"));
  if (facts.size_bytes > kMaxConfigBytes) return refuse("is larger than 1 GiB");
  if (!path.ends_with(".json")) return refuse("name does not end in .json");
  if (!facts.is_own) {
    warnings.push_back(fmt::format("{}: belongs to another user", path));
  } else if (facts.is_shared_writable) {
    warnings.push_back(fmt::format("{}: can be written by other users", path));
  }
  return {};
}

Status CheckDumpPath(const std::string& dump_path) {
  if (dump_path.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "dump_path: is missing (expected a directory to write to). Set it in config.json "
                 "or pass dump_path");
  }
  PL_TRY_ASSIGN(const std::string absolute, AbsolutePath(dump_path));
  if (Status text = CheckPathText(absolute, "_./-"); !text) return text.error().In("dump_path");
  const auto facts = Inspect(absolute);
  if (!facts) return {};  // not there yet
  if (facts->is_link) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("dump_path: {} is a symbolic link (expected a directory)", absolute));
  }
  if (facts->kind != PathKind::kDirectory) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("dump_path: {} is not a directory", absolute));
  }
  return {};
}

}  // namespace plumbline

namespace plumbline::settings {

namespace {

// Settings of the tasks that look for something, with the rest known.
Status ReconcileSearch(const Config& config) {
  const bool debug = config.level == Level::kDebug;
  const auto wrong_level = [&](std::string_view expected) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("level: is \"{}\" (expected {} with task {})", LevelName(config.level),
                             expected, TaskName(config.task)));
  };
  if (config.task == Task::kOverflowCheck && (debug || config.level == Level::kL2)) {
    return wrong_level("L0, L1 or mix");
  }
  if (config.task == Task::kNanCheck) {
    if (config.level != Level::kL1) return wrong_level("L1");
    if (!config.data_mode.output) {
      return Error(ErrorCode::kInvalidArgument,
                   "nan_check.data_mode: has inputs only, and is_nan tells about the whole call "
                   "(expected \"output\" or \"all\" too)");
    }
  }
  if (config.bench_path.empty()) return {};
  if (config.summary_mode != SummaryMode::kMd5) {
    return Error(ErrorCode::kInvalidArgument,
                 "tensor.bench_path: is given, and calls are compared by their checksums (expected "
                 "summary_mode \"md5\" with it)");
  }
  return debug || config.level == Level::kL2 ? wrong_level("L0, L1 or mix") : Status();
}

// Level L2 records one call of one API.
Status CheckOperators(const Config& config) {
  if (config.level != Level::kL2) return {};
  if (!config.scope.empty()) {
    return Invalid(fmt::format("{}.scope", TaskName(config.task)), Json(config.scope),
                   "none at level L2, where list names one call");
  }
  if (config.list.size() != 1) {
    return Invalid(fmt::format("{}.list", TaskName(config.task)), Json(config.list),
                   "1 at level L2, the name of the call to look into, such as "
                   "Functional.linear.0.forward");
  }
  return {};
}

// What is sent to another machine: whole calls, which it runs again.
Status ReconcileOnline(Config& config) {
  OnlineConfig& online = config.online;
  const auto wrong = [](std::string_view what) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("tensor.{}", what));
  };
  if (config.level != Level::kL1 && config.level != Level::kMix) {
    return wrong(fmt::format("online_run_ut: with level \"{}\" (expected L1 or mix)",
                             LevelName(config.level)));
  }
  const DataMode& mode = config.data_mode;
  if (!mode.forward || !mode.input || !mode.output || !config.bench_path.empty() ||
      !config.slices.empty() || !config.request_id.empty()) {
    return wrong("online_run_ut: what is sent has to be whole calls (expected data_mode [\"all\"] "
                 "and no bench_path, slice or request_id)");
  }
  if (online.directory.empty()) {
    // Dots and digits alone: a name would be looked up while the training waits.
    if (online.host.empty() || online.host.find_first_not_of("0123456789.") != std::string::npos) {
      return wrong(fmt::format("host: is \"{}\" (expected the IPv4 address of the machine that "
                               "checks, or nfs_path)",
                               online.host));
    }
    if (online.port < 1) return wrong("port: is missing (expected an integer from 1 to 65535)");
  }
  if (online.skips_backward) config.data_mode.backward = false;
  config.extra_info = false;  // nobody reads stacks there
  return {};
}

// Values that are saved by name, and operators, are recorded whole.
void ForgetCuts(Config& config) {
  const auto warn = [&](std::string_view key) {
    config.warnings.push_back(fmt::format("{}.{}: has no effect at level {}", TaskName(config.task),
                                          key, LevelName(config.level)));
  };
  if (!config.slices.empty()) warn("slice");
  if (!config.request_id.empty()) warn("request_id");
  config.slices.clear();
  config.request_id.clear();
}

}  // namespace

Status Reconcile(Config& config) {
  if (config.task == Task::kGradProbe) return {};  // nothing of what follows has an effect
  PL_TRY(CheckOperators(config));
  const bool debug = config.level == Level::kDebug;
  if (config.async_dump && config.task == Task::kTensor && config.list.empty() && !debug) {
    return Error(ErrorCode::kInvalidArgument,
                 "tensor.list: is empty (expected at least one name with async_dump)");
  }
  PL_TRY(ReconcileSearch(config));
  if (config.online.is_on) PL_TRY(ReconcileOnline(config));
  if (config.task == Task::kStructure) {
    if (config.level != Level::kL0 && config.level != Level::kMix) {
      config.warnings.push_back(fmt::format(
          "level: is \"{}\", and task structure records modules: mix is used (expected L0 or mix)",
          LevelName(config.level)));
      config.level = Level::kMix;
    }
    // Backward calls have a place in construct.json; no part of any call is read.
    config.data_mode = {.forward = false, .backward = true, .input = false, .output = false};
  }
  if (debug || config.level == Level::kL2) ForgetCuts(config);
  if (debug && !config.tensor_list.empty()) {
    config.warnings.push_back("statistics.tensor_list: has no effect at level debug");
    config.tensor_list.clear();
  }
  if (debug && !config.steps.empty()) {
    config.warnings.push_back("step: has no effect at level debug, which writes one file per run");
  }
  return {};
}

}  // namespace plumbline::settings

namespace plumbline {

namespace {

using settings::Invalid;
using settings::Json;
using settings::NumberList;
using settings::Option;
using settings::ParseJson;

// Applies the rows of one section in order. Values that are null, and absent keys, keep the default
// in Config. All errors.
std::vector<Error> ApplySection(std::string_view section, const Json& object, Config& config) {
  std::vector<Error> errors;
  const settings::Sections bit = settings::SectionNamed(section);
  for (const Option& option : settings::Options()) {
    if ((option.sections & bit) == 0) continue;
    const Json* const value = object.Find(option.name);
    if (value == nullptr || value->is_null()) continue;
    const std::string field =
        section.empty() ? std::string(option.name) : fmt::format("{}.{}", section, option.name);
    const Status applied = option.apply(field, *value, config);
    if (!applied) errors.push_back(applied.error());
  }
  return errors;
}

// Puts the constructor's arguments over the file's values. Empty texts do not count as given.
Status Override(const ConfigOverrides& overrides, Json& json) {
  const auto put = [&](const char* key, const std::optional<std::string>& value) {
    if (value && !value->empty()) json.Put(key, Json(*value));
  };
  put("task", overrides.task);
  put("dump_path", overrides.dump_path);
  put("level", overrides.level);
  if (!overrides.step_json) return {};
  Result<Json> step = ParseJson(*overrides.step_json);
  if (!step) return step.error().In("step");
  if (!step->is_null()) json.Put("step", *std::move(step));
  return {};
}

Result<Config> Build(Json json, const ConfigOverrides& overrides) {
  if (!json.is_object()) return Invalid("top level", json, "an object { ... }");
  PL_TRY(Override(overrides, json));
  Config config;
  // An empty text means "not given", as for the constructor.
  for (const char* key : {"task", "level"}) {
    const Json* const value = json.Find(key);
    if (value != nullptr && *value == Json("")) json.Remove(key);
  }
  settings::WarnOfUnknownKeys("", json, config.warnings);
  PL_TRY(settings::AllOf(ApplySection("", json, config)));
  const std::string_view section = TaskName(config.task);
  const Json* const values = json.Find(section);
  std::vector<Error> errors;
  if (values != nullptr && !values->is_null()) {
    if (!values->is_object()) return Invalid(section, *values, "an object { ... }");
    settings::WarnOfUnknownKeys(section, *values, config.warnings);
    errors = ApplySection(section, *values, config);
  }
  if (config.task == Task::kFreeBenchmark) {
    for (Error& error : settings::WrongPerturbations(config)) errors.push_back(std::move(error));
  }
  PL_TRY(settings::AllOf(errors));
  PL_TRY(settings::Reconcile(config));
  PL_TRY(CheckDumpPath(config.dump_path));
  PL_TRY(Selection::Create(config));
  return config;
}

}  // namespace

std::string_view TaskName(Task task) {
  switch (task) {
    case Task::kTensor:
      return "tensor";
    case Task::kStructure:
      return "structure";
    case Task::kOverflowCheck:
      return "overflow_check";
    case Task::kNanCheck:
      return "nan_check";
    case Task::kFreeBenchmark:
      return "free_benchmark";
    case Task::kGradProbe:
      return "grad_probe";
    case Task::kStatistics:
      break;
  }
  return "statistics";
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

bool AsksForTask(Task task, const std::optional<std::string>& path,
                 const ConfigOverrides& overrides) {
  if (overrides.task && !overrides.task->empty()) return *overrides.task == TaskName(task);
  const Result<std::string> text = path ? ReadFile(*path) : Result<std::string>(std::string());
  if (!text) return false;
  const Result<Json> json = ParseJson(*text);
  const Json* const asked = json && json->is_object() ? json->Find("task") : nullptr;
  return asked != nullptr && *asked == Json(TaskName(task));
}

Result<Config> LoadConfig(const std::optional<std::string>& path,
                          const ConfigOverrides& overrides) {
  if (!path) return Build(Json::Object(), overrides);
  std::vector<std::string> warnings;
  PL_TRY(CheckConfigFile(*path, warnings));
  PL_TRY_ASSIGN(const std::string text, ReadFile(*path));
  PL_TRY_ASSIGN(Config config, ParseConfig(text, *path, overrides));
  config.warnings.insert(config.warnings.begin(), warnings.begin(), warnings.end());
  return config;
}

}  // namespace plumbline
