#include "config/graph_dump/dump_keys.h"

#include <fmt/format.h>

#include "config/graph_dump/kernel_entries.h"

namespace plumbline::graph_dump {
namespace {

using settings::AsBool;
using settings::AsString;
using settings::AsStringList;
using settings::Invalid;
using settings::Json;
using settings::OneOf;

constexpr std::string_view kSavedData[] = {"tensor", "statistic", "full"};
constexpr std::string_view kFileFormats[] = {"bin", "npy"};
constexpr std::string_view kStatisticItems[] = {"max",
                                                "min",
                                                "avg",
                                                "count",
                                                "negative zero count",
                                                "positive zero count",
                                                "nan count",
                                                "negative inf count",
                                                "positive inf count",
                                                "zero count",
                                                "md5",
                                                "l2norm",
                                                "hash",
                                                "hash:sha1",
                                                "hash:md5"};
constexpr std::string_view kNameBytes =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

Result<int64_t> NaturalOf(std::string_view field, const Json& value, int64_t most,
                          std::string_view expected) {
  const std::optional<int64_t> number = value.AsInteger();
  if (!number || *number < 0 || *number > most) return Invalid(field, value, expected);
  return *number;
}

constexpr int64_t kMostNumber = UINT32_MAX;  // MindSpore keeps them in 32 bits

template <auto kField>
Status SetNatural(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN(out.*kField, NaturalOf(field, value, kMostNumber, "an integer of at least 0"));
  return {};
}

Status SetDumpMode(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN(out.dump_mode, NaturalOf(field, value, 2, "0, 1 or 2"));
  return {};
}

Status SetInputOutput(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN(out.input_output, NaturalOf(field, value, 2, "0, 1 or 2"));
  return {};
}

Status SetDebugMode(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN(out.op_debug_mode, NaturalOf(field, value, 4, "0, 1, 2, 3 or 4"));
  return {};
}

Status SetPath(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN(out.path, AsString(field, value));
  if (out.path.empty()) return {};
  if (out.path.front() != '/') return Invalid(field, value, "an absolute path");
  const size_t bad = out.path.find_first_not_of(std::string(kNameBytes) + '/');
  if (bad == std::string::npos) return {};
  return Invalid(field, value,
                 fmt::format("letters, digits, '-', '_' and '/' alone, which is all that MindSpore "
                             "takes, and not '{}' at position {}",
                             out.path[bad], bad));
}

Status SetNetName(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN(out.net_name, AsString(field, value));
  if (!out.net_name.empty() && out.net_name.find_first_not_of(kNameBytes) == std::string::npos) {
    return {};
  }
  return Invalid(field, value, "a name of letters, digits, '-' and '_'");
}

Status SetIteration(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN(out.iteration, AsString(field, value));
  const Result<Iterations> iterations = ParseIterations(out.iteration);
  if (iterations) return {};
  return iterations.error().In(field);
}

Status SetKernels(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN(out.kernels, AsStringList(field, value));
  return {};
}

Status SetDevices(std::string_view field, const Json& value, DumpSettings& out) {
  constexpr std::string_view kExpected = "a list of device numbers";
  if (value.AsList() == nullptr) return Invalid(field, value, kExpected);
  out.support_device.clear();
  for (const Json& item : *value.AsList()) {
    PL_TRY_ASSIGN(const int64_t device, NaturalOf(field, item, kMostNumber, kExpected));
    out.support_device.push_back(device);
  }
  return {};
}

Status SetCategories(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN(out.statistic_category, AsStringList(field, value));
  for (const std::string& item : *out.statistic_category) {
    PL_TRY(OneOf(field, Json(item), StatisticItems()));
  }
  return {};
}

template <auto kField, const auto& kAllowed>
Status SetWord(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN(out.*kField, OneOf(field, value, kAllowed));
  return {};
}

template <auto kField>
Status SetTruth(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN((*out.sync).*kField, AsBool(field, value));
  return {};
}

template <auto kField, const auto& kAllowed>
Status SetSyncWord(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN((*out.sync).*kField, OneOf(field, value, kAllowed));
  return {};
}

Status SetSampleMode(std::string_view field, const Json& value, DumpSettings& out) {
  PL_TRY_ASSIGN(out.sync->sample_mode, NaturalOf(field, value, 1, "0 or 1"));
  return {};
}

Status SetSampleNum(std::string_view field, const Json& value, DumpSettings& out) {
  constexpr std::string_view kExpected = "an integer of at least 1";
  PL_TRY_ASSIGN(out.sync->sample_num, NaturalOf(field, value, kMostNumber, kExpected));
  if (out.sync->sample_num == 0) return Invalid(field, value, kExpected);
  return {};
}

constexpr DumpKey kCommon[] = {
    {"dump_mode", Need::kRequired, SetDumpMode},
    {"path", Need::kOptional, SetPath},
    {"net_name", Need::kRequired, SetNetName},
    {"iteration", Need::kRequired, SetIteration},
    {"saved_data", Need::kOptional, SetWord<&DumpSettings::saved_data, kSavedData>},
    {"input_output", Need::kRequired, SetInputOutput},
    {"kernels", Need::kRequired, SetKernels},
    {"support_device", Need::kRequired, SetDevices},
    {"statistic_category", Need::kOptional, SetCategories},
    {"op_debug_mode", Need::kOfAsync, SetDebugMode},
    {"file_format", Need::kOptional, SetWord<&DumpSettings::file_format, kFileFormats>},
    {"overflow_number", Need::kOptional, SetNatural<&DumpSettings::overflow_number>},
    {"initial_iteration", Need::kOptional, SetNatural<&DumpSettings::initial_iteration>},
};

constexpr DumpKey kSync[] = {
    {"enable", Need::kOfOlder, SetTruth<&SyncSettings::enable>},
    {"trans_flag", Need::kOfOlder, SetTruth<&SyncSettings::trans_flag>},
    {"save_kernel_args", Need::kOptional, SetTruth<&SyncSettings::save_kernel_args>},
    {"stat_calc_mode", Need::kOptional, SetSyncWord<&SyncSettings::stat_calc_mode, kPlaces>},
    {"device_stat_precision_mode", Need::kOptional,
     SetSyncWord<&SyncSettings::device_stat_precision_mode, kPrecisions>},
    {"sample_mode", Need::kOptional, SetSampleMode},
    {"sample_num", Need::kOptional, SetSampleNum},
};

}  // namespace

std::span<const DumpKey> CommonKeys() { return kCommon; }
std::span<const DumpKey> SyncKeys() { return kSync; }

std::span<const std::string_view> StatisticItems() { return kStatisticItems; }

}  // namespace plumbline::graph_dump
