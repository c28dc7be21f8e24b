#include "formats/json/merged_dump_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file/file.h"
#include "base/text/json.h"

namespace plumbline::dump_json {
namespace {

constexpr std::string_view kEntries = "\n \"data\"";

void StartLine(size_t level, std::string& out) { out.append("\n").append(level, ' '); }

}  // namespace

bool SaysMerged(const std::string& dump_json_path) {
  constexpr size_t kLongestHeader = size_t{16} << 10;
  const Result<std::string> start = ReadStart(dump_json_path, kLongestHeader);
  if (!start) return false;
  const std::string_view text = *start;
  const std::string_view header = text.substr(0, text.find("\"data\""));
  const std::string key = fmt::format("\"{}\"", kIsMerged);
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return false;
  const size_t value = header.find_first_not_of(" \t\r\n:", at + key.size());
  return value != std::string_view::npos && header.substr(value).starts_with("true");
}

std::string MergedHeader(const RunHeader& header) {
  std::string text;
  DumpWriter(text).Begin(header);
  text.insert(text.rfind(kEntries), fmt::format("\n \"{}\": true,", kIsMerged));
  return text;
}

std::string FormatCallTree(const CallTree& tree) {
  std::string out;
  char separator = '{';
  const auto begin = [&](std::string_view key) {
    out += separator;
    separator = ',';
    StartLine(1, out);
    json::AppendString(key, out);
    out += ": ";
  };
  if (tree.has_micro_steps) {
    begin("megatron_micro_step_number");
    out += fmt::format("{}", tree.last_micro_step);
  }
  for (const CallTree::Row& row : tree.rows) {
    begin(row.name);
    if (tree.has_micro_steps) out += '[';
    row.parent.empty() ? void(out += "null") : json::AppendString(row.parent, out);
    if (tree.has_micro_steps) out += fmt::format(", {}]", row.micro_step);
  }
  out += separator == '{' ? "{}" : "\n}";
  return out;
}

Status WriteStackGroups(std::span<const StackGroup> groups, const TextSink& sink) {
  std::string out;
  for (size_t i = 0; i < groups.size(); ++i) {
    out += i == 0 ? '{' : ',';
    out += fmt::format("\n \"{}\": [\n  ", i);
    char bracket = '[';
    for (const std::string_view name : groups[i].names) {
      out += bracket;
      bracket = ',';
      StartLine(3, out);
      json::AppendString(name, out);
    }
    out += "],\n  ";
    out += groups[i].frames;
    out += ']';
    PL_TRY(sink(out));
    out.clear();
  }
  return sink(groups.empty() ? "{}" : "\n}");
}

}  // namespace plumbline::dump_json
