// Rules files (docs/reference/watch.md): YAML with `version: 1` and a list of rules.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/file/file.h"
#include "base/text/text_parts.h"
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

  Status ReadRule(const YAML::Node& node) {
    if (!node.IsMap()) return file_.Bad(node, "expected a rule with name and when");
    PL_TRY(CheckKeys(node, {"name", "when", "on", "severity", "for", "nonfinite", "max_gap"}));
    const std::string when = TextOf(node["when"]);
    if (when.empty()) return file_.Bad(node, "a rule has no \"when\" (expected an expression)");
    Result<Rule> rule = Rules::ParseRule(when);
    if (!rule) return file_.Bad(node["when"], rule.error().message());
    if (node["name"]) rule->name = TextOf(node["name"]);
    if (rule->name.empty()) return file_.Bad(node["name"], "name is empty");
    for (const Rule& other : rules_.list()) {
      if (other.name == rule->name && node["name"]) {
        return file_.Bad(node["name"], fmt::format("another rule is called \"{}\"", rule->name));
      }
    }
    PL_TRY(ReadSeverity(node["severity"], *rule));
    PL_TRY(ReadNonfinite(node["nonfinite"], *rule));
    if (node["for"]) {
      const auto steps = ParseNatural(TextOf(node["for"]));
      if (!steps || *steps < 1) return file_.Bad(node["for"], "for: expected a number from 1 on");
      rule->for_steps = *steps;
    }
    if (node["max_gap"]) {
      rule->max_gap = ParseNatural(TextOf(node["max_gap"]));
      if (!rule->max_gap || *rule->max_gap < 1) {
        return file_.Bad(node["max_gap"], "max_gap: expected a number from 1 on");
      }
    }
    if (node["on"]) PL_TRY(ReadScope(node["on"], rule->on));
    rules_.Add(*std::move(rule));
    return {};
  }

  [[nodiscard]] Status ReadSeverity(const YAML::Node& node, Rule& rule) const {
    if (!node) return {};
    const std::string text = TextOf(node);
    for (const Severity one : {Severity::kError, Severity::kWarning, Severity::kNote}) {
      if (text != SeverityName(one)) continue;
      rule.severity = one;
      return {};
    }
    return file_.Bad(node, fmt::format("severity is \"{}\"; {}", text,
                                       KnownWords(text, {"error", "warning", "note"})));
  }

  [[nodiscard]] Status ReadNonfinite(const YAML::Node& node, Rule& rule) const {
    if (!node) return {};
    const std::string text = TextOf(node);
    rule.ignores_nonfinite = text == "ignore";
    if (text == "ignore" || text == "skip") return {};
    return file_.Bad(node,
                     fmt::format("nonfinite is \"{}\"; {}", text,
                                 KnownWords(text, {"skip", "ignore"})));
  }

  // A text or a list of texts.
  [[nodiscard]] Result<std::vector<std::string>> TextsOf(const YAML::Node& node,
                                                         std::string_view key) const {
    std::vector<std::string> texts;
    if (!node) return texts;
    if (node.IsScalar()) texts.push_back(node.Scalar());
    if (node.IsSequence()) {
      for (size_t i = 0; i < node.size(); ++i) texts.push_back(TextOf(node[i]));
    }
    if (texts.empty() || std::ranges::count(texts, "") > 0) {
      return file_.Bad(node, fmt::format("{}: expected a text or a list of texts", key));
    }
    return texts;
  }

  // "0-3", 2 or [0, 2].
  [[nodiscard]] Result<NumberList> NumbersOf(const YAML::Node& node, std::string_view key) const {
    if (!node) return NumberList();
    PL_TRY_ASSIGN(const std::vector<std::string> texts, TextsOf(node, key));
    std::string joined;
    for (const std::string& text : texts) joined += (joined.empty() ? "" : ",") + text;
    Result<NumberList> list = NumberList::Parse(joined);
    if (!list) return file_.Bad(node, fmt::format("{} {}", key, list.error().message()));
    return list;
  }

  Status ReadScope(const YAML::Node& node, RuleScope& scope) const {
    if (!node.IsMap()) return file_.Bad(node, "on: expected nodes, ops, code, slots, ranks, ...");
    PL_TRY(CheckKeys(node, {"nodes", "ops", "code", "slots", "ranks", "steps", "io"}));
    PL_TRY_ASSIGN(scope.nodes, TextsOf(node["nodes"], "nodes"));
    PL_TRY_ASSIGN(scope.ops, TextsOf(node["ops"], "ops"));
    scope.code = TextOf(node["code"]);
    PL_TRY_ASSIGN(const std::vector<std::string> slots, TextsOf(node["slots"], "slots"));
    for (const std::string& slot : slots) {
      const auto number = ParseNatural(slot);
      if (!number) return file_.Bad(node["slots"], "slots: expected numbers from 0 on");
      scope.slots.push_back(*number);
    }
    PL_TRY_ASSIGN(scope.ranks, NumbersOf(node["ranks"], "ranks"));
    PL_TRY_ASSIGN(scope.steps, NumbersOf(node["steps"], "steps"));
    const std::string io = TextOf(node["io"]);
    if (io == "out") scope.side = WatchedSide::kOutputs;
    if (io == "in") scope.side = WatchedSide::kInputs;
    if (io == "both") scope.side = WatchedSide::kBoth;
    if (node["io"] && !scope.side) return file_.Bad(node["io"], "io: expected in, out or both");
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
