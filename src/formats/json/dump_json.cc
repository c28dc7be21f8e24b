#include "formats/json/dump_json.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <deque>
#include <unordered_map>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "formats/json/json_feed.h"

namespace plumbline::dump_json {

namespace {

// A line break and as many blanks as indentation usually needs.
constexpr size_t kReadyBlanks = 63;
constexpr std::array<char, kReadyBlanks + 1> kLineStart = [] {
  std::array<char, kReadyBlanks + 1> text{};
  text.fill(' ');
  text[0] = '\n';
  return text;
}();

constexpr std::string_view kMicroStepCount = "megatron_micro_step_number";

void BreakLine(size_t indent, std::string& out) {
  if (indent <= kReadyBlanks) {
    out.append(kLineStart.data(), indent + 1);
  } else {
    out += '\n';
    out.append(indent, ' ');
  }
}

void AppendInt(int64_t value, std::string& out) {
  std::array<char, 24> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  out.append(text.data(), static_cast<size_t>(end - text.data()));
}

// With summary_mode xor the checksum stands instead of the statistics.
bool IsOnlyXor(const TensorRecord& tensor) {
  if (!tensor.digest || !tensor.digest->starts_with("0x")) return false;
  return std::holds_alternative<std::monostate>(tensor.max) &&
         std::holds_alternative<std::monostate>(tensor.min) &&
         std::holds_alternative<std::monostate>(tensor.mean) &&
         std::holds_alternative<std::monostate>(tensor.norm);
}

// Appends values at a given indentation: that of the line on which the value's text starts.
class ValueText {
 public:
  explicit ValueText(std::string& out) : out_(out) {}

  void Append(const Value& value, size_t indent) {
    std::visit([this, indent](const auto& v) { Write(v, indent); }, value.storage());
  }

  void Write(const ValueMap& map, size_t indent) {
    if (map.empty()) {
      out_ += "{}";
      return;
    }
    char separator = '{';
    for (const auto& [key, value] : map) {
      out_ += separator;
      separator = ',';
      BreakLine(indent + 1, out_);
      json::AppendString(key, out_);
      out_ += ": ";
      Append(value, indent + 1);
    }
    BreakLine(indent, out_);
    out_ += '}';
  }

 private:
  void Write(std::monostate, size_t) { out_ += "null"; }
  void Write(bool value, size_t) { out_ += value ? "true" : "false"; }
  void Write(int64_t value, size_t) { AppendInt(value, out_); }
  void Write(double value, size_t) { AppendJsonFloat(value, out_); }
  void Write(const BigInt& value, size_t) { out_ += value.digits; }
  void Write(const std::string& text, size_t) { json::AppendString(text, out_); }

  void Write(const ValueList& list, size_t indent) {
    if (list.empty()) {
      out_ += "[]";
      return;
    }
    char separator = '[';
    for (const Value& value : list) {
      out_ += separator;
      separator = ',';
      BreakLine(indent + 1, out_);
      Append(value, indent + 1);
    }
    BreakLine(indent, out_);
    out_ += ']';
  }

  void Write(const Shape& shape, size_t indent) {
    if (shape.empty()) {
      out_ += "[]";
      return;
    }
    char separator = '[';
    for (const int64_t size : shape) {
      out_ += separator;
      separator = ',';
      BreakLine(indent + 1, out_);
      AppendInt(size, out_);
    }
    BreakLine(indent, out_);
    out_ += ']';
  }

  void Write(const Statistic& value, size_t indent) {
    std::visit([this, indent](const auto& v) { Write(v, indent); }, value);
  }

  // `key` needs no escapes.
  void Key(std::string_view key, size_t indent) {
    out_ += ',';
    BreakLine(indent, out_);
    out_ += '"';
    out_ += key;
    out_ += "\": ";
  }

  template <class T>
  void Member(std::string_view key, const T& value, size_t indent) {
    Key(key, indent);
    Write(value, indent);
  }

  template <class T>
  void Optional(std::string_view key, const std::optional<T>& value, size_t indent) {
    if (value) Member(key, *value, indent);
  }

  // The order of keys is that of 1.2.2; plumbline's own keys follow all of upstream's.
  void Write(const TensorRecord& tensor, size_t indent) {
    const size_t inner = indent + 1;
    out_ += '{';
    BreakLine(inner, out_);
    out_ += "\"type\": ";
    json::AppendString(tensor.type, out_);
    Member(kDType, tensor.dtype_text, inner);
    Member(kShape, tensor.shape, inner);
    if (!IsOnlyXor(tensor)) {
      Member(kMax, tensor.max, inner);
      Member(kMin, tensor.min, inner);
      Member(kMean, tensor.mean, inner);
      Member(kNorm, tensor.norm, inner);
    }
    Optional(kRequiresGrad, tensor.requires_grad, inner);
    Optional(kMaxFinite, tensor.max_finite, inner);
    Optional(kMinFinite, tensor.min_finite, inner);
    Optional(kDigest, tensor.digest, inner);
    Optional(kDataName, tensor.data_name, inner);
    Optional(kNanCount, tensor.nan_count, inner);
    Optional(kInfCount, tensor.inf_count, inner);
    Optional(kZeroCount, tensor.zero_count, inner);
    BreakLine(indent, out_);
    out_ += '}';
  }

  std::string& out_;
};

void AppendHeaderText(std::string_view key, std::string_view value, std::string& out) {
  BreakLine(1, out);
  out += '"';
  out += key;
  out += "\": ";
  json::AppendString(value, out);
  out += ',';
}

}  // namespace

void DumpWriter::Begin(const RunHeader& header) {
  first_ = true;
  holds_saves_ = header.holds_saves();
  out_ += '{';
  AppendHeaderText(kTask, header.task, out_);
  AppendHeaderText(kLevel, header.level, out_);
  AppendHeaderText(kFramework, header.framework, out_);
  if (header.dump_data_dir.empty()) {
    out_ += "\n \"dump_data_dir\": null,";
  } else {
    AppendHeaderText(kDumpDataDir, header.dump_data_dir, out_);
  }
  if (header.is_merged) {
    BreakLine(1, out_);
    out_ += fmt::format("\"{}\": true,", kIsMerged);
  }
  out_ += "\n \"data\": {";
}

void DumpWriter::Add(const Call& call) {
  constexpr size_t kEntryIndent = 2;
  if (!first_) out_ += ',';
  first_ = false;
  BreakLine(kEntryIndent, out_);
  json::AppendString(call.name, out_);
  out_ += ": ";
  ValueText text(out_);
  const bool bare = holds_saves_ && call.members.size() == 1 && call.members[0].first.empty();
  if (bare) {
    text.Append(call.members[0].second, kEntryIndent);
  } else {
    text.Write(call.members, kEntryIndent);
  }
}

void DumpWriter::End() { out_ += first_ ? "}\n}" : "\n }\n}"; }

std::string FormatFrames(std::span<const std::string> frames) {
  if (frames.empty()) return "[]";
  std::string out;
  char bracket = '[';
  for (const std::string& frame : frames) {
    out += bracket;
    bracket = ',';
    BreakLine(2, out);
    json::AppendString(frame, out);
  }
  out += "\n ]";
  return out;
}

std::string FormatStack(const StackTable& stack) {
  std::vector<std::string> texts;
  texts.reserve(stack.size());
  StackTexts formatted;
  for (const auto& [name, frames] : stack) {
    formatted.emplace_back(name, texts.emplace_back(FormatFrames(frames)));
  }
  return FormatStackTexts(formatted);
}

std::string FormatStackTexts(const StackTexts& stack) {
  std::string out;
  (void)WriteStackTexts(stack, [&out](std::string_view piece) {
    out += piece;
    return Status();
  });
  return out;
}

Status WriteStackTexts(const StackTexts& stack, const TextSink& sink) {
  constexpr size_t kPieceBytes = size_t{1} << 20;
  std::string out;
  char separator = '{';
  for (const auto& [name, frames] : stack) {
    out += separator;
    separator = ',';
    BreakLine(1, out);
    json::AppendString(name, out);
    out += ": ";
    out += frames;
    if (out.size() < kPieceBytes) continue;
    PL_TRY(sink(out));
    out.clear();
  }
  out += stack.empty() ? "{}" : "\n}";
  return sink(out);
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
      BreakLine(3, out);
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

std::string FormatConstruct(const CallTree& calls) {
  std::string out;
  char separator = '{';
  const auto begin = [&](std::string_view key) {
    out += separator;
    separator = ',';
    BreakLine(1, out);
    json::AppendString(key, out);
    out += ": ";
  };
  if (calls.has_micro_steps) {
    begin(kMicroStepCount);
    out += fmt::format("{}", calls.last_micro_step);
  }
  for (const CallTree::Row& row : calls.rows) {
    begin(row.name);
    if (calls.has_micro_steps) out += '[';
    row.parent.empty() ? void(out += "null") : json::AppendString(row.parent, out);
    if (calls.has_micro_steps) out += fmt::format(", {}]", row.micro_step);
  }
  out += separator == '{' ? "{}" : "\n}";
  return out;
}

// stack.json and construct.json -> tables.

namespace {

using json::Kind;

// Enough for the first name of a stack.json.
constexpr size_t kFirstMemberBytes = size_t{64} << 10;
constexpr int kMaxDepth = 512;  // of lists and objects in these files
// Newest upstream, Megatron training: a counter among the parents.

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
  const Shared<std::vector<std::string>> shared = std::move(frames);
  for (std::string& name : names) table.emplace_back(std::move(name), shared);
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

// Members of a stack.json. Many calls come from one line of code, and their lists are equal byte
// for byte: these are read once. As code runs in the same order again and again, so do its lists.
class StackReader {
 public:
  StackReader(JsonFeed& feed, StackTable& table) : feed_(feed), in_(feed.in()), table_(table) {}

  Status Read(const std::string& key) {
    if (last_ < known_.size() && in_.SkipKnown(known_[known_[last_].next].text)) {
      Add(key, known_[last_].next);
      return {};
    }
    in_.Peek();  // steps over blanks
    json::Reader at_value = in_;
    const size_t begin = in_.offset();
    if (!in_.SkipValue()) return ReadStackMember(at_value, key, table_);  // says what is wrong
    const std::string_view value = feed_.text().substr(begin, in_.offset() - begin);
    const auto found = by_text_.find(value);
    if (found != by_text_.end()) {
      Follow(found->second);
      Add(key, found->second);
      return {};
    }
    const size_t rows = table_.size();
    PL_TRY(ReadStackMember(at_value, key, table_));
    // A group has names of its own.
    const bool is_plain = table_.size() == rows + 1 && table_.back().first == key;
    if (!is_plain) return {};
    known_.push_back({std::string(value), table_.back().second, known_.size()});
    by_text_.emplace(known_.back().text, known_.size() - 1);
    Follow(known_.size() - 1);
    last_ = known_.size() - 1;
    return {};
  }

 private:
  struct Known {
    std::string text;
    Shared<std::vector<std::string>> frames;
    size_t next;  // the one that came after it the last time
  };

  void Add(const std::string& key, size_t which) {
    table_.emplace_back(key, known_[which].frames);
    last_ = which;
  }
  void Follow(size_t which) {
    if (last_ < known_.size()) known_[last_].next = which;
  }

  JsonFeed& feed_;
  json::Reader& in_;
  StackTable& table_;
  std::deque<Known> known_;  // never moved: looked up by views of their texts
  std::unordered_map<std::string_view, size_t> by_text_;
  size_t last_ = static_cast<size_t>(-1);  // none yet
};

// A micro step; null is 0, and -1 stands for anything else that is no count.
Status ReadCount(json::Reader& in, int64_t& count) {
  count = in.Peek() == Kind::kNull ? 0 : -1;
  json::Number number;
  if (in.Peek() != Kind::kNumber) {
    if (!in.SkipValue()) return in.error();
    return {};
  }
  if (!in.ReadNumber(number)) return in.error();
  const auto* whole = std::get_if<int64_t>(&number);
  if (whole != nullptr && *whole >= 0) count = *whole;
  return {};
}

// Members of a construct.json. A parent has several children, and is one text for all of them.
class ConstructReader {
 public:
  ConstructReader(json::Reader& in, CallTree& tree) : in_(in), tree_(tree) {}

  Status Read(const std::string& name) {
    CallTree::Row row{name, {}, 0};
    if (in_.Peek() == Kind::kArray) {
      PL_TRY(ReadPair(name, row));
    } else {
      PL_TRY(ReadParent(name, row.parent));
    }
    tree_.rows.push_back(std::move(row));
    return {};
  }

 private:
  // `parent` stays empty for null.
  Status ReadParent(std::string_view name, Text& parent) {
    const Kind kind = in_.Peek();
    if (kind == Kind::kNull) {
      if (!in_.ReadNull()) return in_.error();
      return {};
    }
    std::string_view text;
    if (kind != Kind::kString && kind != Kind::kNone) {
      return WrongValue(name, "the parent is neither text nor null", in_);
    }
    if (!in_.ReadString(text)) return in_.error();
    if (last_ != text) last_ = Known(text);
    parent = last_;
    return {};
  }
  const Text& Known(std::string_view text) {
    const auto found = known_.find(text);
    if (found != known_.end()) return found->second;
    const Text added(text);
    return known_.emplace(added.view(), added).first->second;
  }

  // [parent, micro_step]
  Status ReadPair(const std::string& name, CallTree::Row& row) {
    in_.EnterArray();
    int count = 0;
    for (; in_.NextElement(); ++count) {
      if (count == 0) {
        PL_TRY(ReadParent(name, row.parent));
      } else if (count == 1) {
        PL_TRY(ReadCount(in_, row.micro_step));
      } else if (!in_.SkipValue()) {
        break;
      }
    }
    if (in_.failed()) return in_.error();
    if (count != 2) return WrongValue(name, "expected [parent, micro step]", in_);
    return {};
  }

  json::Reader& in_;
  CallTree& tree_;
  std::unordered_map<std::string_view, Text> known_;  // by views of themselves
  Text last_;
};

// Reads {name: value, ...} with one call of `read_member(name)` per member, which JsonFeed::Read()
// may repeat.
template <class F>
Status ReadTable(JsonFeed& feed, const F& read_member) {
  json::Reader& in = feed.in();
  const auto enter = [&]() -> Status {
    if (!in.EnterObject()) return in.error();
    return {};
  };
  bool has_member = true;
  const auto read_next = [&]() -> Status {
    std::string_view key;
    has_member = in.NextMember(key);
    if (in.failed()) return in.error();
    return has_member ? read_member(std::string(key)) : Status();
  };
  PL_TRY(feed.Read(enter));
  while (has_member) {
    PL_TRY(feed.Read(read_next));
    feed.Release(in.offset());
  }
  return feed.ReadEnd();
}

Result<StackTable> ReadStackFrom(JsonFeed& feed) {
  StackTable table;
  StackReader reader(feed, table);
  PL_TRY(ReadTable(feed, [&](const std::string& key) { return reader.Read(key); }));
  KeepLastOfEach(table, [](const auto& row) { return row.first.view(); });
  return table;
}

Result<CallTree> ReadCallTreeFrom(JsonFeed& feed) {
  json::Reader& in = feed.in();
  CallTree tree;
  ConstructReader reader(in, tree);
  PL_TRY(ReadTable(feed, [&](const std::string& key) -> Status {
    if (key != kMicroStepCount) return reader.Read(key);
    tree.has_micro_steps = true;
    return ReadCount(in, tree.last_micro_step);
  }));
  KeepLastOfEach(tree.rows, [](const auto& row) { return row.name.view(); });
  return tree;
}

}  // namespace

Result<StackTable> ParseStack(std::string_view text) {
  JsonFeed feed(text, kMaxDepth);
  return ReadStackFrom(feed);
}

Result<CallTree> ParseCallTree(std::string_view text) {
  JsonFeed feed(text, kMaxDepth);
  return ReadCallTreeFrom(feed);
}

Result<StackTable> ReadStack(const std::string& path) {
  PL_TRY_ASSIGN(StreamedText text, StreamedText::Open(path));
  JsonFeed feed(text, kMaxDepth);
  auto table = ReadStackFrom(feed);
  if (!table) return table.error().In(path);
  return table;
}

Result<bool> IsGroupedStack(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadStart(path, kFirstMemberBytes));
  json::Reader in(text);
  std::string_view key;
  if (!in.EnterObject() || !in.NextMember(key) || in.Peek() != Kind::kArray) return false;
  return in.EnterArray() && in.NextElement() && in.Peek() == Kind::kArray;
}

Result<CallTree> ReadCallTree(const std::string& path) {
  PL_TRY_ASSIGN(StreamedText text, StreamedText::Open(path));
  JsonFeed feed(text, kMaxDepth);
  auto tree = ReadCallTreeFrom(feed);
  if (!tree) return tree.error().In(path);
  return tree;
}

}  // namespace plumbline::dump_json
