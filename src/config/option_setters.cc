#include "config/option_setters.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"

namespace plumbline::settings {
namespace {

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

}  // namespace

std::span<const std::string_view> TaskWords() { return kTasks; }

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

Status SetDataloader(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.enable_dataloader, AsBool(field, value));
  if (config.enable_dataloader) {
    config.warnings.push_back(
        "enable_dataloader: is deprecated; call start(), stop() and step() in the loop instead");
  }
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

}  // namespace plumbline::settings
