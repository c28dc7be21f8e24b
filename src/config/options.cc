#include "config/options.h"

#include <algorithm>
#include <utility>

#include "config/nearest_key.h"

namespace plumbline::settings {
namespace {

constexpr Sections kTop = 1;
constexpr Sections kStatistics = 2;
constexpr Sections kTensor = 4;
constexpr Sections kOverflow = 8;
constexpr Sections kNan = 16;
constexpr Sections kRecording = kStatistics | kTensor;
constexpr Sections kEveryTask = kRecording | kOverflow | kNan;

constexpr std::pair<Sections, std::string_view> kNames[] = {
    {kTop, ""},          {kStatistics, "statistics"},
    {kTensor, "tensor"}, {kOverflow, "overflow_check"},
    {kNan, "nan_check"},
};

constexpr std::string_view kNoEffectYet =
    "known from later releases; no effect yet, with a warning";
constexpr std::string_view kOfOnlineCheck = "belong to `online_run_ut`; accepted without effect";
constexpr std::string_view kStaticGraphs = "for static graphs; accepted without effect";

// Columns: sections, key, setter, type, default, meaning. docs/reference/config.md is written from
// it by tools/make_config_reference.py.
constexpr Option kOptions[] = {
    {kTop, "rank", Assign<&Config::ranks, NumberList>, "list", "`[]` (all)",
     "ranks that record. Without a process group the rank is unknown and a non-empty list records "
     "nothing"},
    {kTop, "step", Assign<&Config::steps, NumberList>, "list", "`[]` (all)",
     "steps that record; no effect at level `debug`, with a warning"},
    {kTop, "task", SetTask, "string", "`statistics`",
     "`statistics`; `tensor`: also one file per tensor; `structure`: no values, only which call "
     "happened where; `overflow_check`, `nan_check`: [search for NaN and "
     "Inf](../how-to/overflow.md). The other tasks of upstream are known but not built yet"},
    {kTop, "dump_path", Assign<&Config::dump_path, AsString>, "string", "required",
     "output directory; its absolute path may hold letters, digits and `_./-`, at most 4096 "
     "bytes, and must not be a link"},
    {kTop, "level", SetLevel, "string", "`L1`",
     "`L0` modules, `L1` APIs, `mix` both, `debug` what `PrecisionDebugger.save()` is given, `L2` "
     "[the operators below one call](../how-to/operators.md): `list` names it, `scope` is not "
     "allowed. Task `structure` uses `mix` unless the level is `L0`, with a warning. "
     "`overflow_check` takes `L0`, `L1`, `mix`; `nan_check` takes `L1`"},
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
    {kTop, "custom_op_namespaces", IgnoreStringList, "list of strings", "`[]`", kNoEffectYet},
    {kEveryTask, "scope", Assign<&Config::scope, AsStringList>, "list of two strings", "`[]`",
     "complete names of the first and last entry of a range"},
    {kEveryTask, "list", Assign<&Config::list, AsStringList>, "list of strings", "`[]`",
     "substrings of names"},
    {kEveryTask, "data_mode", SetDataMode, "list of strings", "`[\"all\"]`",
     "`all`, or out of `forward`, `backward`, `input`, `output`"},
    {kRecording, "summary_mode", SetSummaryMode, "string", "`statistics`",
     "`statistics`; `md5`: a CRC-32 of every tensor as well; `xor`: instead of statistics, the XOR "
     "of the 64-bit words of the elements in their own dtype, under the key `md5`. A list out of "
     "`md5`, `max`, `min`, `mean`, `l2norm` is accepted and records statistics"},
    {kStatistics, "tensor_list", Assign<&Config::tensor_list, AsStringList>, "list of strings",
     "`[]`",
     "entries whose name contains one of the strings get tensor files as with task `tensor`; no "
     "effect at level `debug`"},
    {kTensor, "bench_path", SetBenchPath, "string", "none",
     "an earlier recording with checksums; needs `summary_mode` `md5`. [Only tensors of calls that "
     "differ from it are "
     "stored](../how-to/overflow.md#the-first-call-that-computes-something-else-bench_path)"},
    {kTensor, "diff_nums", Assign<&Config::hit_limit, AsLimit>, "integer", "1",
     "with `bench_path`: recording ends after that many differing calls; -1: never. 0 and other "
     "values are errors"},
    {kRecording, "slice", Ignore, "any", "none", kNoEffectYet},
    {kRecording, "request_id", Ignore, "any", "none", kNoEffectYet},
    {kTensor, "file_format", CheckFileFormat, "string", "`npy`",
     "checked; PyTorch tensors are `.pt` files whatever it says"},
    {kTensor, "online_run_ut", CheckOnline, "bool", "false", "`true` is not built yet"},
    {kTensor, "nfs_path", Accept, "any", "none", kOfOnlineCheck},
    {kTensor, "host", Accept, "any", "none", kOfOnlineCheck},
    {kTensor, "port", Accept, "any", "none", kOfOnlineCheck},
    {kTensor, "tls_path", Accept, "any", "none", kOfOnlineCheck},
    {kTensor, "online_run_ut_recompute", Accept, "any", "none", kOfOnlineCheck},
    {kStatistics, "device", Accept, "any", "none", kStaticGraphs},
    {kStatistics, "precision", CheckPrecision, "string", "`low`", kStaticGraphs},
    {kOverflow, "overflow_nums", Assign<&Config::hit_limit, AsLimit>, "integer", "1",
     "recording ends after that many hits of the process; -1: never. 0, other negative numbers and "
     "other types are errors"},
    {kOverflow, "count", SetCount, "string", "`all`",
     "`origin`: only hits whose inputs are finite, or not known, count towards `overflow_nums`"},
    {kOverflow, "check_mode", CheckMode, "string", "`all`",
     "`all`, `aicore` or `atomic`; checked, for static graphs only"},
    {kNan, "tensor_list", Assign<&Config::tensor_list, AsStringList>, "list of strings", "`[]`",
     "hits whose name contains one of the strings get statistics and tensor files"},
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
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::count(known, key) > 0) continue;
    warnings.push_back(UnknownKeyWarning(section, key, known));
  }
}

}  // namespace plumbline::settings
