#include "config/name_pattern.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text_parts.h"
#include "config/options.h"

namespace plumbline {
namespace {

constexpr std::string_view kExpressionMark = "re:";
constexpr size_t kLongestName = 4096;
constexpr size_t kMostAnswers = 1 << 16;

using Syntax = std::regex_constants::syntax_option_type;

// Without a stack of alternatives: its time is the length of the text times that of the expression.
// Other libraries give up on what takes too long (error_complexity).
#ifdef __GLIBCXX__
constexpr Syntax kLinear = std::regex::ECMAScript | std::regex_constants::__polynomial;
#else
constexpr Syntax kLinear = std::regex::ECMAScript;
#endif

// The standard library reports a bad expression by an exception; it ends here.
std::optional<std::regex_constants::error_type> TryCompile(std::string_view text, Syntax syntax,
                                                           std::regex& out) {
  try {
    out.assign(text.begin(), text.end(), syntax);
    return std::nullopt;
  } catch (const std::regex_error& error) {
    return error.code();
  }
}

struct Opener {
  char bracket;
  size_t at;
};

// Where brackets do not fit each other: one that is never closed, or that closes nothing.
std::optional<size_t> LooseBracket(std::string_view text) {
  std::vector<Opener> open;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool in_class = !open.empty() && open.back().bracket == '[';
    if (text[i] == '\\') {
      ++i;
    } else if (in_class) {
      if (text[i] == ']') open.pop_back();
    } else if (text[i] == '[' || text[i] == '(') {
      open.push_back({text[i], i});
    } else if (text[i] == ')') {
      if (open.empty()) return i;
      open.pop_back();
    }
  }
  if (open.empty()) return std::nullopt;
  return open.back().at;
}

// The character with which the shortest beginning stops being an expression for this reason.
size_t PositionOf(std::string_view text, std::regex_constants::error_type reason, Syntax syntax) {
  if (const std::optional<size_t> loose = LooseBracket(text)) return *loose;
  std::regex unused;
  for (size_t size = 1; size < text.size(); ++size) {
    if (TryCompile(text.substr(0, size), syntax, unused) == reason) return size - 1;
  }
  return text.empty() ? 0 : text.size() - 1;
}

// The library unrolls {n}: the product of the largest numbers, whether they are nested or not.
size_t Repeats(std::string_view text) {
  size_t product = 1;
  for (size_t i = 0; i < text.size() && product <= Expression::kMostRepeats; ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '{') {
      size_t largest = 1, number = 0;
      for (++i; i < text.size() && text[i] != '}'; ++i) {
        number = IsDigits(text.substr(i, 1)) && number <= Expression::kMostRepeats
                     ? number * 10 + static_cast<size_t>(text[i] - '0')
                     : 0;
        largest = std::max(largest, number);
      }
      product *= largest;
    }
  }
  return product;
}

bool IsGlob(std::string_view text) {
  if (text.find_first_of("*?") != std::string_view::npos) return true;
  const size_t open = text.find('[');
  return open != std::string_view::npos && text.find(']', open + 2) != std::string_view::npos;
}

// Whether the class that `glob` begins with, "[a-z]", holds `letter`; its length, 0 for a '[' that
// no ']' follows.
size_t MatchClass(std::string_view glob, char letter, bool* holds) {
  size_t at = 1;
  const bool is_negated = at < glob.size() && (glob[at] == '!' || glob[at] == '^');
  if (is_negated) ++at;
  const size_t close = glob.find(']', at + 1);  // a ']' in the first place is one of the letters
  if (close == std::string_view::npos) return 0;
  bool found = false;
  while (at < close) {
    const bool is_range = at + 2 < close && glob[at + 1] == '-';
    const char last = is_range ? glob[at + 2] : glob[at];
    found |= glob[at] <= letter && letter <= last;
    at += is_range ? 3 : 1;
  }
  *holds = found != is_negated;
  return close + 1;
}

// How many bytes of `glob` stand for `letter`; 0 if they do not.
size_t MatchOne(std::string_view glob, char letter) {
  if (glob.front() == '?') return 1;
  bool holds = false;
  const size_t size = glob.front() == '[' ? MatchClass(glob, letter, &holds) : 0;
  if (size > 0) return holds ? size : 0;
  return glob.front() == letter ? 1 : 0;
}

// The last '*' takes one letter more whenever what follows it does not match.
bool MatchesGlob(std::string_view glob, std::string_view name) {
  size_t at = 0, read = 0;
  std::optional<size_t> star;
  size_t taken = 0;  // up to where the star reaches in `name`
  while (read < name.size()) {
    if (at < glob.size() && glob[at] == '*') {
      star = at++;
      taken = read;
      continue;
    }
    const size_t size = at < glob.size() ? MatchOne(glob.substr(at), name[read]) : 0;
    if (size > 0) {
      at += size;
      ++read;
    } else if (star) {
      at = *star + 1;
      read = ++taken;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', at) == std::string_view::npos;
}

}  // namespace

std::optional<size_t> Expression::Compile(std::string_view text, Use use) {
  const bool is_bounded = use == Use::kContains;
  if (is_bounded && text.size() > kLongest) return kLongest;
  if (is_bounded && Repeats(text) > kMostRepeats) return text.find('{');
  Syntax syntax = kLinear;
  auto reason = TryCompile(text, syntax, regex_);
  if (reason && !is_bounded) {
    syntax = std::regex::ECMAScript;  // with back references
    reason = TryCompile(text, syntax, regex_);
  }
  if (reason) return PositionOf(text, *reason, syntax);
  if (is_bounded) TryCompile(fmt::format("[\\s\\S]*(?:{})[\\s\\S]*", text), kLinear, regex_);
  return std::nullopt;
}

bool Expression::Matches(std::string_view name) const {
  try {
    return name.size() <= kLongestName && std::regex_match(name.begin(), name.end(), regex_);
  } catch (const std::regex_error&) {
    return false;  // of a library without linear matching
  }
}

Result<NamePattern> NamePattern::Create(std::string_view field, std::string_view text) {
  NamePattern pattern;
  pattern.text_ = text;
  if (!text.starts_with(kExpressionMark)) {
    pattern.kind_ = IsGlob(text) ? Kind::kGlob : Kind::kPlain;
    return pattern;
  }
  pattern.kind_ = Kind::kExpression;
  const auto wrong = pattern.expression_.Compile(text.substr(kExpressionMark.size()),
                                                 Expression::Use::kContains);
  if (!wrong) return pattern;
  return settings::Invalid(
      field, settings::Json(text),
      fmt::format("behind re: a regular expression in ECMAScript syntax of at most {} characters, "
                  "without back references and with at most {} repeats by {{}}; wrong from its "
                  "character {} on",
                  Expression::kLongest, Expression::kMostRepeats, *wrong + 1));
}

bool NamePattern::Selects(std::string_view name) const {
  if (kind_ == Kind::kExpression) return expression_.Matches(name);
  return name.find(text_) != std::string_view::npos ||
         (kind_ == Kind::kGlob && MatchesGlob(text_, name));
}

bool NamePattern::Names(std::string_view name) const {
  if (kind_ == Kind::kExpression) return expression_.Matches(name);
  return name == text_ || (kind_ == Kind::kGlob && MatchesGlob(text_, name));
}

Result<NamePatterns> NamePatterns::Create(std::string_view field,
                                          const std::vector<std::string>& texts) {
  NamePatterns patterns;
  for (const std::string& text : texts) {
    PL_TRY_ASSIGN(NamePattern pattern, NamePattern::Create(field, text));
    patterns.has_expression_ |= pattern.is_expression();
    patterns.patterns_.push_back(std::move(pattern));
  }
  patterns.named_.resize(texts.size());
  return patterns;
}

template <typename Ask>
bool NamePatterns::Remembered(Answers& answers, std::string_view name, Ask ask) {
  const auto known = answers.find(name);
  if (known != answers.end()) return known->second;
  if (answers.size() >= kMostAnswers) answers.clear();
  return answers.emplace(name, ask()).first->second;
}

bool NamePatterns::SelectAny(std::string_view name) const {
  const auto ask = [&] {
    return std::ranges::any_of(patterns_, [&](const auto& one) { return one.Selects(name); });
  };
  return has_expression_ ? Remembered(selected_, name, ask) : ask();
}

bool NamePatterns::Names(size_t index, std::string_view name) const {
  const NamePattern& pattern = patterns_[index];
  if (!pattern.is_expression()) return pattern.Names(name);
  return Remembered(named_[index], name, [&] { return pattern.Names(name); });
}

}  // namespace plumbline
