// A rule from its members, as files and configurations have them (docs/reference/watch.md).

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text/text_parts.h"
#include "watch/rules/rule.h"

namespace plumbline::watch {
namespace {

class RuleMaker {
 public:
  RuleMaker(const std::vector<RuleField>& fields, std::string* where)
      : fields_(fields), where_(*where) {}

  Result<Rule> Run() {
    PL_TRY(CheckKeys());
    const std::string when = TextOf("when");
    if (when.empty()) return Bad("", "a rule has no \"when\" (expected an expression)");
    Result<Rule> rule = Rules::ParseRule(when);
    if (!rule) return Bad("when", rule.error().message());
    if (Has("name")) rule->name = TextOf("name");
    if (rule->name.empty()) return Bad("name", "name is empty");
    PL_TRY(ReadSeverity(*rule));
    PL_TRY(ReadNonfinite(*rule));
    if (Has("for")) {
      const auto steps = ParseNatural(TextOf("for"));
      if (!steps || *steps < 1) return Bad("for", "for: expected a number from 1 on");
      rule->for_steps = *steps;
    }
    if (Has("max_gap")) {
      rule->max_gap = ParseNatural(TextOf("max_gap"));
      if (!rule->max_gap || *rule->max_gap < 1) {
        return Bad("max_gap", "max_gap: expected a number from 1 on");
      }
    }
    PL_TRY(ReadScope(rule->on));
    return rule;
  }

 private:
  [[nodiscard]] Error Bad(std::string_view key, std::string problem) const {
    where_ = key;
    return Error(ErrorCode::kInvalidArgument, std::move(problem));
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

  [[nodiscard]] Status CheckKeys() const {
    static const std::vector<std::string> rule = {"name", "when",      "on",     "severity",
                                                  "for",  "nonfinite", "max_gap"};
    static const std::vector<std::string> scope = {"nodes", "ops",   "code", "slots",
                                                   "ranks", "steps", "io"};
    constexpr std::string_view kOn = "on.";
    std::set<std::string> seen;
    for (const RuleField& field : fields_) {
      const bool is_in_scope = field.key.starts_with(kOn);
      const std::string key = is_in_scope ? field.key.substr(kOn.size()) : field.key;
      const std::vector<std::string>& known = is_in_scope ? scope : rule;
      if (std::ranges::find(known, key) == known.end()) {
        return Bad(field.key, fmt::format("unknown key \"{}\"; {}", key, KnownWords(key, known)));
      }
      if (!seen.insert(field.key).second) {
        return Bad(field.key, fmt::format("\"{}\" is there twice", key));
      }
    }
    return {};
  }

  [[nodiscard]] Status ReadSeverity(Rule& rule) const {
    if (!Has("severity")) return {};
    const std::string text = TextOf("severity");
    for (const Severity one : {Severity::kError, Severity::kWarning, Severity::kNote}) {
      if (text != SeverityName(one)) continue;
      rule.severity = one;
      return {};
    }
    return Bad("severity", fmt::format("severity is \"{}\"; {}", text,
                                       KnownWords(text, {"error", "warning", "note"})));
  }

  [[nodiscard]] Status ReadNonfinite(Rule& rule) const {
    if (!Has("nonfinite")) return {};
    const std::string text = TextOf("nonfinite");
    rule.ignores_nonfinite = text == "ignore";
    if (text == "ignore" || text == "skip") return {};
    return Bad("nonfinite", fmt::format("nonfinite is \"{}\"; {}", text,
                                        KnownWords(text, {"skip", "ignore"})));
  }

  // A text or a list of texts.
  [[nodiscard]] Result<std::vector<std::string>> TextsOf(const std::string& key) const {
    const RuleField* field = Find("on." + key);
    if (field == nullptr) return std::vector<std::string>();
    if (field->texts.empty() || std::ranges::count(field->texts, "") > 0) {
      return Bad(field->key, fmt::format("{}: expected a text or a list of texts", key));
    }
    return field->texts;
  }

  // "0-3", 2 or [0, 2].
  [[nodiscard]] Result<NumberList> NumbersOf(const std::string& key) const {
    PL_TRY_ASSIGN(const std::vector<std::string> texts, TextsOf(key));
    std::string joined;
    for (const std::string& text : texts) joined += (joined.empty() ? "" : ",") + text;
    Result<NumberList> list = NumberList::Parse(joined);
    if (!list) return Bad("on." + key, fmt::format("{} {}", key, list.error().message()));
    return list;
  }

  [[nodiscard]] Status ReadScope(RuleScope& scope) const {
    if (Has("on")) return Bad("on", "on: expected nodes, ops, code, slots, ranks, ...");
    PL_TRY_ASSIGN(scope.nodes, TextsOf("nodes"));
    PL_TRY_ASSIGN(scope.ops, TextsOf("ops"));
    scope.code = TextOf("on.code");
    PL_TRY_ASSIGN(const std::vector<std::string> slots, TextsOf("slots"));
    for (const std::string& slot : slots) {
      const auto number = ParseNatural(slot);
      if (!number) return Bad("on.slots", "slots: expected numbers from 0 on");
      scope.slots.push_back(*number);
    }
    PL_TRY_ASSIGN(scope.ranks, NumbersOf("ranks"));
    PL_TRY_ASSIGN(scope.steps, NumbersOf("steps"));
    const std::string io = TextOf("on.io");
    if (io == "out") scope.side = WatchedSide::kOutputs;
    if (io == "in") scope.side = WatchedSide::kInputs;
    if (io == "both") scope.side = WatchedSide::kBoth;
    if (Has("on.io") && !scope.side) return Bad("on.io", "io: expected in, out or both");
    return {};
  }

  const std::vector<RuleField>& fields_;
  std::string& where_;
};

}  // namespace

Result<Rule> Rules::RuleOf(const std::vector<RuleField>& fields, std::string* where) {
  return RuleMaker(fields, where).Run();
}

}  // namespace plumbline::watch
