// Rules files (docs/reference/watch.md): YAML with `version: 1` and a list of rules.

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

  void ReadRule(const YAML::Node& node) {
    if (!node.IsMap()) return Tell(node, "expected a rule with name and when");
    CheckKeys(node, {"name", "when", "on", "severity", "for", "nonfinite", "max_gap"});
    Rule rule = ReadWhen(node);
    if (node["name"]) ReadName(node["name"], rule);
    ReadSeverity(node["severity"], rule);
    ReadNonfinite(node["nonfinite"], rule);
    if (node["for"]) rule.for_steps = CountOf(node["for"], "for");
    if (node["max_gap"]) rule.max_gap = CountOf(node["max_gap"], "max_gap");
    if (node["on"]) ReadScope(node["on"], rule.on);
    if (!rule.name.empty()) rules_.Add(std::move(rule));
  }

  Rule ReadWhen(const YAML::Node& node) {
    const std::string when = TextOf(node["when"]);
    if (when.empty()) {
      Tell(node, "a rule has no \"when\" (expected an expression)");
      return {};
    }
    Result<Rule> rule = Rules::ParseRule(when);
    if (rule) return *std::move(rule);
    Tell(node["when"], rule.error().message());
    return {};
  }

  void ReadName(const YAML::Node& node, Rule& rule) {
    rule.name = TextOf(node);
    if (rule.name.empty()) Tell(node, "name is empty");
    const bool is_taken = std::ranges::any_of(
        rules_.list(), [&](const Rule& other) { return other.name == rule.name; });
    if (is_taken) Tell(node, fmt::format("another rule is called \"{}\"", rule.name));
  }

  void ReadSeverity(const YAML::Node& node, Rule& rule) {
    if (!node) return;
    const std::string text = TextOf(node);
    for (const Severity one : {Severity::kError, Severity::kWarning, Severity::kNote}) {
      if (text != SeverityName(one)) continue;
      rule.severity = one;
      return;
    }
    Tell(node, fmt::format("severity is \"{}\"; {}", text,
                           KnownWords(text, {"error", "warning", "note"})));
  }

  void ReadNonfinite(const YAML::Node& node, Rule& rule) {
    if (!node) return;
    const std::string text = TextOf(node);
    rule.ignores_nonfinite = text == "ignore";
    if (text == "ignore" || text == "skip") return;
    Tell(node, fmt::format("nonfinite is \"{}\"; {}", text, KnownWords(text, {"skip", "ignore"})));
  }

  int64_t CountOf(const YAML::Node& node, std::string_view key) {
    const auto count = ParseNatural(TextOf(node));
    if (count && *count >= 1) return *count;
    Tell(node, fmt::format("{}: expected a number from 1 on", key));
    return 1;
  }

  // A text or a list of texts.
  std::vector<std::string> TextsOf(const YAML::Node& node, std::string_view key) {
    std::vector<std::string> texts;
    if (!node) return texts;
    if (node.IsScalar()) texts.push_back(node.Scalar());
    if (node.IsSequence()) {
      for (size_t i = 0; i < node.size(); ++i) texts.push_back(TextOf(node[i]));
    }
    if (!texts.empty() && std::ranges::count(texts, "") == 0) return texts;
    Tell(node, fmt::format("{}: expected a text or a list of texts", key));
    return {};
  }

  // "0-3", 2 or [0, 2].
  NumberList NumbersOf(const YAML::Node& node, std::string_view key) {
    std::string joined;
    for (const std::string& text : TextsOf(node, key)) joined += (joined.empty() ? "" : ",") + text;
    Result<NumberList> list = NumberList::Parse(joined);
    if (list) return *std::move(list);
    Tell(node, fmt::format("{} {}", key, list.error().message()));
    return {};
  }

  void ReadScope(const YAML::Node& node, RuleScope& scope) {
    if (!node.IsMap()) return Tell(node, "on: expected nodes, ops, code, slots, ranks, ...");
    CheckKeys(node, {"nodes", "ops", "code", "slots", "ranks", "steps", "io"});
    scope.nodes = TextsOf(node["nodes"], "nodes");
    scope.ops = TextsOf(node["ops"], "ops");
    scope.code = TextOf(node["code"]);
    for (const std::string& slot : TextsOf(node["slots"], "slots")) {
      const auto number = ParseNatural(slot);
      if (number) {
        scope.slots.push_back(*number);
      } else {
        Tell(node["slots"], "slots: expected numbers from 0 on");
      }
    }
    scope.ranks = NumbersOf(node["ranks"], "ranks");
    scope.steps = NumbersOf(node["steps"], "steps");
    const std::string io = TextOf(node["io"]);
    if (io == "out") scope.side = WatchedSide::kOutputs;
    if (io == "in") scope.side = WatchedSide::kInputs;
    if (io == "both") scope.side = WatchedSide::kBoth;
    if (node["io"] && !scope.side) Tell(node["io"], "io: expected in, out or both");
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
