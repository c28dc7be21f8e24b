#include "match/mapping_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <unordered_set>

#include "base/file.h"

namespace plumbline::match {
namespace {

Error Bad(const std::string& path, const YAML::Node& node, std::string_view problem) {
  const int line = node.IsDefined() ? node.Mark().line : -1;
  const std::string where = line < 0 ? std::string() : fmt::format(" line {}:", line + 1);
  return Error(ErrorCode::kInvalidArgument, fmt::format("{}:{} {}", path, where, problem));
}

Result<YAML::Node> Load(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  YAML::Node node;
  try {  // yaml-cpp reports errors by throwing; they end here
    node = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: line {}: not YAML ({})", path, error.mark.line + 1, error.msg));
  }
  if (!node.IsDefined() || node.IsNull() || node.size() == 0) {
    if (node.IsDefined() && node.IsScalar()) {
      return Bad(path, node, "holds a text (expected a mapping)");
    }
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: the mapping is empty. Leave the option out to map nothing", path));
  }
  return node;
}

Result<std::string> TextOf(const std::string& path, const YAML::Node& node, std::string_view what) {
  if (!node.IsScalar() || node.Scalar().empty()) {
    return Bad(path, node, fmt::format("{} is not a text (expected a name)", what));
  }
  return node.Scalar();
}

// A map of texts to texts.
Result<TextPairs> PairsOf(const std::string& path, const YAML::Node& node) {
  if (!node.IsMap()) return Bad(path, node, "expected lines of the form `target: golden`");
  TextPairs pairs;
  std::unordered_set<std::string> known;
  for (const auto& entry : node) {
    PL_TRY_ASSIGN(std::string target, TextOf(path, entry.first, "a name on the left"));
    PL_TRY_ASSIGN(std::string golden,
                  TextOf(path, entry.second, fmt::format("the counterpart of {}", target)));
    if (!known.insert(target).second) {
      return Bad(path, entry.first, fmt::format("{} is mapped twice", target));
    }
    pairs.emplace_back(std::move(target), std::move(golden));
  }
  return pairs;
}

// The texts under one of `keys`; none when no key is there.
Result<std::vector<std::string>> ListOf(const std::string& path, const YAML::Node& rule,
                                        const std::vector<std::string>& keys) {
  std::vector<std::string> texts;
  for (const std::string& key : keys) {
    const YAML::Node node = rule[key];
    if (!node.IsDefined() || node.IsNull()) continue;
    if (!node.IsSequence()) return Bad(path, node, fmt::format("{} is not a list", key));
    for (const YAML::Node& element : node) {
      PL_TRY_ASSIGN(std::string text, TextOf(path, element, fmt::format("an entry of {}", key)));
      texts.push_back(std::move(text));
    }
    break;
  }
  return texts;
}

struct TermRule {
  std::string_view term;
  TextPairs ApiRule::*member;
};
constexpr TermRule kTerms[] = {{"args", &ApiRule::args},
                               {"output", &ApiRule::output},
                               {"parameters", &ApiRule::parameters},
                               {"parameters_grad", &ApiRule::parameters_grad}};

// True: the rule is complete. False: its lists differ in length, as `skipped` then says.
Result<bool> FillTerms(const std::string& path, const YAML::Node& node, ApiRule& rule,
                       std::vector<std::string>& skipped) {
  for (const TermRule& term : kTerms) {
    const auto keys = [&](std::string_view side) {
      const std::string key = fmt::format("{}_{}", side, term.term);
      return std::vector<std::string>{key, key + "s"};
    };
    PL_TRY_ASSIGN(const std::vector<std::string> target, ListOf(path, node, keys("ms")));
    PL_TRY_ASSIGN(const std::vector<std::string> golden, ListOf(path, node, keys("pt")));
    if (target.size() != golden.size()) {
      skipped.push_back(
          fmt::format("{}: {}: ms_{} and pt_{} have {} and {} entries; the rule is "
                      "not used",
                      path, rule.target, term.term, term.term, target.size(), golden.size()));
      return false;
    }
    for (size_t i = 0; i < target.size(); ++i) {
      (rule.*term.member).emplace_back(target[i], golden[i]);
    }
  }
  return true;
}

Status AddApiRule(const std::string& path, const YAML::Node& node, ApiRules& result) {
  if (!node.IsMap()) return Bad(path, node, "expected a rule with the keys ms_api and pt_api");
  ApiRule rule;
  for (const auto& [key, member] :
       {std::pair{"ms_api", &ApiRule::target}, std::pair{"pt_api", &ApiRule::golden}}) {
    const YAML::Node name = node[key];
    if (!name.IsDefined()) return Bad(path, node, fmt::format("a rule has no key {}", key));
    PL_TRY_ASSIGN(rule.*member, TextOf(path, name, key));
  }
  PL_TRY_ASSIGN(const bool complete, FillTerms(path, node, rule, result.skipped));
  if (complete) result.rules.push_back(std::move(rule));
  return {};
}

}  // namespace

Result<TextPairs> ReadDataMapping(const std::string& path) {
  PL_TRY_ASSIGN(const YAML::Node node, Load(path));
  return PairsOf(path, node);
}

Result<ApiRules> ReadApiMapping(const std::string& path) {
  PL_TRY_ASSIGN(const YAML::Node node, Load(path));
  ApiRules result;
  if (!node.IsSequence()) {
    PL_TRY(AddApiRule(path, node, result));
    return result;
  }
  for (const YAML::Node& element : node) PL_TRY(AddApiRule(path, element, result));
  return result;
}

Result<TextPairs> ReadCellMapping(const std::string& path) {
  PL_TRY_ASSIGN(const YAML::Node node, Load(path));
  return PairsOf(path, node);
}

Result<std::vector<LayerRules>> ReadLayerMapping(const std::string& path) {
  PL_TRY_ASSIGN(const YAML::Node node, Load(path));
  if (!node.IsMap()) return Bad(path, node, "expected class names, each with its paths");
  std::vector<LayerRules> result;
  for (const auto& entry : node) {
    LayerRules& rules = result.emplace_back();
    PL_TRY_ASSIGN(rules.class_name, TextOf(path, entry.first, "a class name"));
    if (rules.class_name == "Cell") rules.class_name = "TopLayer";
    PL_TRY_ASSIGN(rules.paths, PairsOf(path, entry.second));
    // Releases differ in whether the golden side may carry a note in brackets.
    for (auto& [target, golden] : rules.paths) golden = golden.substr(0, golden.find('('));
  }
  return result;
}

}  // namespace plumbline::match
