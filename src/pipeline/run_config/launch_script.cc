#include "pipeline/run_config/launch_script.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "base/number_text.h"
#include "base/text_parts.h"
#include "base/yaml_file.h"

namespace plumbline::pipeline {
namespace {

constexpr int kMaxDepth = 100;
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

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// NAME=value or export NAME=value, the whole line.
std::optional<std::pair<std::string, std::string>> AssignmentIn(std::string_view line) {
  line = Trimmed(line);
  constexpr std::string_view kExport = "export ";
  if (line.starts_with(kExport)) line = Trimmed(line.substr(kExport.size()));
  size_t at = 0;
  while (at < line.size() && IsNameCharacter(line[at])) ++at;
  if (at == 0 || at >= line.size() || line[at] != '=') return std::nullopt;
  std::string_view value = Trimmed(line.substr(at + 1));
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
  if (depth > kMaxDepth) return std::nullopt;
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
  if (depth > kMaxDepth) return Error(ErrorCode::kCorrupt, "nests deeper than 100 levels");
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

}  // namespace plumbline::pipeline
