#include "match/mapping_file.h"

#include <fmt/format.h>

#include <unordered_set>

#include "base/yaml_file.h"

namespace plumbline::match {
namespace {

Result<YamlFile> Load(const std::string& path) {
  PL_TRY_ASSIGN(YamlFile file, YamlFile::Read(path));
  const YAML::Node& root = file.root();
  if (root.IsDefined() && root.IsScalar()) {
    return file.Bad(root, "holds a text (expected a mapping)");
  }
  if (!root.IsDefined() || root.IsNull() || root.size() == 0) {
    return file.Bad("the mapping is empty. Leave the option out to map nothing");
  }
  return file;
}

Result<std::string> TextOf(const YamlFile& file, const YAML::Node& node, std::string_view what) {
  if (!node.IsScalar() || node.Scalar().empty()) {
    return file.Bad(node, fmt::format("{} is not a text (expected a name)", what));
  }
  return node.Scalar();
}

// A map of texts to texts.
Result<TextPairs> PairsOf(const YamlFile& file, const YAML::Node& node) {
  if (!node.IsMap()) return file.Bad(node, "expected lines of the form `target: golden`");
  TextPairs pairs;
  std::unordered_set<std::string> known;
  for (const auto& entry : node) {
    PL_TRY_ASSIGN(std::string target, TextOf(file, entry.first, "a name on the left"));
    PL_TRY_ASSIGN(std::string golden,
                  TextOf(file, entry.second, fmt::format("the counterpart of {}", target)));
    if (!known.insert(target).second) {
      return file.Bad(entry.first, fmt::format("{} is mapped twice", target));
    }
    pairs.emplace_back(std::move(target), std::move(golden));
  }
  return pairs;
}

// The texts under one of `keys`; none when no key is there.
Result<std::vector<std::string>> ListOf(const YamlFile& file, const YAML::Node& rule,
                                        const std::vector<std::string>& keys) {
  std::vector<std::string> texts;
  for (const std::string& key : keys) {
    const YAML::Node node = rule[key];
    if (!node.IsDefined() || node.IsNull()) continue;
    if (!node.IsSequence()) return file.Bad(node, fmt::format("{} is not a list", key));
    for (const YAML::Node& element : node) {
      PL_TRY_ASSIGN(std::string text, TextOf(file, element, fmt::format("an entry of {}", key)));
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
Result<bool> FillTerms(const YamlFile& file, const YAML::Node& node, ApiRule& rule,
                       std::vector<std::string>& skipped) {
  for (const TermRule& term : kTerms) {
    const auto keys = [&](std::string_view side) {
      const std::string key = fmt::format("{}_{}", side, term.term);
      return std::vector<std::string>{key, key + "s"};
    };
    PL_TRY_ASSIGN(const std::vector<std::string> target, ListOf(file, node, keys("ms")));
    PL_TRY_ASSIGN(const std::vector<std::string> golden, ListOf(file, node, keys("pt")));
    if (target.size() != golden.size()) {
      skipped.push_back(fmt::format(
          "{}: {}: ms_{} and pt_{} have {} and {} entries; the rule is "
          "not used",
          file.path(), rule.target, term.term, term.term, target.size(), golden.size()));
      return false;
    }
    for (size_t i = 0; i < target.size(); ++i) {
      (rule.*term.member).emplace_back(target[i], golden[i]);
    }
  }
  return true;
}

Status AddApiRule(const YamlFile& file, const YAML::Node& node, ApiRules& result) {
  if (!node.IsMap()) return file.Bad(node, "expected a rule with the keys ms_api and pt_api");
  ApiRule rule;
  for (const auto& [key, member] :
       {std::pair{"ms_api", &ApiRule::target}, std::pair{"pt_api", &ApiRule::golden}}) {
    const YAML::Node name = node[key];
    if (!name.IsDefined()) return file.Bad(node, fmt::format("a rule has no key {}", key));
    PL_TRY_ASSIGN(rule.*member, TextOf(file, name, key));
  }
  PL_TRY_ASSIGN(const bool complete, FillTerms(file, node, rule, result.skipped));
  if (complete) result.rules.push_back(std::move(rule));
  return {};
}

}  // namespace

Result<TextPairs> ReadDataMapping(const std::string& path) {
  PL_TRY_ASSIGN(const YamlFile file, Load(path));
  return PairsOf(file, file.root());
}

Result<ApiRules> ReadApiMapping(const std::string& path) {
  PL_TRY_ASSIGN(const YamlFile file, Load(path));
  ApiRules result;
  if (!file.root().IsSequence()) {
    PL_TRY(AddApiRule(file, file.root(), result));
    return result;
  }
  for (const YAML::Node& element : file.root()) PL_TRY(AddApiRule(file, element, result));
  return result;
}

Result<TextPairs> ReadCellMapping(const std::string& path) {
  PL_TRY_ASSIGN(const YamlFile file, Load(path));
  return PairsOf(file, file.root());
}

Result<std::vector<LayerRules>> ReadLayerMapping(const std::string& path) {
  PL_TRY_ASSIGN(const YamlFile file, Load(path));
  if (!file.root().IsMap())
    return file.Bad(file.root(), "expected class names, each with its paths");
  std::vector<LayerRules> result;
  for (const auto& entry : file.root()) {
    LayerRules& rules = result.emplace_back();
    PL_TRY_ASSIGN(rules.class_name, TextOf(file, entry.first, "a class name"));
    if (rules.class_name == "Cell") rules.class_name = "TopLayer";
    PL_TRY_ASSIGN(rules.paths, PairsOf(file, entry.second));
    // Releases differ in whether the golden side may carry a note in brackets.
    for (auto& [target, golden] : rules.paths) golden = golden.substr(0, golden.find('('));
  }
  return result;
}

}  // namespace plumbline::match
