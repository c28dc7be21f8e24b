// Rules files (docs/reference/watch.md): YAML with `version: 1` and a list of rules.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/file/file.h"
#include "base/text/yaml_file.h"
#include "watch/rules/rule.h"

namespace plumbline::watch {
namespace {

class RulesReader {
 public:
  explicit RulesReader(const YamlFile& file) : file_(file) {}

  Result<Rules> Run() {
    const YAML::Node& root = file_.root();
    if (!root.IsDefined() || !root.IsMap()) return file_.Bad("expected version and rules");
    PL_TRY(CheckKeys(root, {"version", "rules"}));
    if (TextOf(root["version"]) != "1") {
      return file_.Bad(root, fmt::format("version is {} (expected 1)",
                                         root["version"] ? TextOf(root["version"]) : "missing"));
    }
    const YAML::Node list = root["rules"];
    if (!list || !list.IsSequence() || list.size() == 0) {
      return file_.Bad(root, "rules: expected a list of rules");
    }
    for (size_t i = 0; i < list.size(); ++i) PL_TRY(ReadRule(list[i]));
    return std::move(rules_);
  }

 private:
  static std::string TextOf(const YAML::Node& node) {
    return node && node.IsScalar() ? node.Scalar() : std::string();
  }

  [[nodiscard]] Status CheckKeys(const YAML::Node& map,
                                 const std::vector<std::string>& known) const {
    std::set<std::string> seen;
    for (const auto& member : map) {
      const std::string key = TextOf(member.first);
      if (std::ranges::find(known, key) == known.end()) {
        return file_.Bad(member.first,
                         fmt::format("unknown key \"{}\"; {}", key, KnownWords(key, known)));
      }
      if (!seen.insert(key).second) {
        return file_.Bad(member.first, fmt::format("\"{}\" is there twice", key));
      }
    }
    return {};
  }

  // Appends the members of a map as fields, with the node of each.
  static void Flatten(const YAML::Node& map, const std::string& before,
                      std::vector<RuleField>& fields, std::vector<YAML::Node>& nodes) {
    for (const auto& member : map) {
      const YAML::Node& value = member.second;
      RuleField field{before + TextOf(member.first), {}, value.IsSequence()};
      if (field.key == "on" && value.IsMap()) {
        Flatten(value, "on.", fields, nodes);
        continue;
      }
      if (!field.is_list) field.texts.push_back(TextOf(value));
      for (size_t i = 0; field.is_list && i < value.size(); ++i) {
        field.texts.push_back(TextOf(value[i]));
      }
      fields.push_back(std::move(field));
      nodes.push_back(member.first);
    }
  }

  Status ReadRule(const YAML::Node& node) {
    if (!node.IsMap()) return file_.Bad(node, "expected a rule with name and when");
    std::vector<RuleField> fields;
    std::vector<YAML::Node> nodes;
    Flatten(node, "", fields, nodes);
    std::string where;
    Result<Rule> rule = Rules::RuleOf(fields, &where);
    const auto place = [&](std::string_view key) {
      const auto found = std::ranges::find(fields, key, &RuleField::key);
      return found == fields.end() ? node : nodes[static_cast<size_t>(found - fields.begin())];
    };
    if (!rule) return file_.Bad(place(where), rule.error().message());
    const bool is_named = std::ranges::find(fields, "name", &RuleField::key) != fields.end();
    for (const Rule& other : rules_.list()) {
      if (other.name == rule->name && is_named) {
        return file_.Bad(place("name"),
                         fmt::format("another rule is called \"{}\"", rule->name));
      }
    }
    rules_.Add(*std::move(rule));
    return {};
  }

  const YamlFile& file_;
  Rules rules_;
};

}  // namespace

Result<Rules> Rules::ParseFile(const std::string& text, const std::string& path) {
  PL_TRY_ASSIGN(const YamlFile file, YamlFile::Parse(text, path, ErrorCode::kInvalidArgument));
  return RulesReader(file).Run();
}

Result<Rules> Rules::ReadFile(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, plumbline::ReadFile(path));
  return ParseFile(text, path);
}

}  // namespace plumbline::watch
