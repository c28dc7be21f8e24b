// Rules files (docs/reference/watch.md): YAML with `version: 1` and a list of rules.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/file/file.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "base/text/yaml_file.h"
#include "watch/rules/rule.h"

namespace plumbline::watch {
namespace {

// Reads what it can, and keeps every fault.
class RulesReader {
 public:
  explicit RulesReader(const YamlFile& file) : file_(file) {}

  Result<Rules> Run() {
    const YAML::Node& root = file_.root();
    if (!root.IsDefined() || !root.IsMap()) return file_.Bad("expected version and rules");
    CheckKeys(root, {"version", "rules"});
    if (TextOf(root["version"]) != "1") {
      Tell(root, fmt::format("version is {} (expected 1)",
                             root["version"] ? TextOf(root["version"]) : "missing"));
    }
    const YAML::Node list = root["rules"];
    if (!list || !list.IsSequence() || list.size() == 0) {
      Tell(root, "rules: expected a list of rules");
    } else {
      for (size_t i = 0; i < list.size(); ++i) ReadRule(list[i]);
    }
    if (faults_.empty()) return std::move(rules_);
    if (faults_.size() == 1) return faults_.front();
    return AllFaults();
  }

 private:
  static std::string TextOf(const YAML::Node& node) {
    return node && node.IsScalar() ? node.Scalar() : std::string();
  }

  void Tell(const YAML::Node& node, std::string_view problem) {
    faults_.push_back(file_.Bad(node, problem));
  }

  // "w.yaml: 2 faults", a line each.
  [[nodiscard]] Error AllFaults() const {
    const std::string start = file_.path() + ": ";
    std::string text = fmt::format("{}{}", start, CountText(faults_.size(), "fault"));
    for (const Error& fault : faults_) {
      std::string_view line = fault.message();
      if (line.starts_with(start)) line.remove_prefix(start.size());
      text += fmt::format("\n  {}", line);
    }
    return Error(ErrorCode::kInvalidArgument, std::move(text));
  }

  void CheckKeys(const YAML::Node& map, const std::vector<std::string>& known) {
    std::set<std::string> seen;
    for (const auto& member : map) {
      const std::string key = TextOf(member.first);
      if (std::ranges::find(known, key) == known.end()) {
        Tell(member.first, fmt::format("unknown key \"{}\"; {}", key, KnownWords(key, known)));
      } else if (!seen.insert(key).second) {
        Tell(member.first, fmt::format("\"{}\" is there twice", key));
      }
    }
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

  void ReadRule(const YAML::Node& node) {
    if (!node.IsMap()) return Tell(node, "expected a rule with name and when");
    std::vector<RuleField> fields;
    std::vector<YAML::Node> nodes;
    Flatten(node, "", fields, nodes);
    for (const RuleFault& fault : rules_.AddFrom(fields)) {
      Tell(fault.field ? nodes[*fault.field] : node, fault.problem);
    }
  }

  const YamlFile& file_;
  std::vector<Error> faults_;
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
