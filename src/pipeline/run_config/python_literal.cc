#include "pipeline/run_config/python_literal.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/text_parts.h"
#include "base/utf8.h"

namespace plumbline::pipeline {
namespace {

constexpr size_t kDeepest = 200;

// The digits of \xNN and \uNNNN.
bool AppendCode(std::string_view& rest, size_t digits, std::string& out) {
  if (rest.size() < digits) return false;
  uint32_t code = 0;
  for (const char c : rest.substr(0, digits)) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) return false;
    const int value = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    code = code * 16 + static_cast<uint32_t>(value);
  }
  rest.remove_prefix(digits);
  AppendUtf8(code, out);
  return true;
}

// One escape behind its backslash. Unknown ones stay as they are, as in Python.
bool AppendEscape(std::string_view& rest, std::string& out) {
  if (rest.empty()) return false;
  const char c = rest.front();
  rest.remove_prefix(1);
  constexpr std::string_view kFrom = "nrtbf0\\'\"/", kTo{"\n\r\t\b\f\0\\'\"/", 10};
  if (c == 'x') return AppendCode(rest, 2, out);
  if (c == 'u') return AppendCode(rest, 4, out);
  const size_t known = kFrom.find(c);
  if (known == std::string_view::npos) out += '\\';
  out += known == std::string_view::npos ? c : kTo[known];
  return true;
}

std::optional<std::string> ReadQuoted(std::string_view& rest) {
  const char quote = rest.front();
  rest.remove_prefix(1);
  std::string text;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == quote) return text;
    if (c != '\\') {
      text += c;
    } else if (!AppendEscape(rest, text)) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// A number or a word that stands for a value.
std::optional<Value> ReadWord(std::string_view& rest) {
  const size_t size = std::min(rest.find_first_of(" \t,:]})[({'\""), rest.size());
  const std::string_view word = rest.substr(0, size);
  rest.remove_prefix(size);
  if (word == "True" || word == "true") return Value(true);
  if (word == "False" || word == "false") return Value(false);
  if (word == "None" || word == "null") return Value();
  if (const auto integer = ParseInteger(word)) return Value(*integer);
  const size_t digits = word.starts_with('-') ? 1 : 0;
  if (IsDigits(word.substr(std::min(digits, word.size())))) {
    return Value(BigInt{std::string(word)});
  }
  if (const auto real = ParseReal(word)) return Value(*real);
  return std::nullopt;
}

char ClosingOf(char bracket) { return bracket == '{' ? '}' : bracket == '[' ? ']' : ')'; }

}  // namespace

bool LiteralParser::Read(std::string_view& rest, Token& token) {
  const char c = rest.front();
  const auto single = [&](Kind kind) {
    token.kind = kind;
    token.bracket = c;
    rest.remove_prefix(1);
    return true;
  };
  if (c == '{' || c == '[' || c == '(') return single(Kind::kOpen);
  if (c == '}' || c == ']' || c == ')') return single(Kind::kClose);
  if (c == ':') return single(Kind::kColon);
  if (c == ',') return single(Kind::kComma);
  if (c == '\'' || c == '"') {
    std::optional<std::string> text = ReadQuoted(rest);
    if (!text) return false;
    token.kind = Kind::kText;
    token.value = std::move(*text);
    return true;
  }
  std::optional<Value> value = ReadWord(rest);
  if (!value) return false;
  token.kind = Kind::kOther;
  token.value = std::move(*value);
  return true;
}

bool LiteralParser::Add(std::string_view piece, size_t* failed_at) {
  const std::vector<Open> open = open_;
  const std::vector<Token> last(tokens_.end() - (tokens_.empty() ? 0 : 1), tokens_.end());
  const size_t count = tokens_.size();
  const size_t size = piece.size();
  size_t at = 0;
  bool good = !complete();
  while (good && !piece.empty() && !complete()) {
    if (piece.front() == ' ' || piece.front() == '\t' || piece.front() == '\r') {
      piece.remove_prefix(1);
      continue;
    }
    at = size - piece.size();
    Token token;
    good = Read(piece, token) && Accept(std::move(token));
  }
  if (good) return true;
  if (failed_at != nullptr) *failed_at = at;
  open_ = open;
  tokens_.resize(count);
  if (count > 0) tokens_.back() = last.front();
  return false;
}

bool LiteralParser::AcceptValue(Token token) {
  if (!open_.empty()) {
    Open& in = open_.back();
    const bool is_key =
        in.bracket == '{' && (in.wants == Wants::kFirst || in.wants == Wants::kItem);
    if (is_key && token.kind != Kind::kText) return false;
    const bool goes_on = in.wants == Wants::kEnd && in.after_text && token.kind == Kind::kText;
    if (goes_on) {
      *tokens_.back().value.As<std::string>() += *token.value.As<std::string>();
      return true;
    }
    if (in.wants == Wants::kEnd || in.wants == Wants::kColon) return false;
    in.wants = is_key ? Wants::kColon : Wants::kEnd;
    in.after_text = !is_key && token.kind == Kind::kText;
  }
  if (token.kind == Kind::kOpen) {
    if (open_.size() >= kDeepest) return false;
    open_.push_back({token.bracket});
  } else if (tokens_.empty()) {
    return false;  // a container comes first
  }
  tokens_.push_back(std::move(token));
  return true;
}

bool LiteralParser::Accept(Token token) {
  const bool is_mark =
      token.kind == Kind::kClose || token.kind == Kind::kColon || token.kind == Kind::kComma;
  if (!is_mark) return AcceptValue(std::move(token));
  if (open_.empty()) return false;
  Open& in = open_.back();
  switch (token.kind) {
    case Kind::kClose:
      if (token.bracket != ClosingOf(in.bracket)) return false;
      if (in.wants == Wants::kColon || in.wants == Wants::kValue) return false;
      open_.pop_back();
      if (!open_.empty()) open_.back().after_text = false;
      tokens_.push_back(std::move(token));
      return true;
    case Kind::kColon:
      if (in.wants != Wants::kColon) return false;
      in.wants = Wants::kValue;
      return true;
    default:
      if (in.wants != Wants::kEnd) return false;
      in.wants = Wants::kItem;
      return true;
  }
}

Value LiteralParser::Build(size_t& at) const {
  const Token& token = tokens_[at++];
  if (token.kind != Kind::kOpen) return token.value;
  if (token.bracket != '{') {
    ValueList list;
    while (tokens_[at].kind != Kind::kClose) list.push_back(Build(at));
    ++at;
    return list;
  }
  ValueMap map;
  while (tokens_[at].kind != Kind::kClose) {
    std::string key = *tokens_[at++].value.As<std::string>();
    map.emplace_back(std::move(key), Build(at));
  }
  ++at;
  return map;
}

Value LiteralParser::Take() {
  size_t at = 0;
  Value value = Build(at);
  tokens_.clear();
  return value;
}

}  // namespace plumbline::pipeline
