// Rules: what is looked for, where, and the answer for one tensor at one step. One evaluator for
// recordings and for a training that goes on.

#ifndef PLUMBLINE_WATCH_RULES_RULE_H_
#define PLUMBLINE_WATCH_RULES_RULE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "watch/rules/conditions.h"
#include "watch/rules/facts.h"

namespace plumbline::watch {

enum class Severity : uint8_t { kError, kWarning, kNote };
std::string_view SeverityName(Severity severity);

// A tree of conditions.
struct Expression {
  enum class Kind : uint8_t { kAnd, kOr, kNot, kCondition };
  Kind kind = Kind::kCondition;
  std::vector<Expression> parts;
  // Of a condition: alternatives, the tensors it is for, and which one it is.
  std::vector<Check> checks;
  TensorKinds kinds = kAnyTensor;
  bool at_first_step = false;
  std::string id;
};

// Numbers of a list such as "3,10-", both ends included.
class NumberList {
 public:
  // kInvalidArgument. "all" and "" are all.
  static Result<NumberList> Parse(std::string_view text);
  [[nodiscard]] bool Holds(int64_t number) const;
  [[nodiscard]] bool is_all() const { return parts_.empty(); }
  // Its parts that hold none of `there`, as text; empty: every part holds one.
  [[nodiscard]] std::string MissingFrom(const std::set<int64_t>& there) const;

 private:
  struct Part {
    int64_t first = 0, last = 0;
  };
  std::vector<Part> parts_;
};

// Whether `name` has a part that `pattern` describes: a text, with * ? and [...] as in file names;
// ^ and $ are the ends.
bool MatchesPattern(std::string_view pattern, std::string_view name);

enum class WatchedSide : uint8_t { kOutputs, kInputs, kBoth };

// Where a rule looks. Empty lists: everywhere.
struct RuleScope {
  std::vector<std::string> nodes, ops;
  std::string code;  // a part of a line of the call stack
  std::vector<int64_t> slots;
  NumberList ranks, steps;
  std::optional<WatchedSide> side;
  bool only_trained = false;  // weights of which a gradient or a moment is known
};

struct Rule {
  std::string name, text;
  Expression when;
  RuleScope on;
  Severity severity = Severity::kError;
  int64_t for_steps = 1;  // consecutive recorded steps before it is reported
  bool ignores_nonfinite = false;  // judges by the finite elements
  std::optional<int64_t> max_gap;  // of the earlier value, in executed steps
  bool takes_any_kind = false;     // whatever kinds its conditions are for

  // Of its conditions; comparisons alone take every tensor.
  TensorKinds kinds = kAnyTensor;
  bool needs_previous = false, at_first_step = false, asks_operators = false;
};

// What a rule is told about one tensor at one step.
struct Watched {
  const TensorFacts* now = nullptr;
  TensorKinds kinds = kAnyTensor;
  bool is_first_step = false;
  std::optional<bool> operator_overflowed;  // nothing: that was not recorded
  // The earlier value; null: there is none, for `why_no_previous`.
  const TensorFacts* before = nullptr;
  const ChangeFacts* change = nullptr;
  Reasons why_no_previous = kNoPrev;
  int64_t gap = 1;  // executed steps between the two
};

// What one check came to.
struct CheckOutcome {
  const Check* check = nullptr;
  Truth truth = Truth::kUnknown;
  Interval actual;
  Reasons reasons = 0;
};

struct Outcome {
  Truth verdict = Truth::kFalse;  // unknown: not evaluated
  Reasons reasons = 0;            // of a verdict that is unknown
  std::vector<CheckOutcome> checks;
  void Clear() {
    verdict = Truth::kFalse;
    reasons = 0;
    checks.clear();
  }
};

// A member of a rule in a file: its key, those of "on" as "on.nodes", with its text or texts. What
// is neither has the text "".
struct RuleField {
  std::string key;
  std::vector<std::string> texts;
  bool is_list = false;
};

// What is wrong with a rule. `field`: its place among those of the rule; nothing: the whole rule.
struct RuleFault {
  std::optional<size_t> field;
  std::string problem;
};

// Rules with what they want to know of tensors.
class Rules {
 public:
  // Adds a rule; its places in wishes() are filled in.
  void Add(Rule rule);
  // One expression (docs/reference/watch.md). kInvalidArgument, with the place in the text.
  static Result<Rule> ParseRule(std::string_view text);
  // Adds a rule from its members, and returns every fault of them. A rule with faults is there for
  // its name alone.
  std::vector<RuleFault> AddFrom(const std::vector<RuleField>& fields);
  // A rules file, and the rules of a text in its form; `path` is what errors name.
  static Result<Rules> ReadFile(const std::string& path);
  static Result<Rules> ParseFile(const std::string& text, const std::string& path);

  [[nodiscard]] const std::vector<Rule>& list() const { return rules_; }
  [[nodiscard]] const ScanWishes& wishes() const { return wishes_; }
  [[nodiscard]] bool needs_previous() const;

 private:
  std::vector<Rule> rules_;
  ScanWishes wishes_;
};

// Whether the rule is for a tensor of these kinds.
inline bool IsFor(const Rule& rule, TensorKinds kinds) {
  return rule.takes_any_kind || (rule.kinds & (kinds | kAnyTensor)) != 0;
}

// Judges one tensor. `outcome` is overwritten; its memory is used again.
void Evaluate(const Rule& rule, const Watched& watched, Outcome& outcome);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_RULES_RULE_H_
