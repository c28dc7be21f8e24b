#include "run_config/launch_script.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "base/text/yaml_file.h"

namespace plumbline::run_config {

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

namespace {

constexpr int kMaxNesting = 100;
constexpr int kMaxRounds = 20;  // of variables inside variables

std::string Quoted(std::string_view text) {
  std::string json;
  json::AppendString(text, json);
  return json;
}

bool IsNameCharacter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// Without comments, and with continued lines joined.
std::string Joined(std::string_view text) {
  std::string out;
  bool in_quotes = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool at_word = i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t' || text[i - 1] == '\n';
    if (c == '"') in_quotes = !in_quotes;
    if (c == '\r') continue;
    if (c == '#' && at_word) {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '\\' && i + 1 < text.size() && text[i + 1] == '\n') {
      out += ' ';
      ++i;
    } else if (c == '\n' && in_quotes) {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out;
}

constexpr std::string_view kBlanks = " \t";

// NAME=value or export NAME=value, the whole line.
std::optional<std::pair<std::string, std::string>> AssignmentIn(std::string_view line) {
  line = Trimmed(line, kBlanks);
  constexpr std::string_view kExport = "export ";
  if (line.starts_with(kExport)) line = Trimmed(line.substr(kExport.size()), kBlanks);
  size_t at = 0;
  while (at < line.size() && IsNameCharacter(line[at])) ++at;
  if (at == 0 || at >= line.size() || line[at] != '=') return std::nullopt;
  std::string_view value = Trimmed(line.substr(at + 1), kBlanks);
  const bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
                      value.back() == value.front();
  if (quoted) value = value.substr(1, value.size() - 2);
  return std::pair(std::string(line.substr(0, at)), std::string(value));
}

// Variables that hold others several times grow without end: so much is put in for one line and
// for one script; the rest stays as it is.
constexpr size_t kLongestLine = size_t{1} << 16;
constexpr size_t kMostOfScript = size_t{1} << 20;

// $NAME and ${NAME} replaced where they are known; others stay. `left`: what may still be put in.
std::string Substituted(std::string_view text, const std::map<std::string, std::string>& values,
                        size_t& left) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || left == 0 || out.size() > kLongestLine) {
      out += text[i];
      continue;
    }
    const bool braces = i + 1 < text.size() && text[i + 1] == '{';
    const size_t from = i + (braces ? 2 : 1);
    size_t end = from;
    while (end < text.size() && IsNameCharacter(text[end])) ++end;
    const bool closed = !braces || (end < text.size() && text[end] == '}');
    const auto found = values.find(std::string(text.substr(from, end - from)));
    if (end == from || !closed || found == values.end()) {
      out += text[i];
      continue;
    }
    const std::string_view value = std::string_view(found->second).substr(0, kLongestLine);
    left -= std::min(left, std::max<size_t>(value.size(), 1));
    out += value;
    i = end - (braces ? 0 : 1);
  }
  return out;
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool any = false;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      any = true;
    } else if (c == ' ' || c == '\t') {
      if (any) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) words.push_back(word);
  return words;
}

// Whether the words run a training: one of the launchers, or Python with a script.
bool Launches(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const std::string_view program = BaseName(word);
    if (program == "msrun" || program == "torchrun" || program.starts_with("python")) return true;
    if (word.starts_with("--")) return false;
  }
  return false;
}

void AddOptions(const std::vector<std::string>& words, LaunchArguments& out) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].size() < 3 || !words[i].starts_with("--")) continue;
    const std::string name = words[i].substr(2);
    const size_t equals = name.find('=');
    if (equals != std::string::npos) {
      out.Add(name.substr(0, equals), Quoted(name.substr(equals + 1)));
      continue;
    }
    // The script that a launcher runs is nobody's value.
    const auto is_value = [](const std::string& word) {
      if (word.starts_with('-')) return ParseReal(word).has_value();  // "-1", "-.5"
      return !word.ends_with(".py");
    };
    const bool has_value = i + 1 < words.size() && is_value(words[i + 1]);
    out.Add(name, has_value ? Quoted(words[++i]) : "true");
  }
}

std::string ScalarJson(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return Quoted(text);  // it stood in quotes
  if (text == "true" || text == "True" || text == "TRUE") return "true";
  if (text == "false" || text == "False" || text == "FALSE") return "false";
  if (const auto integer = ParseInteger(text)) return std::to_string(*integer);
  const bool has_point = text.find('.') != std::string::npos;  // YAML 1.1: 1e-3 is a text
  const auto real = ParseReal(text);
  if (real && has_point) return PythonFloat(*real);
  return Quoted(text);
}

// A list that stays whole, as one JSON text; nothing if it holds mappings.
std::optional<std::string> PlainList(const YAML::Node& node, int depth) {
  if (depth > kMaxNesting) return std::nullopt;
  std::string text = "[";
  for (const YAML::Node& each : node) {
    if (text.size() > 1) text += ", ";
    if (each.IsMap()) return std::nullopt;
    if (each.IsSequence()) {
      const auto inner = PlainList(each, depth + 1);
      if (!inner) return std::nullopt;
      text += *inner;
    } else {
      text += each.IsNull() ? "null" : ScalarJson(each);
    }
  }
  return text + "]";
}

Status Flatten(const YAML::Node& node, const std::string& name, int depth, LaunchArguments& out) {
  if (depth > kMaxNesting) return Error(ErrorCode::kCorrupt, "nests deeper than 100 levels");
  const std::string prefix = name.empty() ? "" : name + ".";
  if (node.IsMap()) {
    for (const auto& each : node) {
      if (!each.first.IsScalar()) return Error(ErrorCode::kCorrupt, "a key is no plain text");
      PL_TRY(Flatten(each.second, prefix + each.first.Scalar(), depth + 1, out));
    }
    return {};
  }
  if (node.IsSequence()) {
    if (const auto list = PlainList(node, 0)) {
      out.Add(name, *list);
      return {};
    }
    for (size_t i = 0; i < node.size(); ++i) {
      PL_TRY(Flatten(node[i], prefix + std::to_string(i), depth + 1, out));
    }
    return {};
  }
  if (node.IsScalar() && !name.empty()) out.Add(name, ScalarJson(node));
  return {};
}

}  // namespace

void LaunchArguments::Add(const std::string& name, const std::string& json) {
  std::vector<std::string>& values = values_[name];
  if (values.empty()) names_.push_back(name);
  if (std::ranges::find(values, json) == values.end()) values.push_back(json);
}

const std::vector<std::string>& LaunchArguments::ValuesOf(const std::string& name) const {
  static const std::vector<std::string> kNone;
  const auto found = values_.find(name);
  return found == values_.end() ? kNone : found->second;
}

std::string LaunchArguments::Json() const {
  std::string text = "{";
  for (const std::string& name : names_) {
    const std::vector<std::string>& values = values_.at(name);
    text += fmt::format("{}\n    {}: ", text.size() > 1 ? "," : "", Quoted(name));
    if (values.size() == 1) {
      text += values.front();
      continue;
    }
    text += "{\"description\": \"duplicate_value\", \"values\": [";
    for (const std::string& value : values) {
      if (&value != &values.front()) text += ", ";
      text += value;
    }
    text += "]}";
  }
  return text + (names_.empty() ? "}" : "\n}");
}

Status ReadLaunchScript(std::string_view text, LaunchArguments& out) {
  const std::string joined = Joined(text);
  std::map<std::string, std::string> values;
  size_t left = kMostOfScript;
  std::string_view rest = joined;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (auto assignment = AssignmentIn(line)) {
      values[assignment->first] = Substituted(assignment->second, values, left);
      continue;
    }
    for (int round = 0; round < kMaxRounds; ++round) {
      std::string next = Substituted(line, values, left);
      if (next == line) break;
      line = std::move(next);
    }
    const std::vector<std::string> words = WordsOf(line.substr(0, line.find('|')));
    if (!Launches(words)) continue;
    AddOptions(words, out);
    return {};
  }
  return Error(ErrorCode::kInvalidArgument,
               "launches no training (expected a line with msrun, torchrun or python)");
}

Status ReadLaunchYaml(const YamlFile& file, LaunchArguments& out) {
  if (!file.root().IsMap()) return file.Bad("no mapping (expected name: value)");
  const Status status = Flatten(file.root(), "", 0, out);
  return status ? status : Status(status.error().In(file.path()));
}

Status ReadLaunchFile(const std::string& path, LaunchArguments& out) {
  const bool is_script = path.ends_with(".sh");
  if (!is_script && !path.ends_with(".yaml")) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: neither a script nor YAML (expected .sh or .yaml)", path));
  }
  if (!is_script) {
    PL_TRY_ASSIGN(const YamlFile file, YamlFile::Read(path));
    return ReadLaunchYaml(file, out);
  }
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const Status status = ReadLaunchScript(text, out);
  return status ? status : Status(status.error().In(path));
}

}  // namespace plumbline::run_config
