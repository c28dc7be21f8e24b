// Expressions of rules, by recursive descent:
//
//   expr      = and { "or" and } ; and = not { "and" not } ; not = [ "not" ] first
//   first     = condition | compare | "(" expr ")"
//   condition = id [ "(" name "=" number { "," name "=" number } ")" ]
//   compare   = stat ( ">" | ">=" | "<" | "<=" | "==" ) number

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/text/text_parts.h"
#include "watch/rules/rule.h"

namespace plumbline::watch {
namespace {

constexpr int kMostDepth = 64;

bool IsWordByte(char c) {
  return (std::isalnum(static_cast<unsigned char>(c)) != 0) || c == '_';
}

class RuleParser {
 public:
  explicit RuleParser(std::string_view text) : text_(text) {}

  Result<Expression> Run() {
    PL_TRY_ASSIGN(Expression expression, ReadOr());
    SkipBlanks();
    if (at_ < text_.size()) return Bad(at_, "expected \"and\", \"or\" or the end");
    return expression;
  }

 private:
  [[nodiscard]] Error Bad(size_t at, std::string_view problem) const {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\": column {}: {}", text_, at + 1, problem));
  }

  void SkipBlanks() {
    constexpr std::string_view kBlanks = " \t\r\n";
    while (at_ < text_.size() && kBlanks.find(text_[at_]) != std::string_view::npos) ++at_;
  }

  bool Take(std::string_view mark) {
    SkipBlanks();
    if (!text_.substr(at_).starts_with(mark)) return false;
    at_ += mark.size();
    return true;
  }

  std::string_view PeekWord() {
    SkipBlanks();
    size_t end = at_;
    while (end < text_.size() && IsWordByte(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }

  bool TakeWord(std::string_view word) {
    if (PeekWord() != word) return false;
    at_ += word.size();
    return true;
  }

  // "a" or "a and b and ...".
  template <class Part>
  Result<Expression> ReadList(Expression::Kind kind, std::string_view word, const Part& read) {
    PL_TRY_ASSIGN(Expression first, read());
    if (PeekWord() != word) return first;
    Expression list;
    list.kind = kind;
    list.parts.push_back(std::move(first));
    while (TakeWord(word)) {
      PL_TRY_ASSIGN(Expression next, read());
      list.parts.push_back(std::move(next));
    }
    return list;
  }

  Result<Expression> ReadOr() {
    if (++depth_ > kMostDepth) return Bad(at_, "nested too deep");
    Result<Expression> list =
        ReadList(Expression::Kind::kOr, "or", [&] { return ReadAnd(); });
    --depth_;
    return list;
  }

  Result<Expression> ReadAnd() {
    return ReadList(Expression::Kind::kAnd, "and", [&] { return ReadNot(); });
  }

  Result<Expression> ReadNot() {
    if (!TakeWord("not")) return ReadFirst();
    if (++depth_ > kMostDepth) return Bad(at_, "nested too deep");
    Expression negated;
    negated.kind = Expression::Kind::kNot;
    PL_TRY_ASSIGN(Expression of, ReadNot());
    --depth_;
    negated.parts.push_back(std::move(of));
    return negated;
  }

  Result<Expression> ReadFirst() {
    if (Take("(")) {
      PL_TRY_ASSIGN(Expression inner, ReadOr());
      if (!Take(")")) return Bad(at_, "expected \")\"");
      return inner;
    }
    const size_t begin = (SkipBlanks(), at_);
    const std::string_view word = PeekWord();
    if (word.empty()) return Bad(begin, "expected a condition or a comparison");
    if (word == "prev" || QuantityNamed(word)) return ReadCompare();
    const ConditionInfo* condition = FindCondition(word);
    if (condition == nullptr) return BadName(begin, word);
    at_ += word.size();
    return ReadCondition(*condition, begin);
  }

  [[nodiscard]] Error BadName(size_t begin, std::string_view word) const {
    std::vector<std::string> known = QuantityNames();
    for (const ConditionInfo& one : AllConditions()) known.emplace_back(one.id);
    const std::string nearest = NearestText(LowerCase(word), known);
    const std::string hint =
        nearest.empty() ? "plumb watch --list shows all" : fmt::format("did you mean {}?", nearest);
    return Bad(begin, fmt::format("no condition or statistic \"{}\"; {}", word, hint));
  }

  Result<Expression> ReadCondition(const ConditionInfo& condition, size_t begin) {
    std::vector<GivenParameter> given;
    if (Take("(") && !Take(")")) {
      do {
        PL_TRY_ASSIGN(GivenParameter one, ReadParameter());
        given.push_back(std::move(one));
      } while (Take(","));
      if (!Take(")")) return Bad(at_, "expected \",\" or \")\"");
    }
    Expression expression;
    expression.id = condition.id;
    expression.kinds = condition.kinds;
    expression.at_first_step = condition.at_first_step;
    Result<std::vector<Check>> checks = ChecksOf(condition, given);
    if (!checks) return Bad(begin, checks.error().message());
    expression.checks = *std::move(checks);
    return expression;
  }

  Result<GivenParameter> ReadParameter() {
    const std::string_view name = PeekWord();
    if (name.empty()) return Bad(at_, "expected the name of a parameter");
    at_ += name.size();
    if (!Take("=")) return Bad(at_, fmt::format("expected \"=\" and a number behind {}", name));
    const std::string_view word = LowerCase(PeekWord()) == "true" ? "1"
                                  : LowerCase(PeekWord()) == "false" ? "0"
                                                                     : "";
    if (!word.empty()) {
      at_ += PeekWord().size();
      return GivenParameter{std::string(name), word == "1" ? 1.0 : 0.0};
    }
    PL_TRY_ASSIGN(const double value, ReadNumber());
    return GivenParameter{std::string(name), value};
  }

  Result<double> ReadNumber() {
    SkipBlanks();
    size_t end = at_;
    const auto is_part = [&](char c) {
      if (IsWordByte(c) || c == '.') return true;
      const bool is_sign = c == '-' || c == '+';
      return is_sign && (end == at_ || text_[end - 1] == 'e' || text_[end - 1] == 'E');
    };
    while (end < text_.size() && is_part(text_[end])) ++end;
    std::string_view number = text_.substr(at_, end - at_);
    if (number.starts_with('+')) number.remove_prefix(1);
    const auto value = ParseReal(number);
    if (!value || !std::isfinite(*value)) {
      return Bad(at_, fmt::format("expected a finite number{}",
                                  number.empty() ? "" : fmt::format(" (got {})", number)));
    }
    at_ = end;
    return *value;
  }

  Result<Check> ReadQuantity() {
    Check check;
    const size_t begin = (SkipBlanks(), at_);
    const std::string_view word = PeekWord();
    const auto quantity = QuantityNamed(word);
    if (!quantity) {
      return Bad(begin, fmt::format("no statistic \"{}\"; {}", word,
                                    KnownWords(word, QuantityNames())));
    }
    at_ += word.size();
    check.quantity = *quantity;
    check.parameter = word;
    if (*quantity != Quantity::kRangePercentage) return check;
    if (!Take("[")) return Bad(at_, "expected \"[\" and the two ends of the range");
    PL_TRY_ASSIGN(check.range.start, ReadNumber());
    if (!Take(",")) return Bad(at_, "expected \",\" and the end of the range");
    PL_TRY_ASSIGN(check.range.end, ReadNumber());
    if (!Take("]")) return Bad(at_, "expected \"]\"");
    if (check.range.start > check.range.end) return Bad(begin, "the range ends before it starts");
    check.parameter = text_.substr(begin, at_ - begin);
    return check;
  }

  Result<Expression> ReadCompare() {
    const bool is_previous = TakeWord("prev");
    if (is_previous && !Take("(")) return Bad(at_, "expected \"(\" and a statistic behind prev");
    PL_TRY_ASSIGN(Check check, ReadQuantity());
    if (is_previous) {
      if (!Take(")")) return Bad(at_, "expected \")\"");
      if (check.quantity == Quantity::kUpdateRatio) {
        return Bad(at_, "an update ratio has no earlier value to compare");
      }
      check.parameter = fmt::format("prev({})", check.parameter);
      check.of_previous = true;
    }
    constexpr std::array<std::pair<std::string_view, Relation>, 5> kRelations = {
        {{">=", Relation::kGreaterEqual},
         {"<=", Relation::kLessEqual},
         {"==", Relation::kEqual},
         {">", Relation::kGreater},
         {"<", Relation::kLess}}};
    const auto found = std::ranges::find_if(
        kRelations, [&](const auto& relation) { return Take(relation.first); });
    if (found == kRelations.end()) return Bad(at_, "expected >, >=, <, <= or ==");
    check.relation = found->second;
    PL_TRY_ASSIGN(check.threshold, ReadNumber());
    Expression expression;
    expression.kinds = 0;
    expression.checks.push_back(std::move(check));
    return expression;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

// What a rule needs follows from its conditions.
void Summarize(const Expression& expression, Rule& rule, bool& all_first) {
  for (const Expression& part : expression.parts) Summarize(part, rule, all_first);
  if (expression.kind != Expression::Kind::kCondition) return;
  rule.kinds |= expression.kinds;
  all_first = all_first && expression.at_first_step;
  for (const Check& check : expression.checks) {
    rule.needs_previous = rule.needs_previous || check.needs_previous();
    rule.asks_operators = rule.asks_operators || check.quantity == Quantity::kOperatorOverflow;
  }
}

void Place(Expression& expression, ScanWishes& wishes) {
  for (Expression& part : expression.parts) Place(part, wishes);
  for (Check& check : expression.checks) {
    check.shown = check.parameter;
    if (check.quantity == Quantity::kRangePercentage) check.place = wishes.PlaceOf(check.range);
    if (check.quantity == Quantity::kUnchanged) check.place = wishes.PlaceOf(check.closeness);
    if (check.quantity == Quantity::kUpdateRatio) wishes.wants_changes = true;
  }
}

}  // namespace

Result<Rule> Rules::ParseRule(std::string_view text) {
  Rule rule;
  rule.text = Trimmed(text);
  PL_TRY_ASSIGN(rule.when, RuleParser(rule.text).Run());
  rule.name = rule.when.kind == Expression::Kind::kCondition && !rule.when.id.empty()
                  ? rule.when.id
                  : rule.text;
  return rule;
}

void Rules::Add(Rule rule) {
  rule.kinds = 0;
  bool all_first = true;
  Summarize(rule.when, rule, all_first);
  if (rule.kinds == 0) rule.kinds = kAnyTensor;
  rule.at_first_step = all_first;
  Place(rule.when, wishes_);
  // Names tell rules apart in every file.
  const std::string name = rule.name;
  const auto is_taken = [&](const std::string& one) {
    return std::ranges::any_of(rules_, [&](const Rule& other) { return other.name == one; });
  };
  for (int number = 2; is_taken(rule.name); ++number) {
    rule.name = fmt::format("{}-{}", name, number);
  }
  rules_.push_back(std::move(rule));
}

bool Rules::needs_previous() const {
  return std::ranges::any_of(rules_, [](const Rule& rule) { return rule.needs_previous; });
}

}  // namespace plumbline::watch
