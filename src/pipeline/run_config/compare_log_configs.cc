#include "pipeline/run_config/compare_log_configs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "base/csv.h"
#include "base/file.h"
#include "base/log.h"
#include "base/utf8.h"
#include "pipeline/run_config/log_config.h"

namespace plumbline::pipeline {
namespace {

using Flat = std::map<std::string, Value>;
using Header = std::array<std::string_view, 4>;

constexpr size_t kMostShown = 50;
constexpr std::string_view kMissing = "NA";
// "yes", "no", and the names of the columns, as upstream has them.
constexpr std::string_view kYes = "\u662f", kNo = "\u5426";
constexpr Header kCompareHeader = {"\u8d85\u53c2\u540d\u79f0", "NPU\u751f\u6548\u503c",
                                   "bench\u751f\u6548\u503c", "\u662f\u5426\u4e00\u81f4"};
constexpr Header kVerifyHeader = {"\u5173\u952e\u53c2\u6570\u540d\u79f0", "bench\u751f\u6548\u503c",
                                  "target\u751f\u6548\u503c", "\u662f\u5426\u4e00\u81f4"};

Flat KeyParameters() {
  Flat flat;
  const auto add = [&](std::string_view section, bool value,
                       std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) flat[fmt::format("{}{}", section, name)] = value;
  };
  add("trainer/", false, {"balance_batch"});
  add("critic/", false, {"shuffle", "use_dynamic_bsz"});
  add("critic/", true, {"model/use_remove_padding"});
  add("data/", false, {"shuffle"});
  add("actor_rollout_ref/actor/", false,
      {"shuffle", "use_dynamic_bsz", "megatron/override_transformer_config/use_ascend_mc2",
       "override_transformer_config/calculate_per_token_loss"});
  add("actor_rollout_ref/actor/", true, {"load_weight", "use_remove_padding"});
  add("actor_rollout_ref/ref/", true, {"load_weight"});
  add("actor_rollout_ref/", false,
      {"ref/log_prob_use_dynamic_bsz", "rollout/log_prob_use_dynamic_bsz"});
  add("actor_rollout_ref/model/", true, {"use_remove_padding"});
  add("algorithm/", false, {"filter_groups/enable"});
  flat["VLLM_ASCEND_ENABLE_NZ"] = int64_t{0};
  return flat;
}

std::optional<double> NumberOf(const Value& value) {
  if (const auto* v = value.As<bool>()) return *v ? 1.0 : 0.0;
  if (const auto* v = value.As<int64_t>()) return static_cast<double>(*v);
  if (const auto* v = value.As<double>()) return *v;
  return std::nullopt;
}

// As Python's ==, where 1, 1.0 and True are equal; lists by what they hold.
bool Equal(const Value& a, const Value& b) {
  const auto x = NumberOf(a), y = NumberOf(b);
  if (x || y) return x && y && *x == *y;
  const auto* left = a.As<ValueList>();
  const auto* right = b.As<ValueList>();
  if (left != nullptr && right != nullptr) {
    return std::ranges::equal(*left, *right, Equal);
  }
  return PythonRepr(a) == PythonRepr(b);
}

// `names`: which of them, in order.
void AddParameters(const std::set<std::string>& names, const Flat& left, const Flat& right,
                   LogComparison& comparison) {
  const auto text = [](const Flat& side, const std::string& name) -> std::optional<std::string> {
    const auto found = side.find(name);
    if (found == side.end()) return std::nullopt;
    return PythonRepr(found->second);
  };
  for (const std::string& name : names) {
    LogParameter& each = comparison.parameters.emplace_back();
    each = {name, text(left, name), text(right, name), false};
    each.equal = each.left && each.right && Equal(left.at(name), right.at(name));
  }
}

Status WriteTable(const Header& header, const std::string& path, LogComparison& comparison) {
  std::string text(kByteOrderMark);
  csv::AppendRow(header, text);
  for (const LogParameter& each : comparison.parameters) {
    const std::array<std::string_view, 4> row = {
        each.name, each.left ? std::string_view(*each.left) : kMissing,
        each.right ? std::string_view(*each.right) : kMissing, each.equal ? kYes : kNo};
    csv::AppendRow(row, text);
  }
  PL_TRY(WriteFileAtomically(path, text, /*durable=*/false));
  comparison.files.push_back(path);
  return {};
}

Status WriteConfig(const Value& config, const std::string& path, LogComparison& comparison) {
  PL_TRY(WriteFileAtomically(path, ConfigJson(config), /*durable=*/false));
  comparison.files.push_back(path);
  return {};
}

bool IsCompared(std::string_view name) {
  return name.find("profiler/") == std::string_view::npos &&
         name.find("ray_") == std::string_view::npos;
}

}  // namespace

size_t LogComparison::different() const {
  return static_cast<size_t>(
      std::ranges::count_if(parameters, [](const LogParameter& each) { return !each.equal; }));
}

Result<LogComparison> CompareLogs(const std::string& npu_log, const std::string& bench_log,
                                  const std::string& directory) {
  PL_TRY_ASSIGN(const Value npu, ReadLogConfig(npu_log));
  PL_TRY_ASSIGN(const Value bench, ReadLogConfig(bench_log));
  const Flat left = FlatConfig(npu), right = FlatConfig(bench);
  std::set<std::string> names;
  for (const Flat* side : {&left, &right}) {
    for (const auto& entry : *side) {
      if (IsCompared(entry.first)) names.insert(entry.first);
    }
  }
  LogComparison comparison{"npu", "bench", {}, {}};
  AddParameters(names, left, right, comparison);
  PL_TRY(MakeDirectories(directory));
  PL_TRY(WriteConfig(npu, JoinPath(directory, "NPU_config.json"), comparison));
  PL_TRY(WriteConfig(bench, JoinPath(directory, "bench_config.json"), comparison));
  PL_TRY(WriteTable(kCompareHeader, JoinPath(directory, "hyper_params_compare.csv"), comparison));
  return comparison;
}

Result<LogComparison> VerifyLog(const std::string& bench_yaml, const std::string& target_log,
                                const std::string& directory) {
  Flat left = KeyParameters();
  if (!bench_yaml.empty()) {
    PL_TRY_ASSIGN(const Value bench, ReadYamlConfig(bench_yaml));
    left = FlatConfig(bench);
  }
  PL_TRY_ASSIGN(const Value target, ReadLogConfig(target_log));
  std::set<std::string> names;
  for (const auto& entry : left) names.insert(entry.first);
  LogComparison comparison{"bench", "target", {}, {}};
  AddParameters(names, left, FlatConfig(target), comparison);
  PL_TRY(MakeDirectories(directory));
  PL_TRY(WriteConfig(target, JoinPath(directory, "tgt_config.json"), comparison));
  PL_TRY(WriteTable(kVerifyHeader, JoinPath(directory, "hyper_params_verify.csv"), comparison));
  return comparison;
}

std::string LogSummary(const LogComparison& comparison) {
  const size_t all = comparison.parameters.size(), different = comparison.different();
  std::string text =
      all == 0 ? std::string("not judged: no parameter to compare\n")
      : different == 0
          ? fmt::format("the configurations agree in {} parameters\n", all)
          : fmt::format("the configurations differ in {} of {} parameters\n", different, all);
  size_t shown = 0;
  for (const LogParameter& each : comparison.parameters) {
    if (each.equal || shown++ >= kMostShown) continue;
    text += "  " +
            OneLine(fmt::format("{}: {} in {}, {} in {}", each.name, each.left.value_or("missing"),
                                comparison.left_name, each.right.value_or("missing"),
                                comparison.right_name)) +
            "\n";
  }
  if (shown > kMostShown) text += fmt::format("  and {} more\n", shown - kMostShown);
  return text;
}

}  // namespace plumbline::pipeline
