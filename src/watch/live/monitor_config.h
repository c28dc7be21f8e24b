// The configuration file of a training monitor (docs/reference/monitor.md), checked as a whole.

#ifndef PLUMBLINE_WATCH_LIVE_MONITOR_CONFIG_H_
#define PLUMBLINE_WATCH_LIVE_MONITOR_CONFIG_H_

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "formats/table/monitor_kinds.h"
#include "plumbline/result.h"
#include "watch/live/tensor_values.h"
#include "watch/rules/rule.h"

namespace plumbline::watch {

// Which element of what a module takes or gives is watched.
struct ElementSpec {
  enum class Form : uint8_t {
    kFirst,  // the tensor, or the first of a tuple
    kWhole,  // must be a tensor
    kTuple,  // element `index` of a tuple of `length`
  };
  Form form = Form::kFirst;
  int64_t length = 0, index = 0;
};

struct Target {
  std::string name;
  ElementSpec input, output, input_grad, output_grad;
};

struct AlertRule {
  enum class Kind : uint8_t { kTurbulence, kNan };
  Kind kind = Kind::kTurbulence;
  std::optional<double> threshold;  // of kTurbulence always
};

// What the configuration of a TrainerMonitorV2 has beside that of a TrainerMon.
struct SecondForm {
  std::string framework = "pytorch";  // or "mindspore"
  std::string output = "./";
  std::optional<bool> follows_optimizer;     // nothing: if there is one
  int64_t micro_batches = 0;                 // of a step; 0: not said
  std::vector<int64_t> communication_ranks;  // empty: all
  std::array<std::vector<Op>, kMonitorPartNames.size()> ops;
};

struct MonitorConfig {
  enum class Format : uint8_t { kCsv, kTensorBoard, kSqlite, kApi };
  // By Format.
  static constexpr std::array<std::string_view, 4> kFormats = {"csv", "tensorboard", "sqlite",
                                                               "api"};
  // How names of parameters and modules are shortened.
  enum class Squash : uint8_t { kNone, k122, kLatest };

  // The profile of later releases. Most of it are defaults of what follows; the rest asks here: the
  // history of alerts, module structures of every rank, a dynamic start at once.
  bool is_latest = false;
  std::vector<Target> targets;       // empty: everything
  bool watches_all_modules = false;  // all_xy
  bool activations = false, forward_only = false, backward_only = false;
  bool gradients = false, moments = false, parameters = false, directions = false;
  bool updated_parameters = false;  // param_origin and param_updated in place of param
  bool adam_updates = false;        // ur_distribution; with kTensorBoard alone
  bool all_elements = false;        // every tensor of a module's inputs and outputs
  bool micro_batch_gradients = false;
  bool stack_info = false, print_struct = false;
  struct Communication {
    bool enable = false, before = false, log_only = false;
    std::vector<std::string> code_lines;  // regular expressions
  };
  Communication communication;
  struct Features {  // of single layers (watch/live/layer_features.h)
    bool enable = false, is_batch_first = false;
    std::map<MonitorKind, std::vector<std::string>> targets;  // names of modules
  };
  Features features;
  std::vector<AlertRule> alerts;
  bool dumps_alerts = false;
  std::vector<Op> ops;
  double eps = 1e-8;
  std::optional<int> digits = 6;  // behind the point; nothing: significant digits
  Format format = Format::kCsv;
  std::vector<int64_t> ranks;  // empty: all
  int64_t start_step = 0, step_interval = 1, collect_times = 100'000'000, steps_per_file = 1;
  int64_t stop_step = std::numeric_limits<int64_t>::max();  // the first one that is not collected
  bool moments_after = false;                               // moments are those behind the step
  std::string append_from, append_to;                       // times; empty: a new directory
  Squash squash = Squash::k122;
  bool dynamic_on = false;
  int64_t apply_at_step = 0;         // a change takes effect with this step
  std::optional<SecondForm> second;  // of a TrainerMonitorV2
  Rules watch;
  std::vector<std::string> warnings;
};

// From the text of a file; `path` is used in messages. kInvalidArgument with one line for every
// fault: where, what was given, what was expected.
Result<MonitorConfig> ParseMonitorConfig(std::string_view text, const std::string& path);
Result<MonitorConfig> ReadMonitorConfig(const std::string& path);

// The same for a TrainerMonitorV2. As upstream, a number or a list that is wrong has its default,
// with a warning; kInvalidArgument: no JSON object, or another framework or format. `framework`, if
// not empty, counts in place of the file's.
Result<MonitorConfig> ParseSecondForm(std::string_view text, const std::string& path,
                                      std::string_view framework);
Result<MonitorConfig> ReadSecondForm(const std::string& path, std::string_view framework);

// Of both: the object in the text of a file, and the error that tells its faults, and behind them
// what would have been warned of.
Result<json::Value> ParseConfigObject(std::string_view text, const std::string& path);
Error FaultsOf(const std::string& path, std::vector<std::string> faults,
               const std::vector<std::string>& warnings);

// Which features are asked for of a module of that stage with any of these names. An empty list
// asks for those of every matrix (kLinearFeature), or for none.
std::vector<MonitorKind> FeaturesOf(const MonitorConfig& config, int64_t stage,
                                    std::span<const std::string> names);

// The shortened name. The first rule that is found in it counts:
//   k122     behind "layer(s)." or "embedding(s).", from "final", "output" or "norm" on
//   kLatest  from a name part that begins with one of these words on
std::string SquashName(std::string_view name, MonitorConfig::Squash squash);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_MONITOR_CONFIG_H_
