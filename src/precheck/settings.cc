#include "precheck/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/file/file.h"
#include "base/text/yaml_file.h"
#include "config/config.h"
#include "config/options.h"
#include "precheck/api_inventory.h"

namespace plumbline::precheck {

namespace {

using settings::AsString;
using settings::AsStringList;
using settings::Invalid;
using settings::Json;

constexpr std::string_view kLevels[] = {"L0", "L1", "L2", "mix", "debug"};
constexpr std::array<std::string_view, 2> kSections = {"acc_check", "run_ut"};
constexpr std::string_view kKeys[] = {"white_list", "black_list", "error_data_path", "precision",
                                      "seed"};
// Of the check while the model trains.
constexpr std::string_view kOnlineKeys[] = {"is_online", "nfs_path",  "host",
                                            "port",      "rank_list", "tls_path"};
constexpr std::string_view kOfLaterReleases = "quantization_api_list";
constexpr int64_t kMostPort = 65535;
constexpr int64_t kMostDigits = 20;

plumbline::Status ReadNames(std::string_view field, const Json& value,
                            std::vector<std::string>& names) {
  PL_TRY_ASSIGN(names, AsStringList(field, value));
  return CheckApiNames(field, names);
}

plumbline::Status ReadDirectory(std::string_view field, const Json& value, std::string& directory) {
  PL_TRY_ASSIGN(directory, AsString(field, value));
  if (KindOf(directory) == PathKind::kDirectory) return {};
  return Invalid(field, value, "an existing directory");
}

plumbline::Status ReadKey(std::string_view section, std::string_view key, const Json& value,
                          PrecheckSettings& out) {
  const std::string field = fmt::format("{}.{}", section, key);
  if (key == "white_list") return ReadNames(field, value, out.white_list);
  if (key == "black_list") return ReadNames(field, value, out.black_list);
  if (key == "error_data_path") return ReadDirectory(field, value, out.error_data_path);
  if (key == "seed") {
    out.seed = value.AsNatural();
    return out.seed ? plumbline::Status() : Invalid(field, value, "an integer of at least 0");
  }
  const std::optional<int64_t> digits = value.AsInteger();
  if (!digits || *digits < 0 || *digits > kMostDigits) {
    return Invalid(field, value, "an integer from 0 to 20");
  }
  out.precision = static_cast<int>(*digits);
  return {};
}

plumbline::Status ReadOnlineKey(std::string_view section, std::string_view key, const Json& value,
                                PrecheckSettings& out) {
  const std::string field = fmt::format("{}.{}", section, key);
  if (key == "is_online") {
    PL_TRY_ASSIGN(out.is_online, settings::AsBool(field, value));
  } else if (key == "nfs_path") {
    PL_TRY_ASSIGN(out.nfs_path, AsString(field, value));
  } else if (key == "host") {
    PL_TRY_ASSIGN(out.host, AsString(field, value));
  } else if (key == "tls_path") {
    PL_TRY_ASSIGN(out.tls_path, AsString(field, value));
  } else if (key == "rank_list") {
    PL_TRY_ASSIGN(out.rank_list, settings::NumberList(field, value));
  } else {
    const std::optional<int64_t> port = value.AsInteger();
    if (!port || *port < -1 || *port == 0 || *port > kMostPort) {
      return Invalid(field, value, "an integer from 1 to 65535");
    }
    out.port = static_cast<int>(*port);
  }
  return {};
}

plumbline::Status ReadSection(std::string_view section, const Json& object, PrecheckSettings& out) {
  if (!object.is_object()) return Invalid(section, object, "an object { ... }");
  for (const std::string_view key : object.Keys()) {
    const Json& value = *object.Find(key);
    if (value.is_null()) continue;
    if (std::ranges::find(kKeys, key) != std::end(kKeys)) {
      PL_TRY(ReadKey(section, key, value, out));
      continue;
    }
    if (std::ranges::find(kOnlineKeys, key) != std::end(kOnlineKeys)) {
      PL_TRY(ReadOnlineKey(section, key, value, out));
      continue;
    }
    if (key == kOfLaterReleases) continue;
    out.warnings.push_back(settings::UnknownKeyWarning(section, key, kKeys));
  }
  return {};
}

Result<PrecheckSettings> Build(const Json& json, PrecheckSettings out) {
  if (!json.is_object()) return Invalid("top level", json, "an object { ... }");
  const auto is_given = [](const Json* value) {
    return value != nullptr && !value->is_null() && *value != Json("");
  };
  const Json* const task = json.Find("task");
  if (is_given(task)) PL_TRY(settings::OneOf("task", *task, settings::TaskWords()));
  const Json* const level = json.Find("level");
  if (is_given(level)) PL_TRY(settings::OneOf("level", *level, kLevels));
  settings::WarnOfUnknownKeys("", json, out.warnings);
  for (const std::string_view section : kSections) {
    const Json* const object = json.Find(section);
    if (object == nullptr || object->is_null()) continue;
    PL_TRY(ReadSection(section, *object, out));
    break;
  }
  return out;
}

// A value of a YAML file as one of config.json: plain scalars are what they look like there, and
// lists hold texts.
Json FromYaml(const YAML::Node& node) {
  if (node.IsSequence()) {
    std::vector<std::string> texts;
    for (const YAML::Node& item : node) {
      texts.push_back(item.IsScalar() ? item.Scalar() : std::string());
    }
    return Json(texts);
  }
  if (node.IsMap()) return Json::Object();
  if (!node.IsScalar()) return {};
  const std::string& text = node.Scalar();
  constexpr std::string_view kQuoted = "!";
  if (node.Tag() == kQuoted) return Json(text);
  if (text == "true" || text == "True") return Json(true);
  if (text == "false" || text == "False") return Json(false);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number ? Json(number) : Json(text);
}

Result<PrecheckSettings> ReadDefaults(const std::string& path) {
  PrecheckSettings out;
  PL_TRY_ASSIGN(const YamlFile file, YamlFile::Read(path, ErrorCode::kInvalidArgument));
  if (!file.root().IsDefined() || file.root().IsNull()) return out;
  if (!file.root().IsMap()) return file.Bad("expected a mapping of settings");
  Json object = Json::Object();
  for (const auto& member : file.root()) {
    if (!member.first.IsScalar()) return file.Bad(member.first, "expected the name of a setting");
    object.Put(member.first.Scalar(), FromYaml(member.second));
  }
  PL_TRY(ReadSection(path, object, out));
  return out;
}

}  // namespace

Result<PrecheckSettings> ParsePrecheckSettings(std::string_view text, const std::string& path,
                                               PrecheckSettings defaults) {
  const Result<Json> json = settings::ParseJson(text);
  if (!json) return json.error().In(path);
  const size_t known = defaults.warnings.size();
  Result<PrecheckSettings> out = Build(*json, std::move(defaults));
  if (!out) return out.error().In(path);
  for (size_t i = known; i < out->warnings.size(); ++i) {
    out->warnings[i] = fmt::format("{}: {}", path, out->warnings[i]);
  }
  return out;
}

Result<PrecheckSettings> LoadPrecheckSettings(const SettingsFiles& files) {
  PrecheckSettings out;
  if (!files.defaults_yaml.empty()) {
    PL_TRY_ASSIGN(out, ReadDefaults(files.defaults_yaml));
  }
  if (files.config_json.empty()) return out;
  PL_TRY(CheckConfigFile(files.config_json, out.warnings));
  PL_TRY_ASSIGN(const std::string text, ReadFile(files.config_json));
  return ParsePrecheckSettings(text, files.config_json, std::move(out));
}

}  // namespace plumbline::precheck
