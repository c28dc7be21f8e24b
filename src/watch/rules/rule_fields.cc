// A rule from its members, as files and configurations have them (docs/reference/watch.md).

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text/text_parts.h"
#include "watch/rules/rule.h"

namespace plumbline::watch {
namespace {

// Reads what it can, and keeps every fault.
class RuleMaker {
 public:
  RuleMaker(const std::vector<RuleField>& fields, std::vector<RuleFault>& faults)
      : fields_(fields), faults_(faults) {}

  Rule Run() {
    CheckKeys();
    Rule rule = ReadWhen();
    if (Has("name")) {
      rule.name = TextOf("name");
      if (rule.name.empty()) Tell("name", "name is empty");
    }
    ReadSeverity(rule);
    ReadNonfinite(rule);
    if (Has("for")) rule.for_steps = CountOf("for");
    if (Has("max_gap")) rule.max_gap = CountOf("max_gap");
    ReadScope(rule.on);
    return rule;
  }

 private:
  void Tell(std::string_view key, std::string problem) {
    const RuleField* field = Find(key);
    if (field == nullptr) return faults_.push_back({std::nullopt, std::move(problem)});
    faults_.push_back({static_cast<size_t>(field - fields_.data()), std::move(problem)});
  }

  [[nodiscard]] const RuleField* Find(std::string_view key) const {
    const auto found = std::ranges::find(fields_, key, &RuleField::key);
    return found == fields_.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool Has(std::string_view key) const { return Find(key) != nullptr; }
  [[nodiscard]] std::string TextOf(std::string_view key) const {
    const RuleField* field = Find(key);
    return field == nullptr || field->is_list ? std::string() : field->texts.front();
  }

  void CheckKeys() {
    static const std::vector<std::string> rule = {"name", "when",      "on",     "severity",
                                                  "for",  "nonfinite", "max_gap"};
    static const std::vector<std::string> scope = {"nodes", "ops",   "code", "slots",
                                                   "ranks", "steps", "io"};
    constexpr std::string_view kOn = "on.";
    std::set<std::string> seen;
    for (size_t i = 0; i < fields_.size(); ++i) {
      const bool is_in_scope = fields_[i].key.starts_with(kOn);
      const std::string key = is_in_scope ? fields_[i].key.substr(kOn.size()) : fields_[i].key;
      const std::vector<std::string>& known = is_in_scope ? scope : rule;
      if (std::ranges::find(known, key) == known.end()) {
        faults_.push_back({i, fmt::format("unknown key \"{}\"; {}", key, KnownWords(key, known))});
      } else if (!seen.insert(fields_[i].key).second) {
        faults_.push_back({i, fmt::format("\"{}\" is there twice", key)});
      }
    }
  }

  Rule ReadWhen() {
    const std::string when = TextOf("when");
    if (when.empty()) {
      Tell("when", "a rule has no \"when\" (expected an expression)");
      return {};
    }
    Result<Rule> rule = Rules::ParseRule(when);
    if (rule) return *std::move(rule);
    Tell("when", rule.error().message());
    return {};
  }

  void ReadSeverity(Rule& rule) {
    if (!Has("severity")) return;
    const std::string text = TextOf("severity");
    for (const Severity one : {Severity::kError, Severity::kWarning, Severity::kNote}) {
      if (text != SeverityName(one)) continue;
      rule.severity = one;
      return;
    }
    Tell("severity", fmt::format("severity is \"{}\"; {}", text,
                                 KnownWords(text, {"error", "warning", "note"})));
  }

  void ReadNonfinite(Rule& rule) {
    if (!Has("nonfinite")) return;
    const std::string text = TextOf("nonfinite");
    rule.ignores_nonfinite = text == "ignore";
    if (text == "ignore" || text == "skip") return;
    Tell("nonfinite", fmt::format("nonfinite is \"{}\"; {}", text,
                                  KnownWords(text, {"skip", "ignore"})));
  }

  int64_t CountOf(std::string_view key) {
    const auto count = ParseNatural(TextOf(key));
    if (count && *count >= 1) return *count;
    Tell(key, fmt::format("{}: expected a number from 1 on", key));
    return 1;
  }

  // A text or a list of texts.
  std::vector<std::string> TextsOf(const std::string& key) {
    const RuleField* field = Find("on." + key);
    if (field == nullptr) return {};
    if (!field->texts.empty() && std::ranges::count(field->texts, "") == 0) return field->texts;
    Tell(field->key, fmt::format("{}: expected a text or a list of texts", key));
    return {};
  }

  // "0-3", 2 or [0, 2].
  NumberList NumbersOf(const std::string& key) {
    std::string joined;
    for (const std::string& text : TextsOf(key)) joined += (joined.empty() ? "" : ",") + text;
    Result<NumberList> list = NumberList::Parse(joined);
    if (list) return *std::move(list);
    Tell("on." + key, fmt::format("{} {}", key, list.error().message()));
    return {};
  }

  void ReadScope(RuleScope& scope) {
    if (Has("on")) Tell("on", "on: expected nodes, ops, code, slots, ranks, ...");
    scope.nodes = TextsOf("nodes");
    scope.ops = TextsOf("ops");
    scope.code = TextOf("on.code");
    for (const std::string& slot : TextsOf("slots")) {
      const auto number = ParseNatural(slot);
      if (number) {
        scope.slots.push_back(*number);
      } else {
        Tell("on.slots", "slots: expected numbers from 0 on");
      }
    }
    scope.ranks = NumbersOf("ranks");
    scope.steps = NumbersOf("steps");
    const std::string io = TextOf("on.io");
    if (io == "out") scope.side = WatchedSide::kOutputs;
    if (io == "in") scope.side = WatchedSide::kInputs;
    if (io == "both") scope.side = WatchedSide::kBoth;
    if (Has("on.io") && !scope.side) Tell("on.io", "io: expected in, out or both");
  }

  const std::vector<RuleField>& fields_;
  std::vector<RuleFault>& faults_;
};

}  // namespace

std::vector<RuleFault> Rules::AddFrom(const std::vector<RuleField>& fields) {
  std::vector<RuleFault> faults;
  Rule rule = RuleMaker(fields, faults).Run();
  const auto name = std::ranges::find(fields, "name", &RuleField::key);
  const bool is_taken = std::ranges::find(rules_, rule.name, &Rule::name) != rules_.end();
  if (name != fields.end() && !rule.name.empty() && is_taken) {
    faults.push_back({static_cast<size_t>(name - fields.begin()),
                      fmt::format("another rule is called \"{}\"", rule.name)});
  }
  if (!rule.name.empty()) Add(std::move(rule));
  return faults;
}

}  // namespace plumbline::watch
