// What the user asked for: config.json and the constructor's arguments, checked and with defaults.

#ifndef PLUMBLINE_CONFIG_CONFIG_H_
#define PLUMBLINE_CONFIG_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/perturbation.h"
#include "plumbline/result.h"

namespace plumbline {

// Which paths are accepted for the configuration file and for output (collection 2.1 and 2.6).

// The configuration file: a regular file, not a link, named *.json, of at most 1 GiB, whose real
// path holds only [a-zA-Z0-9_.:/-]. Ownership and permissions only add to `warnings`. kNotFound,
// kInvalidArgument.
Status CheckConfigFile(const std::string& path, std::vector<std::string>& warnings);

// An output path: its absolute form is at most 4096 bytes out of [a-zA-Z0-9_./-] and is, if it
// exists, a directory and not a link. kInvalidArgument, also when empty.
Status CheckDumpPath(const std::string& dump_path);

// The configuration itself.

enum class Task : uint8_t {
  kStatistics,
  kTensor,
  kStructure,
  kOverflowCheck,
  kNanCheck,
  kFreeBenchmark,  // no entries: calls are run a second time (config/perturbation.h)
  kGradProbe
};
// kL2: the operators below one call of an API.
enum class Level : uint8_t { kL0, kL1, kL2, kMix, kDebug };
enum class SummaryMode : uint8_t { kStatistics, kMd5, kXor, kDigest };
// Which APIs are recorded when neither scope nor list says it (config/risk_levels.h).
enum class RiskLevel : uint8_t { kAll, kFocus, kCore };

std::string_view TaskName(Task task);
std::string_view LevelName(Level level);

// Which parts of an entry are recorded (`data_mode`).
struct DataMode {
  bool forward = true;
  bool backward = true;
  bool input = true;
  bool output = true;

  friend bool operator==(const DataMode&, const DataMode&) = default;
};

// What task grad_probe records of a gradient: kL0 statistics and MD5, kL1 statistics and signs, kL2
// also the distribution.
enum class GradLevel : uint8_t { kL0, kL1, kL2 };

// The section grad_probe.
struct GradProbeConfig {
  struct Bound {
    double value = 0;
    std::string text;  // as Python spells it
    friend bool operator==(const Bound&, const Bound&) = default;
  };
  GradLevel level = GradLevel::kL1;
  std::vector<std::string> param_list;                     // names of parameters; empty: all
  std::vector<Bound> bounds = {{-1, "-1"}, {0, "0"}, {1, "1"}};  // ascending
  bool by_iteration = false;  // a step is an iteration, in which each optimizer steps once
  bool packed = false;        // signs in one file per step, a bit each

  friend bool operator==(const GradProbeConfig&, const GradProbeConfig&) = default;
};

// Of the online pre-check: what is recorded is sent to another machine and not written to disk.
struct OnlineConfig {
  bool is_on = false;
  std::string directory;  // nfs_path; not empty: host and port are not used
  std::string host;
  int64_t port = -1;
  std::string tls_path = "./";
  bool skips_backward = false;  // online_run_ut_recompute
  bool may_block = false;

  friend bool operator==(const OnlineConfig&, const OnlineConfig&) = default;
};

// One slice of every tensor, taken before it is read; indices count as in Python.
struct TensorSlice {
  int64_t dim = 0;
  std::optional<int64_t> size = std::nullopt;  // only where the dimension has this length
  int64_t begin = 0;
  std::optional<int64_t> end = std::nullopt;  // nothing: to the end

  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

struct Config {
  Task task = Task::kStatistics;
  Level level = Level::kL1;
  std::string dump_path;
  std::vector<int64_t> ranks;  // ascending, unique; empty: all
  std::vector<int64_t> steps;  // the same
  bool enable_dataloader = false;
  bool async_dump = false;
  // Limits of tensor files (store/tensor_writer.h: TensorLimits).
  uint64_t max_bytes = 0;
  std::optional<uint64_t> min_free_bytes;
  uint64_t buffer_bytes = uint64_t{512} << 20;
  std::optional<bool> dump_enable;  // given: the file is read again when it changes
  bool extra_info = true;           // stack.json and construct.json
  RiskLevel risk_level = RiskLevel::kAll;
  std::vector<std::string> scope;  // empty or two names
  std::vector<std::string> list;
  // statistics: names whose tensors are stored as well; nan_check: the same for hits.
  std::vector<std::string> tensor_list;
  std::vector<std::string> custom_op_namespaces;  // of the framework's registry of operators
  DataMode data_mode;
  SummaryMode summary_mode = SummaryMode::kStatistics;
  // Entries to store (hits of overflow_check, differences to bench_path), then collection ends for
  // good; nothing: never.
  std::optional<int64_t> hit_limit = 1;
  bool counts_origins_only = true;  // overflow_check: hits with non-finite inputs do not count
  bool finds_saturated = false;     // overflow_check: also tensors that reach the end of their type
  // overflow_check, mode "trace": the frames of the last module calls in place of a recording.
  bool traces_frames = false;
  int64_t max_frames = 21;
  std::vector<int64_t> traced_batches = {};
  std::optional<int64_t> abort_after_batch = std::nullopt;
  std::optional<bool> raises_on_overflow = std::nullopt;  // nothing: unless there are other ranks
  std::string bench_path;  // an earlier dump with checksums; not empty: only tensors of entries
                           // that differ from it are stored
  PerturbationConfig perturbation;  // of task free_benchmark
  GradProbeConfig grad_probe;
  OnlineConfig online;
  // Which part of each tensor is recorded (capture/tensor_cuts.h).
  std::vector<TensorSlice> slices = {};
  std::string request_id = {};  // empty: every request
  // Sentences to log once: unknown keys with the closest known one, settings without effect.
  std::vector<std::string> warnings;

  friend bool operator==(const Config&, const Config&) = default;
};

// The constructor's arguments; they win over the file. Nullopt: not given.
struct ConfigOverrides {
  std::optional<std::string> task = std::nullopt;
  std::optional<std::string> dump_path = std::nullopt;
  std::optional<std::string> level = std::nullopt;
  std::optional<std::string> step_json =
      std::nullopt;  // JSON text of the list, so that one parser checks both
};

// From the text of config.json; `path` is used in messages. kInvalidArgument names field, value
// and what was expected; kUnsupported for valid tasks and levels that are not built yet.
Result<Config> ParseConfig(std::string_view text, const std::string& path,
                           const ConfigOverrides& overrides);
// From a file, with the path rules of collection 2.1; without a path from the defaults alone.
Result<Config> LoadConfig(const std::optional<std::string>& path, const ConfigOverrides& overrides);

// Whether the task is `task`, the constructor's before that of the file. Checks nothing: false where
// LoadConfig() fails before it knows.
bool AsksForTask(Task task, const std::optional<std::string>& path,
                 const ConfigOverrides& overrides);

// Value of `rank` or `step`: a JSON list of ints 0 to 1000000 and "a-b" ranges; null is [].
Result<std::vector<int64_t>> ParseNumberList(std::string_view field, std::string_view json_text);

}  // namespace plumbline

namespace plumbline::settings {

// Settings that only make sense together.

// Checks settings against each other after all of them are known, and settles what one of them
// leaves without effect, with a warning. The error names the field to change.
Status Reconcile(Config& config);

}  // namespace plumbline::settings

#endif  // PLUMBLINE_CONFIG_CONFIG_H_
