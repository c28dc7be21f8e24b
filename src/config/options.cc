#include "config/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/file/file.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "config/name_pattern.h"
#include "config/perturbation_options.h"

namespace plumbline::settings {

std::string UnknownKeyWarning(std::string_view section, std::string_view key,
                              std::span<const std::string_view> known) {
  constexpr size_t kLongestKey = 100;  // not worth a guess beyond
  const std::string shown = section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
  if (key.size() > kLongestKey) {
    return fmt::format("{}...: unknown key, ignored", shown.substr(0, kLongestKey));
  }
  if (known.empty()) return fmt::format("{}: unknown key, ignored", shown);
  const auto closest = std::ranges::min_element(
      known, {}, [&](std::string_view candidate) { return EditDistance(key, candidate); });
  return fmt::format("{}: unknown key, ignored. Did you mean \"{}\"?", shown, *closest);
}

namespace {

constexpr int64_t kMaxNumber = 1'000'000;  // largest rank or step, and longest list of them

bool IsDecimal(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// A value of at most kMaxNumber; larger ones, of any length, give kMaxNumber + 1.
int64_t DecimalValue(std::string_view digits) {
  int64_t value = 0;
  for (const char c : digits) value = std::min(value * 10 + (c - '0'), kMaxNumber + 1);
  return value;
}

Result<std::pair<int64_t, int64_t>> ParseRange(std::string_view field, const Json& item) {
  const std::string_view view = *item.AsText();
  const size_t hyphen = view.find('-');
  if (hyphen == std::string_view::npos || view.find('-', hyphen + 1) != std::string_view::npos) {
    return Invalid(field, item, "an integer or a range such as \"3-5\"");
  }
  const std::string_view left = view.substr(0, hyphen);
  const std::string_view right = view.substr(hyphen + 1);
  if (!IsDecimal(left) || !IsDecimal(right)) {
    return Invalid(field, item, "a range with a decimal number on both sides of the hyphen");
  }
  const auto range = std::pair(DecimalValue(left), DecimalValue(right));
  if (range.first > kMaxNumber || range.second > kMaxNumber) {
    return Invalid(field, item, "range boundaries from 0 to 1000000");
  }
  if (range.first > range.second) {
    return Invalid(field, item, "a left boundary that is not greater than the right one");
  }
  return range;
}

}  // namespace

Error Invalid(std::string_view field, const Json& value, std::string_view expected) {
  constexpr size_t kShownBytes = 60;
  std::string shown = value.Text();
  // The parser turns integers that no 64 bits hold into the nearest double.
  constexpr double kFirstBeyond = 9223372036854775808.0;
  const double real = value.AsReal().value_or(0);
  if (!value.is_integer() && std::abs(real) >= kFirstBeyond) {
    constexpr int kAllDigits = 17;
    std::string digits;
    AppendGeneral(real, kAllDigits, digits);
    shown = fmt::format("about {}, beyond 64 bits", digits);
  }
  if (shown.size() > kShownBytes) shown = shown.substr(0, kShownBytes) + "...";
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: is {} (expected {})", field, shown, expected));
}

Status AllOf(const std::vector<Error>& errors) {
  if (errors.empty()) return {};
  std::string text;
  for (const Error& error : errors) text += (text.empty() ? "" : "; ") + error.message();
  return Error(errors.front().code(), std::move(text));
}

Error NotBuilt(std::string_view field, std::string_view value, std::string_view expected) {
  return Error(ErrorCode::kUnsupported,
               fmt::format("{}: \"{}\" is not built yet. Use {}", field, value, expected));
}

Result<std::string> AsString(std::string_view field, const Json& value) {
  const auto* text = value.AsText();
  if (text == nullptr) return Invalid(field, value, "a string");
  return *text;
}

Result<bool> AsBool(std::string_view field, const Json& value) {
  const auto* truth = value.AsBool();
  if (truth == nullptr) return Invalid(field, value, "true or false");
  return *truth;
}

Result<std::optional<int64_t>> AsLimit(std::string_view field, const Json& value) {
  constexpr std::string_view kExpected = "-1 (no limit) or an integer of at least 1";
  const std::optional<int64_t> number = value.AsInteger();
  if (!number) return Invalid(field, value, kExpected);
  if (*number == -1) return std::optional<int64_t>();
  if (*number < 1) return Invalid(field, value, kExpected);
  return number;
}

Result<uint64_t> AsByteCount(std::string_view field, const Json& value) {
  const std::optional<uint64_t> number = value.AsNatural();
  if (!number) return Invalid(field, value, "a number of bytes, 0 or more");
  return *number;
}

Result<int64_t> AsPositive(std::string_view field, const Json& value) {
  const std::optional<int64_t> number = value.AsInteger();
  if (!number || *number < 1) return Invalid(field, value, "an integer of at least 1");
  return *number;
}

Result<std::vector<std::string>> AsStringList(std::string_view field, const Json& value) {
  std::vector<std::string> list;
  if (value.AsList() == nullptr) return Invalid(field, value, "a list of strings");
  for (const Json& item : *value.AsList()) {
    const auto* text = item.AsText();
    if (text == nullptr) return Invalid(field, value, "a list of strings");
    list.push_back(*text);
  }
  return list;
}

Result<std::vector<std::string>> AsPatterns(std::string_view field, const Json& value) {
  PL_TRY_ASSIGN(std::vector<std::string> list, AsStringList(field, value));
  PL_TRY(NamePatterns::Create(field, list));
  return list;
}

Result<std::string> OneOf(std::string_view field, const Json& value,
                          std::span<const std::string_view> allowed) {
  const auto* text = value.AsText();
  if (text != nullptr && std::ranges::count(allowed, *text) > 0) return *text;
  return Invalid(field, value, "one of " + Join(allowed));
}

Result<std::vector<int64_t>> NumberList(std::string_view field, const Json& value) {
  if (value.is_null()) return std::vector<int64_t>();
  const Json::List* list = value.AsList();
  if (list == nullptr) return Invalid(field, value, "a list such as [0, \"2-5\"]");
  if (list->size() > static_cast<size_t>(kMaxNumber)) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: has {} elements (expected at most {})", field, list->size(), kMaxNumber));
  }
  std::vector<int64_t> numbers;
  for (const Json& item : *list) {
    if (item.AsText() != nullptr) {
      PL_TRY_ASSIGN(const auto range, ParseRange(field, item));
      for (int64_t n = range.first; n <= range.second; ++n) numbers.push_back(n);
      // Overlapping long ranges must not add up to unbounded memory.
      if (numbers.size() > 4 * static_cast<size_t>(kMaxNumber)) {
        std::ranges::sort(numbers);
        numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
      }
      continue;
    }
    if (!item.is_integer()) {
      return Invalid(field, item, "every element to be an integer or a range such as \"3-5\"");
    }
    const std::optional<int64_t> number = item.AsInteger();
    if (!number || *number < 0 || *number > kMaxNumber) {
      return Invalid(field, item, "every element to be between 0 and 1000000");
    }
    numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

Result<Json> ParseJson(std::string_view text) {
  size_t error_at = 0;
  Result<Json> json = Json::Parse(text, &error_at);
  if (json) return json;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("not valid JSON at byte {} of {} (expected strict JSON: no comments, no "
                           "trailing commas)",
                           error_at, text.size()));
}

std::string Join(std::span<const std::string_view> names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

namespace {

constexpr std::string_view kTasks[] = {
    "statistics", "tensor",    "overflow_check", "free_benchmark", "run_ut",   "grad_probe",
    "structure",  "acc_check", "diff_check",     "exception_dump", "nan_check"};
constexpr std::string_view kLevels[] = {"L0", "L1", "L2", "mix", "debug"};
constexpr std::string_view kSummaryModes[] = {"statistics", "md5", "xor", "digest"};
// What static graphs of MindSpore choose from; given as a list.
constexpr std::string_view kListedModes[] = {"md5", "max", "min", "mean", "l2norm"};
constexpr std::string_view kRiskLevels[] = {"ALL", "CORE", "FOCUS"};
constexpr std::string_view kPrecisions[] = {"low", "high"};
constexpr int64_t kMostPort = 65535;
constexpr std::string_view kFileFormats[] = {"npy", "bin"};
constexpr std::string_view kDataModes[] = {"all", "forward", "backward", "input", "output"};
constexpr std::string_view kCheckModes[] = {"all", "aicore", "atomic"};
constexpr std::string_view kCounts[] = {"all", "origin"};
constexpr std::string_view kOverflowModes[] = {"record", "trace"};
constexpr size_t kMaxDataModes = 4;
constexpr std::string_view kBuiltTasks =
    "statistics, tensor, structure, overflow_check, nan_check, free_benchmark or grad_probe";
constexpr std::string_view kGradLevels[] = {"L0", "L1", "L2"};  // in the order of GradLevel
constexpr std::string_view kGradSteps[] = {"optimizer", "iteration"};

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
                           Task::kNanCheck, Task::kFreeBenchmark, Task::kGradProbe}) {
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
  if (value.AsList() != nullptr) {
    PL_TRY_ASSIGN(const std::vector<std::string> modes, AsStringList(field, value));
    for (const std::string& mode : modes) PL_TRY(OneOf(field, Json(mode), kListedModes));
    config.warnings.push_back(
        fmt::format("{}: a list is for static graphs; statistics are recorded", field));
    return {};
  }
  PL_TRY_ASSIGN(const std::string mode, OneOf(field, value, kSummaryModes));
  config.summary_mode = mode == "md5"      ? SummaryMode::kMd5
                        : mode == "xor"    ? SummaryMode::kXor
                        : mode == "digest" ? SummaryMode::kDigest
                                           : SummaryMode::kStatistics;
  return {};
}

Status CheckFileFormat(std::string_view field, const Json& value, Config&) {
  // Only static graphs choose; PyTorch tensors are .pt files whatever it says.
  PL_TRY(OneOf(field, value, kFileFormats));
  return {};
}

Status SetOnlinePort(std::string_view field, const Json& value, Config& config) {
  const std::optional<int64_t> port = value.AsInteger();
  if (!port || *port < -1 || *port == 0 || *port > kMostPort) {
    return Invalid(field, value, "an integer from 1 to 65535");
  }
  config.online.port = *port;
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

Status SetOverflowMode(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(const std::string mode, OneOf(field, value, kOverflowModes));
  config.traces_frames = mode == "trace";
  return {};
}

Status SetMaxFrames(std::string_view field, const Json& value, Config& config) {
  const std::optional<int64_t> number = value.AsInteger();
  if (!number || *number < 1) return Invalid(field, value, "an integer of at least 1");
  config.max_frames = *number;
  return {};
}

Status SetAbortAfter(std::string_view field, const Json& value, Config& config) {
  config.abort_after_batch = value.AsInteger();
  const bool is_number = config.abort_after_batch && *config.abort_after_batch >= 0;
  if (is_number || value.is_null()) return {};
  return Invalid(field, value, "an integer of at least 0, or null");
}

Status SetRaises(std::string_view field, const Json& value, Config& config) {
  if (value.is_null()) return {};
  PL_TRY_ASSIGN(config.raises_on_overflow, AsBool(field, value));
  return {};
}

Status SetBenchPath(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.bench_path, AsString(field, value));
  if (config.bench_path.empty() || KindOf(config.bench_path) == PathKind::kDirectory) return {};
  return Invalid(field, value, "an existing directory with step{N}/rank{R}/dump.json below it");
}

Status SetGradLevel(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(const std::string level, OneOf(field, value, kGradLevels));
  const auto at = std::ranges::find(kGradLevels, level) - std::begin(kGradLevels);
  config.grad_probe.level = static_cast<GradLevel>(at);
  return {};
}

Status SetGradBounds(std::string_view field, const Json& value, Config& config) {
  const Json::List* const list = value.AsList();
  if (list == nullptr) return Invalid(field, value, "a list of ascending numbers");
  std::vector<GradProbeConfig::Bound> bounds;
  for (const Json& item : *list) {
    const std::optional<double> real = item.AsReal();
    if (!real) return Invalid(field, item, "every element to be a number");
    constexpr double kFirstBeyond = 9223372036854775808.0;  // 2^63
    const bool is_within = item.is_integer() ? item.AsInteger().has_value()
                                             : *real >= -kFirstBeyond && *real < kFirstBeyond;
    if (!is_within) return Invalid(field, item, "every element to be from -2^63 to 2^63 - 1");
    if (!bounds.empty() && *real <= bounds.back().value) {
      return Invalid(
          field, item,
          fmt::format("more than {}, the element before: bounds ascend", bounds.back().text));
    }
    bounds.push_back({*real, item.is_integer() ? item.Text() : PythonFloat(*real)});
  }
  config.grad_probe.bounds = std::move(bounds);
  return {};
}

Status SetGradStep(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(const std::string step, OneOf(field, value, kGradSteps));
  config.grad_probe.by_iteration = step == "iteration";
  return {};
}

namespace {

constexpr std::string_view kSliceParts[] = {"dim", "size", "begin", "end"};

// False: there is no such part.
bool PutSlicePart(std::string_view key, int64_t number, TensorSlice* slice) {
  if (key == "dim") {
    slice->dim = number;
  } else if (key == "size") {
    slice->size = number;
  } else if (key == "begin") {
    slice->begin = number;
  } else if (key == "end") {
    slice->end = number;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Status SetSlices(std::string_view field, const Json& value, Config& config) {
  const Json::List* const list = value.AsList();
  if (list == nullptr) return Invalid(field, value, "a list of objects { ... }");
  for (const Json& item : *list) {
    if (!item.is_object()) return Invalid(field, item, "every element to be an object { ... }");
    TensorSlice slice;
    bool is_empty = true;
    for (const json::Member& part : *item.AsMembers()) {
      if (part.value.is_null()) continue;
      const std::string at = fmt::format("{}.{}", field, part.key);
      const std::optional<int64_t> number = part.value.AsInteger();
      const bool is_length = part.key == "dim" || part.key == "size";
      if (!number) return Invalid(at, part.value, "an integer");
      if (is_length && *number < 0) return Invalid(at, part.value, "an integer of at least 0");
      if (!PutSlicePart(part.key, *number, &slice)) {
        config.warnings.push_back(UnknownKeyWarning(field, part.key, kSliceParts));
        continue;
      }
      is_empty = false;
    }
    if (!is_empty) config.slices.push_back(slice);
  }
  return {};
}

Status Accept(std::string_view, const Json&, Config&) { return {}; }

namespace {

constexpr Sections kTop = 1;
constexpr Sections kStatistics = 2;
constexpr Sections kTensor = 4;
constexpr Sections kOverflow = 8;
constexpr Sections kNan = 16;
constexpr Sections kPerturbed = 32;
constexpr auto kCheck = &Config::perturbation;  // where its options are
constexpr auto kOnline = &Config::online;
constexpr Sections kGradient = 64;
constexpr Sections kRecording = kStatistics | kTensor;
constexpr Sections kEveryTask = kRecording | kOverflow | kNan;

constexpr std::pair<Sections, std::string_view> kNames[] = {
    {kTop, ""},
    {kStatistics, "statistics"},
    {kTensor, "tensor"},
    {kOverflow, "overflow_check"},
    {kNan, "nan_check"},
    {kPerturbed, "free_benchmark"},
    {kGradient, "grad_probe"},
};

constexpr std::string_view kStaticGraphs = "for static graphs; accepted without effect";

// Columns: sections, key, setter, type, default, meaning. docs/reference/config.md is written from
// it by tools/make_config_reference.py.
constexpr Option kOptions[] = {
    {kTop, "rank", Assign<&Config::ranks, NumberList>, "list", "`[]` (all)",
     "ranks that record. Where neither a process group nor a launcher [gives a "
     "rank](../how-to/distributed.md) a non-empty list records nothing"},
    {kTop, "step", Assign<&Config::steps, NumberList>, "list", "`[]` (all)",
     "steps that record; no effect at level `debug`, with a warning"},
    {kTop, "task", SetTask, "string", "`statistics`",
     "`statistics`; `tensor`: also one file per tensor; `structure`: no values, only which call "
     "happened where; `overflow_check`, `nan_check`: [search for NaN and "
     "Inf](../how-to/overflow.md); `free_benchmark`: [calls run twice](perturbation-check.md); "
     "`grad_probe`: [gradients of every optimizer step](grad-probe.md). The other tasks of "
     "upstream "
     "are known but not built yet"},
    {kTop, "dump_path", Assign<&Config::dump_path, AsString>, "string", "required",
     "output directory; its absolute path may hold letters, digits and `_./-`, at most 4096 "
     "bytes, and must not be a link"},
    {kTop, "level", SetLevel, "string", "`L1`",
     "`L0` modules, `L1` APIs, `mix` both, `debug` what `PrecisionDebugger.save()` is given, `L2` "
     "[the operators below one call](../how-to/operators.md): `list` names it, `scope` is not "
     "allowed. Task `structure` uses `mix` unless the level is `L0`, with a warning. "
     "`overflow_check` takes `L0`, `L1`, `mix`; `nan_check` and `free_benchmark` take `L1`"},
    {kTop, "enable_dataloader", SetDataloader, "bool", "false", "each batch is a step; deprecated"},
    {kTop, "async_dump", Assign<&Config::async_dump, AsBool>, "bool", "false",
     "the files of a step are written in the background, see "
     "[storage](../how-to/storage.md#async_dump); no effect at level `debug`. With task `tensor` "
     "a non-empty `list` is required"},
    {kTop, "max_bytes", Assign<&Config::max_bytes, AsByteCount>, "integer", "0 (no limit)",
     "bytes of tensor files this process may write into `dump_path`; equal contents count once. "
     "See [storage](../how-to/storage.md)"},
    {kTop, "min_free_bytes", Assign<&Config::min_free_bytes, AsByteCount>, "integer",
     "1 GiB or 2 % of the file system, whichever is less",
     "tensor files stop when less would stay free; 0: never"},
    {kTop, "buffer_bytes", Assign<&Config::buffer_bytes, AsByteCount>, "integer", "536870912",
     "memory for tensors waiting to be written; when it is full the training waits for the disk"},
    {kTop, "dump_enable", Assign<&Config::dump_enable, AsBool>, "bool", "not given",
     "given: a switch that may be changed while the process runs, see below"},
    {kTop, "extra_info", Assign<&Config::extra_info, AsBool>, "bool", "true",
     "false: the call stack is not walked; `stack.json`, `construct.json` and `is_recompute` are "
     "left out"},
    {kTop, "precision", CheckPrecision, "string", "`low`",
     "`low` or `high`; accepted without effect: statistics are accumulated in double and rounded "
     "once to the tensor's dtype"},
    {kTop, "risk_level", SetRiskLevel, "string", "`ALL`",
     "`CORE` keeps matrix products, convolutions, normalisation, attention and communication; "
     "`FOCUS` drops APIs that only create, reshape, copy or index; `ALL` keeps everything. Levels "
     "`L1` and `mix`, when neither `scope` nor `list` is given; modules always pass"},
    {kTop, "custom_op_namespaces", Assign<&Config::custom_op_namespaces, AsStringList>,
     "list of strings", "`[]`",
     "namespaces of `torch.ops` whose operators are recorded as `{namespace}.{operator}`, however "
     "they were registered; `_C_ascend` always is. Levels `L1` and `mix`, PyTorch"},
    {kEveryTask, "scope", Assign<&Config::scope, AsPatterns>, "list of two strings", "`[]`",
     "complete names of the first and last entry of a range, or [patterns](#patterns)"},
    {kEveryTask, "list", Assign<&Config::list, AsPatterns>, "list of strings", "`[]`",
     "substrings of names, or [patterns](#patterns)"},
    {kEveryTask, "data_mode", SetDataMode, "list of strings", "`[\"all\"]`",
     "`all`, or out of `forward`, `backward`, `input`, `output`"},
    {kRecording, "summary_mode", SetSummaryMode, "string", "`statistics`",
     "`statistics`; `md5`: a CRC-32 of every tensor as well; `digest`: 128 bits "
     "that a device computes where the tensor is; `xor`: instead of statistics, the XOR of the "
     "64-bit words of the elements in their own dtype; all under the key `md5`. A list out of "
     "`md5`, `max`, `min`, `mean`, `l2norm` is accepted and records statistics"},
    {kStatistics, "tensor_list", Assign<&Config::tensor_list, AsPatterns>, "list of strings",
     "`[]`",
     "entries whose name contains one of the strings, or matches one of the [patterns](#patterns), "
     "get tensor files as with task `tensor`; no effect at level `debug`"},
    {kTensor, "bench_path", SetBenchPath, "string", "none",
     "an earlier recording with checksums; needs `summary_mode` `md5`. [Only tensors of calls that "
     "differ from it are "
     "stored](../how-to/overflow.md#the-first-call-that-computes-something-else-bench_path)"},
    {kTensor, "diff_nums", Assign<&Config::hit_limit, AsLimit>, "integer", "1",
     "with `bench_path`: recording ends after that many differing calls; -1: never. 0 and other "
     "values are errors"},
    {kRecording, "slice", SetSlices, "list of objects", "`[]`",
     "which part of every tensor is recorded: `dim` (0), `begin` (0) and `end` (the end) as in "
     "Python, and `size`: only where the dimension has that length. Later elements for the same "
     "dimension win. Levels `L0`, `L1` and `mix`; at others no effect, with a warning"},
    {kRecording, "request_id", Assign<&Config::request_id, AsString>, "string", "none (all)",
     "the one request that is recorded of batches that hold [the tokens of "
     "several](../how-to/inference.md), which `start(scheduled_tokens=...)` tells. The same levels"},
    {kTensor, "file_format", CheckFileFormat, "string", "`npy`",
     "checked; PyTorch tensors are `.pt` files whatever it says"},
    {kTensor, "online_run_ut", AssignIn<kOnline, &OnlineConfig::is_on, AsBool>, "bool", "false",
     "true: no tensor files are written; each call is sent to a machine that [checks it while the "
     "training runs](../how-to/online-precheck.md). Level `L1` or `mix`, PyTorch"},
    {kTensor, "nfs_path", AssignIn<kOnline, &OnlineConfig::directory, AsString>, "string", "`\"\"`",
     "with `online_run_ut`: a directory that both machines have; then `host` and `port` are not "
     "used"},
    {kTensor, "host", AssignIn<kOnline, &OnlineConfig::host, AsString>, "string", "none",
     "with `online_run_ut`: IPv4 address of the machine that checks"},
    {kTensor, "port", SetOnlinePort, "integer", "-1", "its port, 1 to 65535"},
    {kTensor, "tls_path", AssignIn<kOnline, &OnlineConfig::tls_path, AsString>, "string", "`./`",
     "with `online_run_ut`: directory with `client.key`, `client.crt` and `ca.crt`; `\"\"`: plain "
     "TCP, with a warning"},
    {kTensor, "online_run_ut_recompute", AssignIn<kOnline, &OnlineConfig::skips_backward, AsBool>,
     "bool", "false", "with `online_run_ut`: true sends no backward"},
    {kTensor, "online_block", AssignIn<kOnline, &OnlineConfig::may_block, AsBool>, "bool", "false",
     "with `online_run_ut`: true lets the training wait while the machine that checks takes "
     "nothing "
     "more; false drops and counts. Where that machine is gone nothing waits"},
    {kStatistics, "device", Accept, "any", "none", kStaticGraphs},
    {kStatistics, "precision", CheckPrecision, "string", "`low`", kStaticGraphs},
    {kOverflow, "overflow_nums", Assign<&Config::hit_limit, AsLimit>, "integer", "1",
     "recording ends after that many hits of the process; -1: never. 0, other negative numbers and "
     "other types are errors"},
    {kOverflow, "count", SetCount, "string", "`origin`",
     "which hits count towards `overflow_nums`. `origin`: those whose inputs are finite, or not "
     "known; at most 100 others are recorded. `all`: every hit, as upstream"},
    {kOverflow, "saturated", Assign<&Config::finds_saturated, AsBool>, "bool", "false",
     "also record calls with a tensor whose largest magnitude is the largest finite number of its "
     "type, as devices that saturate leave it; they never count towards `overflow_nums`"},
    {kOverflow, "mode", SetOverflowMode, "string", "`record`",
     "`trace`: nothing is recorded, and [the last module calls before NaN or "
     "Inf](overflow.md#overflowtracer) are printed and written; PyTorch. The following keys belong "
     "to it"},
    {kOverflow, "max_frames_to_save", SetMaxFrames, "integer", "21", "frames kept"},
    {kOverflow, "trace_batch_nums", Assign<&Config::traced_batches, NumberList>, "list", "`[]`",
     "forward calls of the model, from 0, of which every frame is printed"},
    {kOverflow, "abort_after_batch_num", SetAbortAfter, "integer", "not given",
     "the training ends behind this forward call"},
    {kOverflow, "raise_on_overflow", SetRaises, "bool", "not given",
     "whether NaN or Inf ends the training; null: unless there are other ranks"},
    {kOverflow, "check_mode", CheckMode, "string", "`all`",
     "`all`, `aicore` or `atomic`; checked, for static graphs only"},
    {kNan, "tensor_list", Assign<&Config::tensor_list, AsPatterns>, "list of strings", "`[]`",
     "hits whose name contains one of the strings, or matches one of the [patterns](#patterns), "
     "get statistics and tensor files"},
    {kPerturbed, "scope", AssignIn<kCheck, &PerturbationConfig::scope, AsPatterns>,
     "list of strings", "`[]`",
     "complete names of the calls to check, or [patterns](#patterns); not together with `list`"},
    {kPerturbed, "list", AssignIn<kCheck, &PerturbationConfig::list, AsPatterns>, "list of strings",
     "`[]` (all)",
     "substrings of names, or [patterns](#patterns); with MindSpore also complete names such as "
     "`mindspore.mint.div`, and patterns of these"},
    {kPerturbed, "fuzz_device", SetFuzzDevice, "string", "`npu`",
     "`npu`: the second run is on the same device; `gpu`, `cuda` and `device` mean the same. "
     "`cpu`: on the CPU, with `to_cpu` and only with it"},
    {kPerturbed, "pert_mode", SetPerturbations, "string or list of strings", "`improve_precision`",
     "`improve_precision`, `add_noise`, `bit_noise`, `change_value`, `no_change`, `to_cpu`; of a "
     "list, each call is run with every one"},
    {kPerturbed, "handler_type", SetHandler, "string", "`check`",
     "`check` reports; `fix` returns the output of the second run, with `improve_precision` or "
     "`to_cpu`, `forward` and no preheat"},
    {kPerturbed, "fuzz_level", SetFuzzLevel, "string", "`L1`", "nothing else is there"},
    {kPerturbed, "fuzz_stage", SetFuzzStage, "string", "`forward`",
     "`forward`: outputs are compared; `backward`: gradients"},
    {kPerturbed, "if_preheat", AssignIn<kCheck, &PerturbationConfig::has_preheat, AsBool>, "bool",
     "false", "thresholds are adapted by comparing some calls with the CPU; PyTorch"},
    {kPerturbed, "preheat_step", AssignIn<kCheck, &PerturbationConfig::preheat_step, AsPositive>,
     "integer", "15", "steps of that, at least 1"},
    {kPerturbed, "max_sample", AssignIn<kCheck, &PerturbationConfig::max_sample, AsPositive>,
     "integer", "20", "calls of one API compared with the CPU in one step, at most"},
    {kPerturbed, "noise", SetNoise, "string", "`absolute`",
     "what `add_noise` adds: `absolute`, a constant; `ulp`: the next number up or down, by chance"},
    {kPerturbed, "nan_mismatch", AssignIn<kCheck, &PerturbationConfig::sees_non_finite, AsBool>,
     "bool", "true", "false: NaN and Inf count as no difference, as upstream counts them"},
    {kPerturbed, "threshold_file", SetThresholdFile, "string", "none",
     "a `free_benchmark_threshold.json` that an earlier preheat wrote"},
    {kPerturbed, "cotangent", SetCotangent, "string", "not given",
     "`ones` or `real`: accepted; PyTorch takes the gradient that arrives, MindSpore ones"},
    {kGradient, "grad_level", SetGradLevel, "string", "`L1`",
     "`L0`: maximum, minimum, norm and MD5 of each gradient; `L1`: without the MD5, and the sign "
     "of "
     "every element; `L2`: also which share of the elements lies between `bounds`"},
    {kGradient, "param_list",
     AssignIn<&Config::grad_probe, &GradProbeConfig::param_list, AsStringList>, "list of strings",
     "`[]` (all)", "exact names of parameters; one that the model does not have is told"},
    {kGradient, "bounds", SetGradBounds, "list of numbers", "`[-1, 0, 1]`",
     "ascending, each once, within 64-bit integers; compared as float32"},
    {kGradient, "step_by", SetGradStep, "string", "`optimizer`",
     "what a step is: a call of `step()` of any optimizer, or an `iteration`, in which each "
     "optimizer steps once"},
    {kGradient, "packed", AssignIn<&Config::grad_probe, &GradProbeConfig::packed, AsBool>, "bool",
     "false",
     "signs as one file per step with a bit per element instead of `.npy` files with a byte each; "
     "upstream's comparison does not read it"},
};

}  // namespace

std::span<const Option> Options() { return kOptions; }

Sections SectionNamed(std::string_view name) {
  for (const auto& [section, section_name] : kNames) {
    if (section_name == name) return section;
  }
  return 0;
}

std::vector<std::string_view> NamesOf(Sections sections) {
  std::vector<std::string_view> names;
  for (const auto& [section, name] : kNames) {
    if ((sections & section) != 0) names.push_back(name);
  }
  return names;
}

void WarnOfUnknownKeys(std::string_view section, const Json& object,
                       std::vector<std::string>& warnings) {
  std::vector<std::string_view> known;
  const Sections bit = SectionNamed(section);
  for (const Option& option : kOptions) {
    if ((option.sections & bit) != 0) known.push_back(option.name);
  }
  if (section.empty()) known.insert(known.end(), TaskWords().begin(), TaskWords().end());
  for (const std::string_view key : object.Keys()) {
    if (std::ranges::count(known, key) > 0) continue;
    warnings.push_back(UnknownKeyWarning(section, key, known));
  }
}

}  // namespace plumbline::settings
