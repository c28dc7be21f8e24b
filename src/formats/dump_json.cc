#include "formats/dump_json.h"

#include <array>
#include <charconv>

#include "base/json.h"
#include "base/number_text.h"
#include "formats/dump_json_keys.h"

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

std::string FormatConstruct(const ConstructTable& parents) {
  std::string out;
  char separator = '{';
  for (const auto& [name, parent] : parents) {
    out += separator;
    separator = ',';
    BreakLine(1, out);
    json::AppendString(name, out);
    out += ": ";
    if (parent.empty()) {
      out += "null";
    } else {
      json::AppendString(parent, out);
    }
  }
  out += parents.empty() ? "{}" : "\n}";
  return out;
}

}  // namespace plumbline::dump_json
