#include "watch/live/monitor_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <regex>
#include <utility>

#include "base/file/file.h"
#include "base/text/number_text.h"
#include "config/options.h"
#include "formats/table/monitor_trend.h"
#include "watch/live/rule_list.h"

namespace plumbline::watch {
namespace {

constexpr int64_t kMostSteps = 100'000'000;

constexpr std::array<std::string_view, 36> kKeys = {"targets",
                                                    "all_xy",
                                                    "xy_distribution",
                                                    "forward_only",
                                                    "backward_only",
                                                    "wg_distribution",
                                                    "mv_distribution",
                                                    "param_distribution",
                                                    "ur_distribution",
                                                    "mg_direction",
                                                    "cc_distribution",
                                                    "alert",
                                                    "ops",
                                                    "eps",
                                                    "ndigits",
                                                    "format",
                                                    "module_ranks",
                                                    "start_step",
                                                    "step_interval",
                                                    "collect_times",
                                                    "step_count_per_record",
                                                    "print_struct",
                                                    "append_output",
                                                    "squash_name",
                                                    "dynamic_on",
                                                    "stack_info",
                                                    "monitor_mbs_grad",
                                                    "param_updated",
                                                    "all_elements",
                                                    "is_select",
                                                    "l2_targets",
                                                    "recording_l2_features",
                                                    "sa_order",
                                                    "profile",
                                                    "watch",
                                                    "apply_at_step"};

std::string Shown(const json::Value& value) {
  constexpr size_t kMost = 60;
  std::string text = value.Text();
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

// Whether the trend viewer's database has a column for it.
bool HasTrendColumn(Op op) {
  return std::ranges::find(monitor_trend::kStatistics, NameOf(op)) !=
         monitor_trend::kStatistics.end();
}

// Reads one document and collects what is wrong with it.
class ConfigReader {
 public:
  // Files that it names are beside `path`.
  ConfigReader(const json::Value& root, const std::string& path, MonitorConfig* config)
      : root_(root), path_(path), config_(*config) {}

  // The faults, one line each.
  std::vector<std::string> Read() {
    WarnOfUnknownKeys();
    ReadProfile();
    ReadSwitches();
    ReadTargets();
    ReadFeatures();
    ReadOps();
    ReadNumbers();
    ReadRanks();
    ReadCommunication();
    ReadAlerts();
    ReadWatch();
    ReadAppend();
    ReadSquash();
    ReadFormat();
    Settle();
    return std::move(faults_);
  }

 private:
  void Fault(std::string_view where, const json::Value& value, std::string_view expected) {
    faults_.push_back(fmt::format("{}: is {} (expected {})", where, Shown(value), expected));
  }

  void WarnOfUnknownKeys() {
    for (const std::string_view key : root_.Keys()) {
      if (std::ranges::find(kKeys, key) != kKeys.end()) continue;
      config_.warnings.push_back(settings::UnknownKeyWarning("", key, kKeys));
    }
  }

  void ReadFeatures() {
    Truth("recording_l2_features", &config_.features.enable);
    const json::Value* order = root_.Find("sa_order");
    if (order != nullptr) {
      std::string text = order->AsText() == nullptr ? "" : *order->AsText();
      std::erase(text, ' ');
      config_.features.is_batch_first = text == "b,s,h,d";
      if (text != "b,s,h,d" && text != "s,b,h,d") {
        Fault("sa_order", *order, R"("s,b,h,d" or "b,s,h,d")");
      }
    }
    const json::Value* targets = root_.Find("l2_targets");
    if (targets == nullptr) return;
    constexpr std::string_view kExpected = R"(an object such as {"linear_hook": ["0:fc1"]})";
    if (!targets->is_object()) return Fault("l2_targets", *targets, kExpected);
    for (const std::string_view key : targets->Keys()) ReadFeature(key, *targets->Find(key));
  }

  void ReadFeature(std::string_view key, const json::Value& names) {
    const std::string where = fmt::format("l2_targets.{}", key);
    const MonitorKindInfo* kind = MonitorKindOfFile(key);
    if (kind == nullptr || FeatureOps(kind->kind).empty()) {
      return Fault(where, names,
                   "no such key: only attention_hook, linear_hook, moe_router_weight_hook, "
                   "moe_router_logit_hook");
    }
    constexpr std::string_view kExpected = "a list of names of modules";
    if (names.AsList() == nullptr) return Fault(where, names, kExpected);
    std::vector<std::string>& read = config_.features.targets[kind->kind];
    for (const json::Value& item : *names.AsList()) {
      if (item.AsText() == nullptr) return Fault(where, item, kExpected);
      read.push_back(*item.AsText());
    }
  }

  void Truth(std::string_view key, bool* out) {
    const json::Value* value = root_.Find(key);
    if (value == nullptr) return;
    if (value->AsBool() == nullptr) return Fault(key, *value, "true or false");
    *out = *value->AsBool();
  }

  // What keys of their own replace.
  void ReadProfile() {
    const json::Value* value = root_.Find("profile");
    if (value == nullptr) return;
    const std::string text = value->AsText() == nullptr ? "" : *value->AsText();
    if (text != "1.2.2" && text != "latest") {
      return Fault("profile", *value, R"("1.2.2" or "latest")");
    }
    config_.is_latest = text == "latest";
    if (!config_.is_latest) return;
    config_.updated_parameters = config_.all_elements = true;
    config_.squash = MonitorConfig::Squash::kNone;
  }

  void ReadSwitches() {
    Truth("all_xy", &config_.watches_all_modules);
    Truth("xy_distribution", &config_.activations);
    Truth("forward_only", &config_.forward_only);
    Truth("backward_only", &config_.backward_only);
    Truth("wg_distribution", &config_.gradients);
    Truth("mv_distribution", &config_.moments);
    Truth("param_distribution", &config_.parameters);
    Truth("mg_direction", &config_.directions);
    Truth("ur_distribution", &config_.adam_updates);
    Truth("print_struct", &config_.print_struct);
    Truth("dynamic_on", &config_.dynamic_on);
    Truth("stack_info", &config_.stack_info);
    Truth("monitor_mbs_grad", &config_.micro_batch_gradients);
    Truth("param_updated", &config_.updated_parameters);
    Truth("all_elements", &config_.all_elements);
  }

  // "tensor", "tuple[N]", "tuple[N]:I".
  ElementSpec SpecOf(const std::string& where, const json::Value& value) {
    ElementSpec spec;
    const std::string* text = value.AsText();
    static const std::regex pattern(R"(^(?:tensor|tuple\[(\d{1,9})\](?::(\d{1,9}))?))");
    std::smatch match;
    if (text == nullptr || !std::regex_search(*text, match, pattern)) {
      Fault(where, value, R"("tensor", "tuple[2]" or "tuple[2]:0")");
      return spec;
    }
    spec.form = match[1].matched ? ElementSpec::Form::kTuple : ElementSpec::Form::kWhole;
    if (match[1].matched) spec.length = std::stoll(match[1].str());
    if (match[2].matched) spec.index = std::stoll(match[2].str());
    if (match[1].matched && spec.index >= spec.length) {
      Fault(where, value, fmt::format("an element below {}", spec.length));
    }
    return spec;
  }

  void ReadTargets() {
    const json::Value* targets = root_.Find("targets");
    if (targets == nullptr) return;
    constexpr std::string_view kExpected = R"(an object {"name of a module or parameter": {}})";
    if (!targets->is_object()) return Fault("targets", *targets, kExpected);
    for (const std::string_view name : targets->Keys()) {
      const json::Value& value = *targets->Find(name);
      const std::string where = fmt::format("targets[\"{}\"]", name);
      if (!value.is_object()) {
        Fault(where, value, R"(an object, {} or {"input": "tuple[1]:0"})");
        continue;
      }
      Target target{std::string(name), {}, {}, {}, {}};
      const std::array<std::pair<std::string_view, ElementSpec*>, 4> members = {
          {{"input", &target.input},
           {"output", &target.output},
           {"input_grad", &target.input_grad},
           {"output_grad", &target.output_grad}}};
      for (const auto& [key, spec] : members) {
        const json::Value* given = value.Find(key);
        if (given != nullptr) *spec = SpecOf(fmt::format("{}.{}", where, key), *given);
      }
      config_.targets.push_back(std::move(target));
    }
  }

  void ReadOps() {
    const json::Value* ops = root_.Find("ops");
    if (ops != nullptr && ops->AsList() == nullptr) {
      return Fault("ops", *ops, fmt::format("a list of {}", NamesOfOps()));
    }
    const json::Value::List none;
    for (const json::Value& item : ops == nullptr ? none : *ops->AsList()) {
      const std::string* name = item.AsText();
      const std::optional<Op> op = name == nullptr ? std::nullopt : OpNamed(*name);
      if (!op) {
        config_.warnings.push_back(
            fmt::format("ops: {} is left out (expected {})", Shown(item), NamesOfOps()));
      } else if (std::ranges::find(config_.ops, *op) != config_.ops.end()) {
        config_.warnings.push_back(fmt::format("ops: {} stands there twice", *name));
      } else {
        config_.ops.push_back(*op);
      }
    }
    if (ops != nullptr && config_.ops.empty()) {
      config_.warnings.emplace_back("ops: names no statistic; norm is taken");
    }
    if (config_.ops.empty()) config_.ops = {Op::kNorm};
    for (const Op op : {Op::kShape, Op::kDType}) {
      const bool is_there = std::ranges::find(config_.ops, op) != config_.ops.end();
      if (config_.is_latest && !is_there) config_.ops.push_back(op);
    }
  }

  void Natural(std::string_view key, int64_t least, int64_t most, int64_t* out) {
    const json::Value* value = root_.Find(key);
    if (value == nullptr) return;
    const std::optional<int64_t> number = value->AsInteger();
    if (!number || *number < least || *number > most) {
      return Fault(key, *value, fmt::format("an integer from {} to {}", least, most));
    }
    *out = *number;
  }

  void ReadNumbers() {
    Natural("start_step", 0, kMostSteps, &config_.start_step);
    Natural("apply_at_step", 0, kMostSteps, &config_.apply_at_step);
    Natural("step_interval", 1, kMostSteps, &config_.step_interval);
    Natural("collect_times", 0, kMostSteps, &config_.collect_times);
    Natural("step_count_per_record", 1, 1'000'000, &config_.steps_per_file);
    const json::Value* eps = root_.Find("eps");
    if (eps != nullptr) {
      const std::optional<double> number = eps->AsReal();
      // Upstream refuses integers; 1 is meant as often as 1e-8 with a slip.
      if (!number || eps->is_integer() || !(*number >= 0) || std::isinf(*number)) {
        Fault("eps", *eps, "a number with a point, such as 1e-8");
      } else {
        config_.eps = *number;
      }
    }
    const json::Value* digits = root_.Find("ndigits");
    if (digits == nullptr || digits->is_null()) return;
    const std::optional<int64_t> number = digits->AsInteger();
    if (digits->AsText() != nullptr && *digits->AsText() == "auto") {
      config_.digits = std::nullopt;
    } else if (!number || *number < 0 || *number > 20) {
      Fault("ndigits", *digits, R"(an integer from 0 to 20, or "auto" for significant digits)");
    } else if (*number > 0) {
      config_.digits = static_cast<int>(*number);
    }
  }

  void ReadRanks() {
    const json::Value* ranks = root_.Find("module_ranks");
    if (ranks == nullptr) return;
    if (ranks->AsList() == nullptr) return Fault("module_ranks", *ranks, "a list such as [0]");
    for (const json::Value& item : *ranks->AsList()) {
      const std::string* text = item.AsText();  // as MindSpore's release 1.2.2 wants them
      int64_t rank = item.AsInteger().value_or(-1);
      if (text != nullptr) {
        const auto read = std::from_chars(text->data(), text->data() + text->size(), rank);
        if (read.ec != std::errc() || read.ptr != text->data() + text->size()) rank = -1;
      }
      if (rank < 0) return Fault("module_ranks", *ranks, "a list of ranks such as [0]");
      config_.ranks.push_back(rank);
    }
  }

  void ReadCommunication() {
    const json::Value* value = root_.Find("cc_distribution");
    if (value == nullptr) return;
    if (!value->is_object()) {
      return Fault("cc_distribution", *value, R"(an object such as {"enable": true})");
    }
    MonitorConfig::Communication& out = config_.communication;
    const std::array<std::pair<std::string_view, bool*>, 3> truths = {
        {{"enable", &out.enable}, {"cc_pre_hook", &out.before}, {"cc_log_only", &out.log_only}}};
    for (const std::string_view key : value->Keys()) {
      const json::Value& given = *value->Find(key);
      const std::string where = fmt::format("cc_distribution.{}", key);
      const auto found = std::ranges::find(truths, key, &std::pair<std::string_view, bool*>::first);
      if (found != truths.end() && given.AsBool() != nullptr) {
        *found->second = *given.AsBool();
      } else if (found != truths.end()) {
        Fault(where, given, "true or false");
      } else if (key == "cc_codeline") {
        ReadCodeLines(where, given);
      } else {
        Fault(where, given, "no such key: only enable, cc_codeline, cc_pre_hook, cc_log_only");
      }
    }
  }

  void ReadCodeLines(const std::string& where, const json::Value& given) {
    constexpr std::string_view kExpected = "a list of regular expressions";
    if (given.AsList() == nullptr) return Fault(where, given, kExpected);
    for (const json::Value& item : *given.AsList()) {
      if (item.AsText() == nullptr) return Fault(where, given, kExpected);
      config_.communication.code_lines.push_back(*item.AsText());
    }
  }

  void ReadAlerts() {
    const json::Value* alert = root_.Find("alert");
    if (alert == nullptr) return;
    if (!alert->is_object()) return Fault("alert", *alert, R"(an object such as {"rules": []})");
    const json::Value* dump = alert->Find("dump");
    if (dump != nullptr && dump->AsBool() == nullptr) {
      Fault("alert.dump", *dump, "true or false");
    } else if (dump != nullptr) {
      config_.dumps_alerts = *dump->AsBool();
    }
    const json::Value* rules = alert->Find("rules");
    if (rules == nullptr) return;
    if (rules->AsList() == nullptr) return Fault("alert.rules", *rules, "a list");
    for (size_t i = 0; i < rules->AsList()->size(); ++i) {
      ReadRule(fmt::format("alert.rules[{}]", i), (*rules->AsList())[i]);
    }
  }

  void ReadRule(const std::string& where, const json::Value& rule) {
    const json::Value* name = rule.Find("rule_name");
    const std::string* text = name == nullptr ? nullptr : name->AsText();
    if (text == nullptr || (*text != "AnomalyTurbulence" && *text != "AnomalyNan")) {
      return Fault(where + ".rule_name", name == nullptr ? json::Value() : *name,
                   R"("AnomalyTurbulence" or "AnomalyNan")");
    }
    AlertRule read;
    read.kind = *text == "AnomalyNan" ? AlertRule::Kind::kNan : AlertRule::Kind::kTurbulence;
    const json::Value* arguments = rule.Find("args");
    const json::Value* threshold = arguments == nullptr ? nullptr : arguments->Find("threshold");
    if (threshold != nullptr) {
      const std::optional<double> number = threshold->AsReal();
      if (!number || !(*number >= 0)) {
        return Fault(where + ".args.threshold", *threshold, "a number of at least 0");
      }
      read.threshold = *number;
    } else if (read.kind == AlertRule::Kind::kTurbulence) {
      config_.warnings.push_back(where + ": left out, args.threshold is missing");
      return;
    }
    config_.alerts.push_back(read);
  }

  void ReadWatch() {
    const json::Value* value = root_.Find("watch");
    if (value == nullptr) return;
    config_.watch = ReadRuleList(*value, std::string(DirectoryOf(path_)), &faults_);
  }

  void ReadAppend() {
    const json::Value* value = root_.Find("append_output");
    if (value == nullptr) return;
    constexpr std::string_view kExpected =
        R"([] or two times such as ["Dec03_21-34-40", "Dec03_21-34-41"])";
    const json::Value::List* list = value->AsList();
    if (list == nullptr || (!list->empty() && list->size() != 2)) {
      return Fault("append_output", *value, kExpected);
    }
    if (list->empty()) return;
    if (list->front().AsText() == nullptr || list->back().AsText() == nullptr) {
      return Fault("append_output", *value, kExpected);
    }
    config_.append_from = *list->front().AsText();
    config_.append_to = *list->back().AsText();
  }

  void ReadSquash() {
    const json::Value* value = root_.Find("squash_name");
    if (value == nullptr) return;
    using Squash = MonitorConfig::Squash;
    const std::string text = value->AsText() == nullptr ? "" : *value->AsText();
    if (value->AsBool() != nullptr) {
      const Squash short_names = config_.is_latest ? Squash::kLatest : Squash::k122;
      config_.squash = *value->AsBool() ? short_names : Squash::kNone;
    } else if (text == "1.2" || text == "latest") {
      config_.squash = text == "1.2" ? Squash::k122 : Squash::kLatest;
    } else {
      Fault("squash_name", *value, R"(true, false, "1.2" or "latest")");
    }
  }

  void ReadFormat() {
    const json::Value* value = root_.Find("format");
    if (value == nullptr) return;
    const std::string text = value->AsText() == nullptr ? "" : *value->AsText();
    const auto found = std::ranges::find(MonitorConfig::kFormats, text);
    if (found == MonitorConfig::kFormats.end()) {
      return Fault("format", *value, R"("csv", "tensorboard", "sqlite" or "api")");
    }
    config_.format = static_cast<MonitorConfig::Format>(found - MonitorConfig::kFormats.begin());
    if (config_.format == MonitorConfig::Format::kSqlite) TellOpsWithoutColumn();
  }

  void TellOpsWithoutColumn() {
    constexpr std::string_view kColumns = "norm, min, max, zeros, nans, mean";
    if (std::ranges::none_of(config_.ops, HasTrendColumn)) {
      faults_.push_back(fmt::format(
          "ops: none of them has a column in a database (expected one of {})", kColumns));
    }
    for (const Op op : config_.ops) {
      if (HasTrendColumn(op)) continue;
      config_.warnings.push_back(
          fmt::format("ops: {} has no column in a database and is left out (expected {})",
                      NameOf(op), kColumns));
    }
  }

  void Settle() {
    if (config_.forward_only && config_.backward_only) {
      config_.warnings.emplace_back(
          "forward_only and backward_only are both set: no activation is watched");
    }
    if (config_.targets.empty() && config_.activations) config_.watches_all_modules = true;
    if (config_.adam_updates && config_.format != MonitorConfig::Format::kTensorBoard) {
      config_.adam_updates = false;
      config_.warnings.emplace_back(
          "ur_distribution: ignored, pictures are written with \"format\": \"tensorboard\" only");
    }
    if (config_.features.enable && config_.format == MonitorConfig::Format::kSqlite) {
      config_.warnings.emplace_back(
          "recording_l2_features: a database has no place for features; they are not written");
    }
    if (config_.stack_info && config_.format == MonitorConfig::Format::kApi) {
      config_.warnings.emplace_back("stack_info: with format api nothing is written");
    }
  }

  const json::Value& root_;
  const std::string& path_;
  MonitorConfig& config_;
  std::vector<std::string> faults_;
};

}  // namespace

Result<json::Value> ParseConfigObject(std::string_view text, const std::string& path) {
  auto root = json::Value::Parse(text);
  if (!root) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: is no JSON: {}", path, root.error().message()));
  }
  if (root->is_object()) return *std::move(root);
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: holds {} (expected an object)", path, Shown(*root)));
}

Error FaultsOf(const std::string& path, std::vector<std::string> faults,
               const std::vector<std::string>& warnings) {
  const size_t count = faults.size();
  for (const std::string& one : warnings) faults.push_back("warning: " + one);
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: {}\n  {}", path, CountText(count, "fault"), fmt::join(faults, "\n  ")));
}

Result<MonitorConfig> ParseMonitorConfig(std::string_view text, const std::string& path) {
  PL_TRY_ASSIGN(const json::Value root, ParseConfigObject(text, path));
  MonitorConfig config;
  const std::vector<std::string> faults = ConfigReader(root, path, &config).Read();
  if (!faults.empty()) return FaultsOf(path, faults, config.warnings);
  return config;
}

Result<MonitorConfig> ReadMonitorConfig(const std::string& path) {
  auto text = ReadFile(path);
  if (!text) return text.error();
  return ParseMonitorConfig(*text, path);
}

std::vector<MonitorKind> FeaturesOf(const MonitorConfig& config, int64_t stage,
                                    std::span<const std::string> names) {
  std::vector<MonitorKind> kinds;
  if (!config.features.enable) return kinds;
  for (const auto& entry : config.features.targets) {
    const MonitorKind kind = entry.first;
    const std::vector<std::string>& targets = entry.second;
    const bool takes_all = targets.empty() && kind == MonitorKind::kLinearFeature;
    const bool is_named = std::ranges::any_of(names, [&](const std::string& name) {
      return std::ranges::find(targets, name) != targets.end() ||
             std::ranges::find(targets, fmt::format("{}:{}", stage, name)) != targets.end();
    });
    if (takes_all || is_named) kinds.push_back(kind);
  }
  return kinds;
}

std::string SquashName(std::string_view name, MonitorConfig::Squash squash) {
  if (squash == MonitorConfig::Squash::kNone) return std::string(name);
  static const std::array<std::regex, 5> of_122 = {
      std::regex(R"(layers?\.(.*))"), std::regex(R"(embeddings?\.(.*))"), std::regex("(final.*)"),
      std::regex("(output.*)"), std::regex("(norm.*)")};
  static const std::array<std::regex, 5> of_latest = {
      std::regex(R"(^.*\.(layers?\..*))"), std::regex(R"(^.*\.(embeddings?\..*))"),
      std::regex(R"(^.*\.(final.*))"), std::regex(R"(^.*\.(output.*))"),
      std::regex(R"(^.*\.(norm.*))")};
  const auto& rules = squash == MonitorConfig::Squash::k122 ? of_122 : of_latest;
  const std::string text(name);
  std::smatch match;
  for (const std::regex& rule : rules) {
    if (std::regex_search(text, match, rule)) return match[1].str();
  }
  return text;
}

}  // namespace plumbline::watch
