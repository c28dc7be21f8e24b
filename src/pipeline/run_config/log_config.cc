#include "pipeline/run_config/log_config.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/number_text.h"
#include "base/text_parts.h"
#include "base/yaml_file.h"
#include "match/python_text.h"
#include "pipeline/run_config/python_literal.h"

namespace plumbline::pipeline {
namespace {

constexpr std::array<std::string_view, 2> kStarts = {"{'actor_rollout_ref':",
                                                     "{\"actor_rollout_ref\":"};

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// What stands between the prefixes of one line: two writers may share one.
std::vector<std::string_view> PiecesOf(std::string_view line, std::string_view prefix) {
  if (prefix.empty()) return {line};
  std::vector<std::string_view> pieces;
  size_t at = line.find(prefix);
  while (at != std::string_view::npos) {
    const size_t from = at + prefix.size();
    at = line.find(prefix, from);
    pieces.push_back(line.substr(from, at == std::string_view::npos ? at : at - from));
  }
  return pieces;
}

// Another process's words may follow behind a comma; they may hold commas themselves, a few.
void AddPiece(std::string_view piece, LiteralParser& parser) {
  constexpr int kMostCuts = 20;
  piece = Trimmed(piece);
  size_t failed_at = 0;
  for (int cut = 0; !piece.empty() && !parser.Add(piece, &failed_at); ++cut) {
    if (cut == kMostCuts) return;
    const size_t comma = piece.substr(0, failed_at).rfind(',');
    piece = comma == std::string_view::npos ? std::string_view() : piece.substr(0, comma + 1);
  }
}

Value ValueOfYaml(const YAML::Node& node) {
  if (node.IsMap()) {
    ValueMap map;
    for (const auto& entry : node)
      map.emplace_back(entry.first.as<std::string>(""), ValueOfYaml(entry.second));
    return map;
  }
  if (node.IsSequence()) {
    ValueList list;
    for (const auto& each : node) list.push_back(ValueOfYaml(each));
    return list;
  }
  if (!node.IsScalar()) return {};
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  const std::string lower = LowerCase(text);
  if (lower == "true" || lower == "false") return lower == "true";
  if (lower == "null" || lower == "~" || lower.empty()) return {};
  if (const auto integer = ParseInteger(text)) return *integer;
  const bool is_number = text.find_first_of("0123456789") != std::string::npos;
  if (const auto real = ParseReal(text); real && is_number) return *real;
  return text;
}

void Flatten(const Value& value, const std::string& path, std::map<std::string, Value>& out) {
  const auto* map = value.As<ValueMap>();
  if (map == nullptr || map->empty()) {
    out.insert_or_assign(path, value);
    return;
  }
  for (const auto& [key, member] : *map) {
    Flatten(member, path.empty() ? key : fmt::format("{}/{}", path, key), out);
  }
}

void AppendJson(const Value& value, size_t indent, std::string& out) {
  const std::string blanks(indent + 2, ' ');
  const auto close = [&](char bracket) {
    out += '\n';
    out.append(indent, ' ');
    out += bracket;
  };
  if (const auto* map = value.As<ValueMap>()) {
    if (map->empty()) {
      out += "{}";
      return;
    }
    out += '{';
    for (const auto& [key, member] : *map) {
      out += out.back() == '{' ? "\n" : ",\n";
      out += blanks;
      json::AppendString(key, out);
      out += ": ";
      AppendJson(member, indent + 2, out);
    }
    close('}');
  } else if (const auto* list = value.As<ValueList>()) {
    out += '[';
    for (size_t i = 0; i < list->size(); ++i) {
      out += i == 0 ? "\n" : ",\n";
      out += blanks;
      AppendJson((*list)[i], indent + 2, out);
    }
    if (list->empty()) {
      out += ']';
    } else {
      close(']');
    }
  } else if (const auto* text = value.As<std::string>()) {
    json::AppendString(*text, out);
  } else if (const auto* truth = value.As<bool>()) {
    out += *truth ? "true" : "false";
  } else {
    out += value.is_null() ? "null" : match::PythonText(value);
  }
}

}  // namespace

Result<Value> FindLogConfig(std::string_view text) {
  const std::vector<std::string_view> lines = SplitAt(text, '\n');
  size_t start = lines.size(), column = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const std::string_view key : kStarts) {
      const size_t at = lines[i].find(key);
      if (at == std::string_view::npos) continue;
      start = i;
      column = at;
    }
  }
  if (start == lines.size()) {
    return Error(ErrorCode::kCorrupt, fmt::format("no line with {} ...}}", kStarts[0]));
  }
  const std::string_view prefix = lines[start].substr(0, column);
  LiteralParser parser;
  for (size_t i = start; i < lines.size() && !parser.complete(); ++i) {
    for (const std::string_view piece : PiecesOf(lines[i], prefix)) {
      if (!parser.complete()) AddPiece(piece, parser);
    }
  }
  if (!parser.complete()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the configuration in line {} does not end", start + 1));
  }
  return parser.Take();
}

Result<Value> ReadLogConfig(const std::string& path) {
  const std::string lower = LowerCase(path);
  if (!lower.ends_with(".log") && !lower.ends_with(".txt")) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: no log (expected a .log or .txt file)", path));
  }
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  Result<Value> config = FindLogConfig(text);
  if (!config) return config.error().In(path);
  return config;
}

Result<Value> ReadYamlConfig(const std::string& path) {
  if (!path.ends_with(".yaml")) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: expected a .yaml file", path));
  }
  PL_TRY_ASSIGN(const YamlFile file, YamlFile::Read(path));
  if (!file.root().IsMap()) return file.Bad("expected names with values");
  return ValueOfYaml(file.root());
}

std::map<std::string, Value> FlatConfig(const Value& config) {
  std::map<std::string, Value> flat;
  Flatten(config, "", flat);
  return flat;
}

std::string PythonRepr(const Value& value) {
  const std::string list = match::PythonText(ValueList{value});
  return list.substr(1, list.size() - 2);
}

std::string ConfigJson(const Value& config) {
  std::string text;
  AppendJson(config, 0, text);
  return text;
}

}  // namespace plumbline::pipeline
