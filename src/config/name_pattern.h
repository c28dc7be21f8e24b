// Patterns over names of calls and kernels: what a text of `list`, `scope` or `kernels` stands for.
// Matching is linear in the length of the name, but for expressions with back references.

#ifndef PLUMBLINE_CONFIG_NAME_PATTERN_H_
#define PLUMBLINE_CONFIG_NAME_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/text_hash.h"
#include "plumbline/result.h"

namespace plumbline {

// A regular expression in ECMAScript syntax. Immutable once compiled.
class Expression {
 public:
  // kContains: a match anywhere counts; what costs time or stack without bound is refused: back
  // references, more than kMostRepeats by {n}, more than kLongest characters. kIsWhole: the whole
  // name must match.
  enum class Use : uint8_t { kContains, kIsWhole };
  static constexpr size_t kLongest = 1000;
  static constexpr size_t kMostRepeats = 100;  // product of the numbers in {}

  // The position in `text` from which on it is no expression; nothing if it is one.
  std::optional<size_t> Compile(std::string_view text, Use use);

  // False for names of more than 4096 characters.
  [[nodiscard]] bool Matches(std::string_view name) const;

 private:
  std::regex regex_;
};

// One text of `scope` or `list`: "re:" and an expression; a glob, if it holds *, ? or [...]; else a
// plain text.
class NamePattern {
 public:
  // kInvalidArgument: what follows "re:" is no expression. `field` is used in messages.
  static Result<NamePattern> Create(std::string_view field, std::string_view text);

  // In a list: a plain text that the name contains, a glob for the whole name (or a text that the
  // name contains as it stands), an expression that matches somewhere in it.
  [[nodiscard]] bool Selects(std::string_view name) const;
  // In a scope: a plain text must be the name.
  [[nodiscard]] bool Names(std::string_view name) const;
  [[nodiscard]] bool is_plain() const { return kind_ == Kind::kPlain; }
  [[nodiscard]] bool is_expression() const { return kind_ == Kind::kExpression; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  enum class Kind : uint8_t { kPlain, kGlob, kExpression };
  Kind kind_ = Kind::kPlain;
  std::string text_;
  Expression expression_;
};

// A list of them, or the two of a scope. Answers about expressions are remembered, because names
// return in every step: thread-compatible with one caller at a time, const or not.
class NamePatterns {
 public:
  static Result<NamePatterns> Create(std::string_view field, const std::vector<std::string>& texts);

  // Whether one of them selects the name.
  [[nodiscard]] bool SelectAny(std::string_view name) const;
  // Whether pattern `index` is of the name, as in a scope.
  [[nodiscard]] bool Names(size_t index, std::string_view name) const;

  [[nodiscard]] bool empty() const { return patterns_.empty(); }
  [[nodiscard]] size_t size() const { return patterns_.size(); }
  const NamePattern& operator[](size_t index) const { return patterns_[index]; }

 private:
  using Answers = TextMap<bool>;
  template <typename Ask>
  static bool Remembered(Answers& answers, std::string_view name, Ask ask);

  std::vector<NamePattern> patterns_;
  bool has_expression_ = false;
  mutable Answers selected_;
  mutable std::vector<Answers> named_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_CONFIG_NAME_PATTERN_H_
