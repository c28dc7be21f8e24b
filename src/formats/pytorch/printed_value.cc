#include "formats/pytorch/printed_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/text_parts.h"

namespace plumbline::debug_mode {

const Printed* Printed::Find(std::string_view key) const {
  const auto found = std::ranges::find(keys, key);
  if (kind != Kind::kDict || found == keys.end()) return nullptr;
  return &items[static_cast<size_t>(found - keys.begin())];
}

namespace {

constexpr std::string_view kOpening = "([{", kClosing = ")]}";

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNamePart(char c) { return IsNameStart(c) || (c >= '0' && c <= '9'); }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Printed> All() {
    PL_TRY_ASSIGN(Printed value, ReadValue(0));
    if (at_ < text_.size()) return Bad("something behind the value");
    return value;
  }

  Result<std::vector<Argument>> Arguments() {
    std::vector<Argument> arguments;
    while (at_ < text_.size()) {
      if (!arguments.empty() && !Take(", ")) return Bad("no comma between arguments");
      Argument& argument = arguments.emplace_back();
      argument.keyword = TakeKeyword();
      PL_TRY_ASSIGN(argument.value, ReadValue(0));
    }
    return arguments;
  }

 private:
  Error Bad(std::string_view what) const {
    return Error(ErrorCode::kCorrupt, fmt::format("character {}: {}", at_ + 1, what));
  }

  [[nodiscard]] char Here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(std::string_view part) {
    if (!text_.substr(at_).starts_with(part)) return false;
    at_ += part.size();
    return true;
  }

  // "dtype" of "dtype=torch.float32", with its sign.
  std::string TakeKeyword() {
    size_t end = at_;
    while (end < text_.size() && (end == at_ ? IsNameStart(text_[end]) : IsNamePart(text_[end])))
      ++end;
    const std::string_view rest = text_.substr(end);
    if (end == at_ || !rest.starts_with('=') || rest.starts_with("==")) return {};
    const std::string_view keyword = text_.substr(at_, end - at_);
    at_ = end + 1;
    return std::string(keyword);
  }

  Result<Printed> ReadValue(int depth) {
    if (depth > kMostNested) {
      return Error(ErrorCode::kUnsupported,
                   fmt::format("values nest deeper than {} levels", kMostNested));
    }
    switch (Here()) {
      case '[':
        return ReadSequence(Printed::Kind::kList, ']', depth);
      case '(':
        return ReadSequence(Printed::Kind::kTuple, ')', depth);
      case '{':
        return ReadDict(depth);
      case '\'':
      case '"':
        return ReadText();
      default:
        return ReadWord();
    }
  }

  Result<Printed> ReadSequence(Printed::Kind kind, char closing, int depth) {
    Printed value{kind, {}};
    ++at_;
    while (Here() != closing) {
      if (!value.items.empty() && !Take(", ")) {
        if (Take(",") && Here() == closing) break;  // "(8,)"
        return Bad("a bracket is left open");
      }
      PL_TRY_ASSIGN(Printed item, ReadValue(depth + 1));
      value.items.push_back(std::move(item));
    }
    ++at_;
    return value;
  }

  Result<Printed> ReadDict(int depth) {
    Printed value{Printed::Kind::kDict, {}};
    ++at_;
    while (Here() != '}') {
      if (!value.items.empty() && !Take(", ")) return Bad("a bracket is left open");
      if (Here() == '\'' || Here() == '"') {
        PL_TRY_ASSIGN(Printed key, ReadText());
        value.keys.push_back(std::move(key.text));
        if (!Take(": ")) return Bad("no value behind a key");
      } else {
        const size_t end = text_.find(": ", at_);
        if (end == std::string_view::npos) return Bad("no value behind a key");
        value.keys.emplace_back(text_.substr(at_, end - at_));
        at_ = end + 2;
      }
      PL_TRY_ASSIGN(Printed item, ReadValue(depth + 1));
      value.items.push_back(std::move(item));
    }
    ++at_;
    return value;
  }

  // Escapes other than those of quotes and backslashes stay as they are.
  Result<Printed> ReadText() {
    const char quote = text_[at_];
    Printed value{Printed::Kind::kText, {}};
    for (++at_; Here() != quote; ++at_) {
      if (at_ + 1 >= text_.size()) return Bad("a quote is left open");
      const char next = text_[at_ + 1];
      if (text_[at_] == '\\' && (next == '\\' || next == '\'' || next == '"')) ++at_;
      value.text += text_[at_];
    }
    ++at_;
    return value;
  }

  // Up to a comma with a blank behind it, or a bracket that closes what is around.
  Result<Printed> ReadWord() {
    const size_t begin = at_;
    std::string open;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const std::string_view rest = text_.substr(at_);
      const bool is_separator = rest.starts_with(", ") || rest.starts_with(",)");
      if (open.empty() && is_separator) break;
      if (const size_t kind = kClosing.find(c); kind != std::string_view::npos) {
        if (open.empty()) break;
        if (open.back() != kOpening[kind]) return Bad("a bracket closes another one");
        open.pop_back();
      } else if (kOpening.find(c) != std::string_view::npos) {
        open += c;
      } else if ((c == '\'' || c == '"') && IsQuoteAt(begin)) {
        at_ = text_.find(c, at_ + 1);
      }
    }
    if (!open.empty()) return Bad("a bracket is left open");
    if (at_ == begin) return Bad("no value");
    return Printed{Printed::Kind::kWord, std::string(text_.substr(begin, at_ - begin))};
  }

  // Whether a text in quotes begins here, inside of a word: "Foo('a, b')".
  [[nodiscard]] bool IsQuoteAt(size_t begin) const {
    constexpr std::string_view kBefore = "([{,= ";
    return at_ > begin && kBefore.find(text_[at_ - 1]) != std::string_view::npos &&
           text_.find(text_[at_], at_ + 1) != std::string_view::npos;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<Printed> ParsePrinted(std::string_view text) { return Parser(text).All(); }

Result<std::vector<Argument>> ParseArguments(std::string_view text) {
  return Parser(text).Arguments();
}

namespace {

// torch's abbreviations (torch.dtype.abbr): a letter for the kind, then the bits; float8 types go
// on with their layout.
std::string DTypeOf(std::string_view abbreviation) {
  static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"bf", "bfloat"}, {"f", "float"}, {"i", "int"}, {"u", "uint"}, {"c", "complex"}};
  if (abbreviation == "b8") return "torch.bool";
  for (const auto& [letter, kind] : kKinds) {
    if (!abbreviation.starts_with(letter)) continue;
    std::string_view rest = abbreviation.substr(letter.size());
    const size_t bits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (bits == 0) continue;
    const std::string_view layout = rest.substr(bits);
    return fmt::format("torch.{}{}{}{}", kind, rest.substr(0, bits), layout.empty() ? "" : "_",
                       layout);
  }
  return std::string(abbreviation);
}

std::optional<Shape> ShapeOf(std::string_view text) {
  Shape shape;
  if (text.empty()) return shape;
  for (const std::string_view part : SplitAt(text, ',')) {
    const std::optional<int64_t> size = ParseNatural(Trimmed(part, " "));
    if (!size) return std::nullopt;  // a symbol of a fake tensor
    shape.push_back(*size);
  }
  if (!ElementCount(shape)) return std::nullopt;
  return shape;
}

}  // namespace

std::optional<PrintedTensor> TensorIn(const Printed& value) {
  if (value.kind != Printed::Kind::kWord && value.kind != Printed::Kind::kText) return std::nullopt;
  std::string_view text = value.text;
  const size_t colon = text.find(": ");
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view sort = text.substr(0, std::min(text.find('$'), colon));
  if (sort != "t" && sort != "dt" && sort != "ft") return std::nullopt;
  text.remove_prefix(colon + 2);
  const size_t open = text.find('['), close = text.find(']');
  if (open == 0 || close == std::string_view::npos || close < open) return std::nullopt;
  std::optional<Shape> shape = ShapeOf(text.substr(open + 1, close - open - 1));
  if (!shape) return std::nullopt;
  return PrintedTensor{DTypeOf(text.substr(0, open)), *std::move(shape), sort == "t"};
}

}  // namespace plumbline::debug_mode
