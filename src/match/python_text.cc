#include "match/python_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/number_text.h"

namespace plumbline::match {
namespace {

void AppendRepr(const Value& value, std::string& out);

// repr(str) for the texts that occur in dumps: quotes and backslashes escaped, controls as \n, \t,
// \r or \xNN.
void AppendQuoted(std::string_view text, std::string& out) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += quote;
}

struct ReprVisitor {
  std::string& out;
  void operator()(std::monostate) const { out += "None"; }
  void operator()(bool v) const { out += v ? "True" : "False"; }
  void operator()(int64_t v) const { out += std::to_string(v); }
  void operator()(double v) const { AppendPythonFloat(v, out); }
  void operator()(const BigInt& v) const { out += v.digits; }
  void operator()(const std::string& v) const { AppendQuoted(v, out); }
  void operator()(const ValueList& list) const {
    out += '[';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out += ", ";
      AppendRepr(list[i], out);
    }
    out += ']';
  }
  void operator()(const ValueMap& map) const {
    out += '{';
    for (size_t i = 0; i < map.size(); ++i) {
      if (i > 0) out += ", ";
      AppendQuoted(map[i].first, out);
      out += ": ";
      AppendRepr(map[i].second, out);
    }
    out += '}';
  }
  void operator()(const TensorRecord& tensor) const {
    out += fmt::format("tensor({}, {})", tensor.dtype_text, ShapeText(tensor.shape));
  }
};

void AppendRepr(const Value& value, std::string& out) {
  std::visit(ReprVisitor{out}, value.storage());
}

struct TypeVisitor {
  std::string_view operator()(std::monostate) const { return "<class 'NoneType'>"; }
  std::string_view operator()(bool) const { return "<class 'bool'>"; }
  std::string_view operator()(int64_t) const { return "<class 'int'>"; }
  std::string_view operator()(double) const { return "<class 'float'>"; }
  std::string_view operator()(const BigInt&) const { return "<class 'int'>"; }
  std::string_view operator()(const std::string&) const { return "<class 'str'>"; }
  std::string_view operator()(const ValueList&) const { return "<class 'list'>"; }
  std::string_view operator()(const ValueMap&) const { return "<class 'dict'>"; }
  std::string_view operator()(const TensorRecord&) const { return "<class 'dict'>"; }
};

}  // namespace

std::string PythonText(const Value& value) {
  if (const auto* text = value.As<std::string>()) return *text;
  std::string out;
  AppendRepr(value, out);
  return out;
}

std::string_view PythonTypeText(const Value& value) {
  return std::visit(TypeVisitor{}, value.storage());
}

std::string ShapeText(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string TupleText(std::span<const int64_t> shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::string ListText(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += ", ";
    AppendQuoted(texts[i], out);
  }
  return out + "]";
}

}  // namespace plumbline::match
