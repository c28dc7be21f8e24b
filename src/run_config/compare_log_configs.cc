#include "run_config/compare_log_configs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/csv.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "base/text/yaml_file.h"
#include "match/expand.h"
#include "run_config/launch_script.h"

namespace plumbline::run_config {

namespace {

constexpr std::array<std::string_view, 2> kStarts = {"{'actor_rollout_ref':",
                                                     "{\"actor_rollout_ref\":"};

// What stands between the prefixes of one line: two writers may share one.
std::vector<std::string_view> PiecesOf(std::string_view line, std::string_view prefix) {
  if (prefix.empty()) return {line};
  std::vector<std::string_view> pieces;
  size_t at = line.find(prefix);
  while (at != std::string_view::npos) {
    const size_t from = at + prefix.size();
    at = line.find(prefix, from);
    pieces.push_back(line.substr(from, at == std::string_view::npos ? at : at - from));
  }
  return pieces;
}

// Another process's words may follow behind a comma; they may hold commas themselves, a few.
void AddPiece(std::string_view piece, LiteralParser& parser) {
  constexpr int kMostCuts = 20;
  piece = Trimmed(piece);
  size_t failed_at = 0;
  for (int cut = 0; !piece.empty() && !parser.Add(piece, &failed_at); ++cut) {
    if (cut == kMostCuts) return;
    const size_t comma = piece.substr(0, failed_at).rfind(',');
    piece = comma == std::string_view::npos ? std::string_view() : piece.substr(0, comma + 1);
  }
}

Value ValueOfYaml(const YAML::Node& node) {
  if (node.IsMap()) {
    ValueMap map;
    for (const auto& entry : node)
      map.emplace_back(entry.first.as<std::string>(""), ValueOfYaml(entry.second));
    return map;
  }
  if (node.IsSequence()) {
    ValueList list;
    for (const auto& each : node) list.push_back(ValueOfYaml(each));
    return list;
  }
  if (!node.IsScalar()) return {};
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  const std::string lower = LowerCase(text);
  if (lower == "true" || lower == "false") return lower == "true";
  if (lower == "null" || lower == "~" || lower.empty()) return {};
  if (const auto integer = ParseInteger(text)) return *integer;
  const bool is_number = text.find_first_of("0123456789") != std::string::npos;
  if (const auto real = ParseReal(text); real && is_number) return *real;
  return text;
}

void Flatten(const Value& value, const std::string& path, std::map<std::string, Value>& out) {
  const auto* map = value.As<ValueMap>();
  if (map == nullptr || map->empty()) {
    out.insert_or_assign(path, value);
    return;
  }
  for (const auto& [key, member] : *map) {
    Flatten(member, path.empty() ? key : fmt::format("{}/{}", path, key), out);
  }
}

void AppendJson(const Value& value, size_t indent, std::string& out) {
  const std::string blanks(indent + 2, ' ');
  const auto close = [&](char bracket) {
    out += '\n';
    out.append(indent, ' ');
    out += bracket;
  };
  if (const auto* map = value.As<ValueMap>()) {
    if (map->empty()) {
      out += "{}";
      return;
    }
    out += '{';
    for (const auto& [key, member] : *map) {
      out += out.back() == '{' ? "\n" : ",\n";
      out += blanks;
      json::AppendString(key, out);
      out += ": ";
      AppendJson(member, indent + 2, out);
    }
    close('}');
  } else if (const auto* list = value.As<ValueList>()) {
    out += '[';
    for (size_t i = 0; i < list->size(); ++i) {
      out += i == 0 ? "\n" : ",\n";
      out += blanks;
      AppendJson((*list)[i], indent + 2, out);
    }
    if (list->empty()) {
      out += ']';
    } else {
      close(']');
    }
  } else if (const auto* text = value.As<std::string>()) {
    json::AppendString(*text, out);
  } else if (const auto* truth = value.As<bool>()) {
    out += *truth ? "true" : "false";
  } else {
    out += value.is_null() ? "null" : match::PythonText(value);
  }
}

}  // namespace

Result<Value> FindLogConfig(std::string_view text) {
  const std::vector<std::string_view> lines = SplitAt(text, '\n');
  size_t start = lines.size(), column = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const std::string_view key : kStarts) {
      const size_t at = lines[i].find(key);
      if (at == std::string_view::npos) continue;
      start = i;
      column = at;
    }
  }
  if (start == lines.size()) {
    return Error(ErrorCode::kCorrupt, fmt::format("no line with {} ...}}", kStarts[0]));
  }
  const std::string_view prefix = lines[start].substr(0, column);
  LiteralParser parser;
  for (size_t i = start; i < lines.size() && !parser.complete(); ++i) {
    for (const std::string_view piece : PiecesOf(lines[i], prefix)) {
      if (!parser.complete()) AddPiece(piece, parser);
    }
  }
  if (!parser.complete()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the configuration in line {} does not end", start + 1));
  }
  return parser.Take();
}

Result<Value> ReadLogConfig(const std::string& path) {
  const std::string lower = LowerCase(path);
  if (!lower.ends_with(".log") && !lower.ends_with(".txt")) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: no log (expected a .log or .txt file)", path));
  }
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  Result<Value> config = FindLogConfig(text);
  if (!config) return config.error().In(path);
  return config;
}

Result<Value> ReadYamlConfig(const std::string& path) {
  if (!path.ends_with(".yaml")) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: expected a .yaml file", path));
  }
  PL_TRY_ASSIGN(const YamlFile file, YamlFile::Read(path));
  if (!file.root().IsMap()) return file.Bad("expected names with values");
  return ValueOfYaml(file.root());
}

std::map<std::string, Value> FlatConfig(const Value& config) {
  std::map<std::string, Value> flat;
  Flatten(config, "", flat);
  return flat;
}

std::string PythonRepr(const Value& value) {
  const std::string list = match::PythonText(ValueList{value});
  return list.substr(1, list.size() - 2);
}

std::string ConfigJson(const Value& config) {
  std::string text;
  AppendJson(config, 0, text);
  return text;
}

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

}  // namespace plumbline::run_config
