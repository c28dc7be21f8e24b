// stack.json and construct.json -> tables.

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "formats/dump_json.h"
#include "formats/keep_last.h"

namespace plumbline::dump_json {
namespace {

using json::Kind;

// Newest upstream, Megatron training: a counter among the parents.
constexpr std::string_view kMicroStepCount = "megatron_micro_step_number";

Error WrongValue(std::string_view name, std::string_view problem, const json::Reader& in) {
  return Error(ErrorCode::kCorrupt, fmt::format("{}: {} (byte {})", name, problem, in.offset()));
}

// A list of texts. Requires: the reader stands before it or before an element of another kind.
Status ReadTexts(json::Reader& in, std::string_view name, std::vector<std::string>& texts) {
  if (in.Peek() != Kind::kArray && in.Peek() != Kind::kNone) {
    return WrongValue(name, "expected a list of texts", in);
  }
  in.EnterArray();
  std::string_view text;
  while (in.NextElement()) {
    if (in.Peek() != Kind::kString && in.Peek() != Kind::kNone) {
      return WrongValue(name, "the list holds something that is no text", in);
    }
    if (in.ReadString(text)) texts.emplace_back(text);
  }
  if (in.failed()) return in.error();
  return {};
}

// Rest of a group [[names...], [frames...]], its outer bracket and first comma being consumed.
Status ReadGroup(json::Reader& in, const std::string& key, StackTable& table) {
  std::vector<std::string> names, frames;
  PL_TRY(ReadTexts(in, key, names));
  if (!in.NextElement()) return in.failed() ? in.error() : WrongValue(key, "no frames", in);
  PL_TRY(ReadTexts(in, key, frames));
  if (in.NextElement()) return WrongValue(key, "expected names and frames only", in);
  if (in.failed()) return in.error();
  for (std::string& name : names) table.emplace_back(std::move(name), frames);
  return {};
}

Status ReadStackMember(json::Reader& in, const std::string& key, StackTable& table) {
  if (in.Peek() != Kind::kArray && in.Peek() != Kind::kNone) {
    return WrongValue(key, "the stack is no list", in);
  }
  std::vector<std::string> frames;
  std::string_view text;
  in.EnterArray();
  for (bool first = true; in.NextElement(); first = false) {
    if (first && in.Peek() == Kind::kArray) return ReadGroup(in, key, table);
    if (in.Peek() != Kind::kString && in.Peek() != Kind::kNone) {
      return WrongValue(key, "the stack holds something that is no text", in);
    }
    if (in.ReadString(text)) frames.emplace_back(text);
  }
  if (in.failed()) return in.error();
  table.emplace_back(key, std::move(frames));
  return {};
}

// `parent` is empty for null.
Status ReadParent(json::Reader& in, std::string_view name, std::string& parent) {
  const Kind kind = in.Peek();
  if (kind == Kind::kNull) {
    if (!in.ReadNull()) return in.error();
    return {};
  }
  std::string_view text;
  if (kind != Kind::kString && kind != Kind::kNone) {
    return WrongValue(name, "the parent is neither text nor null", in);
  }
  if (!in.ReadString(text)) return in.error();
  parent = text;
  return {};
}

Status ReadConstructMember(json::Reader& in, const std::string& name, ConstructTable& table) {
  std::string parent;
  if (in.Peek() != Kind::kArray) {
    PL_TRY(ReadParent(in, name, parent));
    table.emplace_back(name, std::move(parent));
    return {};
  }
  // [parent, micro_step]
  in.EnterArray();
  int count = 0;
  for (; in.NextElement(); ++count) {
    if (count == 0) {
      PL_TRY(ReadParent(in, name, parent));
    } else if (!in.SkipValue()) {
      break;
    }
  }
  if (in.failed()) return in.error();
  if (count != 2) return WrongValue(name, "expected [parent, micro step]", in);
  table.emplace_back(name, std::move(parent));
  return {};
}

// Reads {name: value, ...} with one call of `read_member(name)` per member.
template <class F>
Status ReadTable(json::Reader& in, const F& read_member) {
  std::string_view key;
  if (!in.EnterObject()) return in.error();
  while (in.NextMember(key)) PL_TRY(read_member(std::string(key)));
  if (in.failed() || !in.ReadEnd()) return in.error();
  return {};
}

}  // namespace

Result<StackTable> ParseStack(std::string_view text) {
  json::Reader in(text);
  StackTable table;
  PL_TRY(ReadTable(in, [&](const std::string& key) { return ReadStackMember(in, key, table); }));
  KeepLastOfEach(table, [](const auto& row) -> const std::string& { return row.first; });
  return table;
}

Result<ConstructTable> ParseConstruct(std::string_view text) {
  json::Reader in(text);
  ConstructTable table;
  PL_TRY(ReadTable(in, [&](const std::string& key) -> Status {
    if (key != kMicroStepCount) return ReadConstructMember(in, key, table);
    if (!in.SkipValue()) return in.error();
    return {};
  }));
  KeepLastOfEach(table, [](const auto& row) -> const std::string& { return row.first; });
  return table;
}

Result<StackTable> ReadStack(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  auto table = ParseStack(text);
  if (!table) return table.error().In(path);
  return table;
}

Result<bool> IsGroupedStack(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  json::Reader in(text);
  std::string_view key;
  if (!in.EnterObject() || !in.NextMember(key) || in.Peek() != Kind::kArray) return false;
  return in.EnterArray() && in.NextElement() && in.Peek() == Kind::kArray;
}

Result<ConstructTable> ReadConstruct(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  auto table = ParseConstruct(text);
  if (!table) return table.error().In(path);
  return table;
}

}  // namespace plumbline::dump_json
