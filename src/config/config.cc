#include "config/config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "config/options.h"
#include "config/path_rules.h"
#include "config/reconcile.h"
#include "config/selection.h"
#include "config/setting_values.h"

namespace plumbline {
namespace {

using settings::Invalid;
using settings::Json;
using settings::NumberList;
using settings::Option;
using settings::ParseJson;

// Applies the rows of one section in order. Values that are null, and absent keys, keep the default
// in Config.
Status ApplySection(std::string_view section, const Json& object, Config& config) {
  const settings::Sections bit = settings::SectionNamed(section);
  for (const Option& option : settings::Options()) {
    if ((option.sections & bit) == 0) continue;
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
  settings::WarnOfUnknownKeys("", json, config.warnings);
  PL_TRY(ApplySection("", json, config));
  const std::string_view section = TaskName(config.task);
  const Json values = json.value(section, Json());
  if (!values.is_null()) {
    if (!values.is_object()) return Invalid(section, values, "an object { ... }");
    settings::WarnOfUnknownKeys(section, values, config.warnings);
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
      return "tensor";
    case Task::kStructure:
      return "structure";
    case Task::kOverflowCheck:
      return "overflow_check";
    case Task::kNanCheck:
      return "nan_check";
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
