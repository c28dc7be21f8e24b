// The configuration of a TrainerMonitorV2: one object for each part under "monitors".

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "config/options.h"
#include "watch/live/monitor_config.h"

namespace plumbline::watch {
namespace {

constexpr int64_t kMostStepsPerFile = 1'000'000;
constexpr int64_t kMostTimes = 100'000'000;
constexpr std::array kDefaultOps = {Op::kMin, Op::kMax, Op::kMean, Op::kNorm, Op::kNans};

constexpr std::array<std::string_view, 12> kTopKeys = {"framework",
                                                       "output_dir",
                                                       "format",
                                                       "rank",
                                                       "start_step",
                                                       "stop_step",
                                                       "step_interval",
                                                       "collect_times",
                                                       "step_count_per_record",
                                                       "patch_optimizer_step",
                                                       "async_write",
                                                       "monitors"};

using Keys = std::span<const std::string_view>;
constexpr std::array<std::string_view, 4> kModuleKeys = {"enabled", "ops", "eps", "targets"};
constexpr std::array<std::string_view, 6> kGradientKeys = {
    "enabled", "ops", "eps", "monitor_mbs_grad", "micro_batch_number", "grad_acc_steps"};
constexpr std::array<std::string_view, 4> kOptimizerKeys = {"enabled", "ops", "eps",
                                                            "mv_distribution"};
constexpr std::array<std::string_view, 4> kParameterKeys = {"enabled", "ops", "eps",
                                                            "param_distribution"};
constexpr std::array<std::string_view, 8> kOtherKeys = {
    "enabled",     "ops",         "eps",          "cc_codeline",
    "cc_log_only", "cc_pre_hook", "module_ranks", "cc_distribution"};
constexpr std::array<Keys, kMonitorPartNames.size()> kPartKeys = {
    kModuleKeys, kGradientKeys, kOptimizerKeys, kParameterKeys, kOtherKeys};

std::optional<std::string> FrameworkNamed(std::string_view name) {
  std::string word;
  for (const char c : name) word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view one : {"pytorch", "pt", "torch"}) {
    if (word == one) return "pytorch";
  }
  for (const std::string_view one : {"mindspore", "ms"}) {
    if (word == one) return "mindspore";
  }
  return std::nullopt;
}

class SecondFormReader {
 public:
  SecondFormReader(const json::Value& root, MonitorConfig* config)
      : root_(root), config_(*config), second_(config->second.emplace()) {}

  // The faults, one line each.
  std::vector<std::string> Read(std::string_view framework) {
    WarnOfUnknown("", root_, kTopKeys);
    ReadFramework(framework);
    ReadPlace();
    ReadSteps();
    config_.squash = MonitorConfig::Squash::kNone;
    for (std::vector<Op>& ops : second_.ops) ops.assign(kDefaultOps.begin(), kDefaultOps.end());
    ReadParts();
    return std::move(faults_);
  }

 private:
  void WarnOfUnknown(std::string_view section, const json::Value& object, Keys known) {
    for (const std::string_view key : object.Keys()) {
      if (std::ranges::find(known, key) != known.end()) continue;
      config_.warnings.push_back(settings::UnknownKeyWarning(section, key, known));
    }
  }

  // Upstream goes on with the default, and so does every configuration that it took.
  void Replace(std::string_view where, const json::Value& value, std::string_view expected,
               std::string_view taken) {
    config_.warnings.push_back(
        fmt::format("{}: is {} (expected {}); {}", where, value.Text(), expected, taken));
  }

  void Truth(const std::string& section, const json::Value& object, std::string_view key,
             bool* out) {
    const json::Value* value = object.Find(key);
    if (value == nullptr) return;
    if (value->AsBool() != nullptr) {
      *out = *value->AsBool();
    } else {
      Replace(section + std::string(key), *value, "true or false",
              fmt::format("{} is taken", *out));
    }
  }

  void Natural(const std::string& section, const json::Value& object, std::string_view key,
               std::pair<int64_t, int64_t> range, int64_t* out) {
    const json::Value* value = object.Find(key);
    if (value == nullptr) return;
    const std::optional<int64_t> number = value->AsInteger();
    if (number && *number >= range.first && *number <= range.second) {
      *out = *number;
    } else {
      Replace(section + std::string(key), *value,
              fmt::format("an integer from {} to {}", range.first, range.second),
              fmt::format("{} is taken", *out));
    }
  }

  void ReadFramework(std::string_view given) {
    const json::Value* value = root_.Find("framework");
    std::string name(given);
    if (name.empty()) {
      if (value == nullptr) return;
      name = value->AsText() == nullptr ? value->Text() : *value->AsText();
    }
    const auto known = FrameworkNamed(name);
    if (known) {
      second_.framework = *known;
    } else {
      faults_.push_back(
          fmt::format("framework: is \"{}\" (expected \"pytorch\" or \"mindspore\")", name));
    }
  }

  void ReadPlace() {
    const json::Value* output = root_.Find("output_dir");
    if (output != nullptr && (output->AsText() == nullptr || output->AsText()->empty())) {
      faults_.push_back(fmt::format("output_dir: is {} (expected a directory)", output->Text()));
    } else if (output != nullptr) {
      second_.output = *output->AsText();
    }
    const json::Value* format = root_.Find("format");
    if (format != nullptr && (format->AsText() == nullptr || *format->AsText() != "csv")) {
      faults_.push_back(fmt::format("format: is {} (expected \"csv\")", format->Text()));
    }
    ReadRanks("rank", root_.Find("rank"), &config_.ranks);
    bool is_async = false;
    Truth("", root_, "async_write", &is_async);  // files are always written beside the training
  }

  void ReadRanks(std::string_view where, const json::Value* value, std::vector<int64_t>* ranks) {
    if (value == nullptr) return;
    json::Value::List items;
    if (value->AsInteger()) items.push_back(*value);
    if (value->AsList() != nullptr) items = *value->AsList();
    std::vector<int64_t> found;
    for (const json::Value& item : items) {
      const auto rank = item.AsInteger();
      if (rank && *rank >= 0) found.push_back(*rank);
    }
    const bool is_list = value->AsList() != nullptr || value->AsInteger();
    if (is_list && found.size() == items.size()) {
      *ranks = std::move(found);
    } else {
      Replace(where, *value, "a rank or a list such as [0, 1]", "all ranks are watched");
    }
  }

  void ReadSteps() {
    Natural("", root_, "start_step", {0, kMostTimes}, &config_.start_step);
    Natural("", root_, "step_interval", {1, kMostTimes}, &config_.step_interval);
    Natural("", root_, "collect_times", {1, kMostTimes}, &config_.collect_times);
    Natural("", root_, "step_count_per_record", {1, kMostStepsPerFile}, &config_.steps_per_file);
    int64_t stop = kMostTimes;
    Natural("", root_, "stop_step", {config_.start_step, kMostTimes}, &stop);
    if (root_.Find("stop_step") != nullptr) config_.stop_step = stop;
    if (root_.Find("patch_optimizer_step") == nullptr) return;
    bool follows = false;
    Truth("", root_, "patch_optimizer_step", &follows);
    second_.follows_optimizer = follows;
  }

  void ReadParts() {
    const json::Value* parts = root_.Find("monitors");
    if (parts != nullptr && !parts->is_object()) {
      Replace("monitors", *parts, R"(an object such as {"module": {}})", "nothing is watched");
      return;
    }
    bool watches = false;
    for (const std::string_view name :
         parts == nullptr ? std::vector<std::string_view>() : parts->Keys()) {
      const auto known = std::ranges::find(kMonitorPartNames, name);
      if (known == kMonitorPartNames.end()) {
        config_.warnings.push_back(
            settings::UnknownKeyWarning("monitors", name, kMonitorPartNames));
        continue;
      }
      const auto part = static_cast<MonitorPart>(known - kMonitorPartNames.begin());
      watches = ReadPart(part, *parts->Find(name)) || watches;
    }
    if (!watches) {
      config_.warnings.push_back(
          fmt::format("monitors: none is enabled, nothing is watched (expected one of {}, such as "
                      "{{\"module\": {{}}}})",
                      fmt::join(kMonitorPartNames, ", ")));
    }
  }

  // Whether it is to be watched.
  bool ReadPart(MonitorPart part, const json::Value& object) {
    const auto index = static_cast<size_t>(part);
    const std::string section = fmt::format("monitors.{}", kMonitorPartNames[index]);
    if (!object.is_object()) {
      Replace(section, object, "an object", "it is not watched");
      return false;
    }
    bool enabled = part == MonitorPart::kModule;
    Truth(section + ".", object, "enabled", &enabled);
    if (!enabled) return false;
    WarnOfUnknown(section, object, kPartKeys[index]);
    ReadOps(section + ".ops", object.Find("ops"), &second_.ops[index]);
    ReadOwn(part, section + ".", object);
    return true;
  }

  void ReadOps(const std::string& where, const json::Value* value, std::vector<Op>* ops) {
    if (value == nullptr || value->is_null()) return;
    json::Value::List items = {*value};  // a single name is taken too
    if (value->AsList() != nullptr) items = *value->AsList();
    std::vector<Op> found;
    for (const json::Value& item : items) {
      const auto op = item.AsText() == nullptr ? std::nullopt : OpNamed(*item.AsText());
      if (!op || std::ranges::find(kDefaultOps, *op) == kDefaultOps.end()) {
        Replace(where, item, "min, max, mean, norm or nans", "it is left out");
      } else if (std::ranges::find(found, *op) == found.end()) {
        found.push_back(*op);
      }
    }
    if (!found.empty()) *ops = std::move(found);
  }

  void ReadOwn(MonitorPart part, const std::string& section, const json::Value& object) {
    bool wants = true;
    switch (part) {
      case MonitorPart::kModule:
        config_.activations = true;
        ReadTargets(section + "targets", object.Find("targets"));
        break;
      case MonitorPart::kWeightGradient:
        config_.gradients = true;
        Truth(section, object, "monitor_mbs_grad", &config_.micro_batch_gradients);
        Natural(section, object, "grad_acc_steps", {1, kMostTimes}, &second_.micro_batches);
        Natural(section, object, "micro_batch_number", {1, kMostTimes}, &second_.micro_batches);
        break;
      case MonitorPart::kOptimizer:
        Truth(section, object, "mv_distribution", &wants);
        config_.moments = config_.moments_after = wants;
        break;
      case MonitorPart::kParameter:
        Truth(section, object, "param_distribution", &wants);
        config_.parameters = config_.updated_parameters = wants;
        break;
      case MonitorPart::kOther:
        ReadCommunication(section, object);
        break;
    }
  }

  // Parts of names.
  void ReadTargets(const std::string& where, const json::Value* value) {
    const bool is_all =
        value == nullptr || (value->AsList() != nullptr && value->AsList()->empty());
    if (is_all) {
      config_.watches_all_modules = true;
      return;
    }
    const json::Value::List none;
    for (const json::Value& item : value->AsList() == nullptr ? none : *value->AsList()) {
      if (item.AsText() != nullptr) config_.targets.push_back({*item.AsText(), {}, {}, {}, {}});
    }
    const size_t given = value->AsList() == nullptr ? 1 : value->AsList()->size();
    if (config_.targets.size() != given) {
      faults_.push_back(fmt::format(
          "{}: is {} (expected a list of parts of module names, such as [\"layers.0\"])", where,
          value->Text()));
    }
  }

  void ReadCommunication(const std::string& section, const json::Value& object) {
    const json::Value* inner = object.Find("cc_distribution");
    const json::Value& settings = inner != nullptr && inner->is_object() ? *inner : object;
    MonitorConfig::Communication& out = config_.communication;
    out.enable = true;
    Truth(section, settings, "cc_pre_hook", &out.before);
    Truth(section, settings, "cc_log_only", &out.log_only);
    ReadRanks(section + "module_ranks", settings.Find("module_ranks"),
              &second_.communication_ranks);
    const json::Value* lines = settings.Find("cc_codeline");
    if (lines == nullptr) return;
    const json::Value::List none;
    for (const json::Value& item : lines->AsList() == nullptr ? none : *lines->AsList()) {
      if (item.AsText() != nullptr) out.code_lines.push_back(*item.AsText());
    }
    if (lines->AsList() == nullptr || out.code_lines.size() != lines->AsList()->size()) {
      faults_.push_back(fmt::format("{}cc_codeline: is {} (expected a list of regular expressions)",
                                    section, lines->Text()));
    }
  }

  const json::Value& root_;
  MonitorConfig& config_;
  SecondForm& second_;
  std::vector<std::string> faults_;
};

}  // namespace

Result<MonitorConfig> ParseSecondForm(std::string_view text, const std::string& path,
                                      std::string_view framework) {
  PL_TRY_ASSIGN(const json::Value root, ParseConfigObject(text, path));
  MonitorConfig config;
  const std::vector<std::string> faults = SecondFormReader(root, &config).Read(framework);
  if (!faults.empty()) return FaultsOf(path, faults, config.warnings);
  return config;
}

Result<MonitorConfig> ReadSecondForm(const std::string& path, std::string_view framework) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  return ParseSecondForm(text, path, framework);
}

}  // namespace plumbline::watch
