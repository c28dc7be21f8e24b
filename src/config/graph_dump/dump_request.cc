#include "config/graph_dump/dump_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file/file.h"
#include "config/config.h"
#include "config/graph_dump/dump_settings.h"
#include "config/options.h"

namespace plumbline::graph_dump {
namespace {

using settings::AsBool;
using settings::AsLimit;
using settings::AsString;
using settings::AsStringList;
using settings::Invalid;
using settings::Json;
using settings::NumberList;
using settings::OneOf;

constexpr std::string_view kTasks[] = {"statistics", "tensor", "overflow_check", "exception_dump"};
constexpr std::string_view kLevels[] = {"L0", "L1", "L2", "mix", "debug"};
constexpr std::string_view kDataModes[] = {"all", "input", "output"};
constexpr std::string_view kSummaries[] = {"statistics", "md5", "max", "min", "mean", "l2norm"};
constexpr std::string_view kRequestFormats[] = {"npy", "bin"};
constexpr std::string_view kCheckModes[] = {"all", "aicore", "atomic"};
constexpr std::string_view kRequestSavedData[] = {"tensor", "full"};

Status SetDataMode(std::string_view field, const Json& value, DumpRequest& out) {
  PL_TRY_ASSIGN(const std::vector<std::string> modes, AsStringList(field, value));
  if (modes.size() != 1) return Invalid(field, value, "one of all, input, output for graphs");
  PL_TRY_ASSIGN(out.data_mode, OneOf(field, Json(modes.front()), kDataModes));
  return {};
}

Status SetSummary(std::string_view field, const Json& value, DumpRequest& out) {
  if (value.AsText() != nullptr) {
    constexpr std::string_view kAlone[] = {"statistics", "md5"};
    PL_TRY_ASSIGN(const std::string mode, OneOf(field, value, kAlone));
    out.summary = {mode};
    return {};
  }
  PL_TRY_ASSIGN(const std::vector<std::string> modes, AsStringList(field, value));
  if (modes.empty()) return Invalid(field, value, "at least one element");
  out.summary.clear();
  for (const std::string& mode : modes) {
    PL_TRY(OneOf(field, Json(mode), std::span(kSummaries).subspan(1)));
    if (std::ranges::count(out.summary, mode) == 0) out.summary.push_back(mode);
  }
  return {};
}

using EntrySetter = Status (*)(std::string_view field, const Json& value, DumpRequest& out);

template <auto kField, const auto& kAllowed>
Status SetWord(std::string_view field, const Json& value, DumpRequest& out) {
  PL_TRY_ASSIGN(out.*kField, OneOf(field, value, kAllowed));
  return {};
}

template <auto kField, auto kParse>
Status Set(std::string_view field, const Json& value, DumpRequest& out) {
  PL_TRY_ASSIGN(out.*kField, kParse(field, value));
  return {};
}

struct Entry {
  std::string_view name;
  EntrySetter apply;
};

constexpr Entry kTop[] = {
    {"task", SetWord<&DumpRequest::task, kTasks>},
    {"level", SetWord<&DumpRequest::level, kLevels>},
    {"dump_path", Set<&DumpRequest::dump_path, AsString>},
    {"rank", Set<&DumpRequest::ranks, NumberList>},
    {"step", Set<&DumpRequest::steps, NumberList>},
    {"async_dump", Set<&DumpRequest::async_dump, AsBool>},
};

constexpr Entry kOfTask[] = {
    {"list", Set<&DumpRequest::list, AsStringList>},
    {"scope", Set<&DumpRequest::scope, AsStringList>},
    {"data_mode", SetDataMode},
    {"summary_mode", SetSummary},
    {"file_format", SetWord<&DumpRequest::file_format, kRequestFormats>},
    {"check_mode", SetWord<&DumpRequest::check_mode, kCheckModes>},
    {"overflow_nums", Set<&DumpRequest::hit_limit, AsLimit>},
    {"saved_data", SetWord<&DumpRequest::saved_data, kRequestSavedData>},
    {"device", SetWord<&DumpRequest::device, kPlaces>},
    {"precision", SetWord<&DumpRequest::precision, kPrecisions>},
};

Status ApplyEntries(std::string_view section, const Json& object, std::span<const Entry> entries,
                    DumpRequest& out) {
  for (const Entry& entry : entries) {
    const Json* const value = object.Find(entry.name);
    // An empty text means "not given", as for the constructor.
    if (value == nullptr || value->is_null() || (section.empty() && *value == Json(""))) continue;
    const std::string field =
        section.empty() ? std::string(entry.name) : fmt::format("{}.{}", section, entry.name);
    PL_TRY(entry.apply(field, *value, out));
  }
  return {};
}

Status Override(const ConfigOverrides& overrides, DumpRequest& out) {
  const auto apply = [&](const char* name, const std::optional<std::string>& value) -> Status {
    if (!value || value->empty()) return {};
    Json object = Json::Object();
    object.Put(name, Json(*value));
    return ApplyEntries("", object, kTop, out);
  };
  PL_TRY(apply("task", overrides.task));
  PL_TRY(apply("level", overrides.level));
  PL_TRY(apply("dump_path", overrides.dump_path));
  if (!overrides.step_json) return {};
  PL_TRY_ASSIGN(out.steps, ParseNumberList("step", *overrides.step_json));
  return {};
}

Status ApplyAll(const Json& json, const ConfigOverrides& overrides, DumpRequest& out) {
  if (!json.is_object()) return Invalid("top level", json, "an object { ... }");
  settings::WarnOfUnknownKeys("", json, out.warnings);
  PL_TRY(ApplyEntries("", json, kTop, out));
  PL_TRY(Override(overrides, out));
  const Json* const section = json.Find(out.task);
  if (section == nullptr || section->is_null()) return {};
  if (!section->is_object()) return Invalid(out.task, *section, "an object { ... }");
  return ApplyEntries(out.task, *section, kOfTask, out);
}

}  // namespace

Result<DumpRequest> ReadDumpRequest(const std::optional<std::string>& config_path,
                                    const ConfigOverrides& overrides) {
  DumpRequest out;
  Json json = Json::Object();
  if (config_path) {
    PL_TRY(CheckConfigFile(*config_path, out.warnings));
    PL_TRY_ASSIGN(const std::string text, ReadFile(*config_path));
    Result<Json> parsed = settings::ParseJson(text);
    if (!parsed) return parsed.error().In(*config_path);
    json = *std::move(parsed);
  }
  if (const Status status = ApplyAll(json, overrides, out); !status) {
    return config_path ? status.error().In(*config_path) : status.error();
  }
  PL_TRY(CheckDumpPath(out.dump_path));
  PL_TRY_ASSIGN(out.dump_path, AbsolutePath(out.dump_path));
  return out;
}

bool AsksForKernels(const std::optional<std::string>& config_path,
                    const ConfigOverrides& overrides) {
  constexpr std::string_view kKernels = "L2";
  if (overrides.level && !overrides.level->empty()) return *overrides.level == kKernels;
  const Result<std::string> text =
      config_path ? ReadFile(*config_path) : Result<std::string>(std::string());
  if (!text) return false;
  const Result<Json> json = settings::ParseJson(*text);
  if (!json || !json->is_object()) return false;
  const Json* const level = json->Find("level");
  return level != nullptr && *level == Json(kKernels);
}

}  // namespace plumbline::graph_dump
