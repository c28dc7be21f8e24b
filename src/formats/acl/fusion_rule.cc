#include "formats/acl/fusion_rule.h"

#include <fmt/format.h>

#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"

namespace plumbline::fusion {
namespace {

constexpr int kMaxDepth = 64;

// The value of an attribute, as far as these files use it.
struct AttrValue {
  std::optional<std::string> text;
  std::optional<int64_t> number;
  std::optional<bool> truth;
  std::optional<std::vector<std::string>> texts;
  std::optional<std::vector<int64_t>> numbers;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text, kMaxDepth) {}

  Result<Rule> Run();

 private:
  [[nodiscard]] Error Failure(std::string_view what) const {
    if (in_.failed()) return in_.error();
    return {ErrorCode::kCorrupt, fmt::format("byte {}: {}", in_.offset(), what)};
  }
  // Calls body(key) for each member of the object that comes next; body reads one value.
  template <class F>
  Status ForMembers(std::string_view what, const F& body);
  template <class F>
  Status ForElements(std::string_view what, const F& body);
  Status Text(std::string_view what, std::string& out);
  Status Integer(std::string_view what, int64_t& out);
  Status Value(AttrValue& out);
  Status List(AttrValue& out);
  // Calls body(key, value) for each {key, value} of a list of attributes.
  template <class F>
  Status Attributes(const F& body);
  Status Graph(Rule& rule);
  Status GraphMember(const std::string& key, Rule& rule, bool& has_operators);
  Status OneOperator(Operator& op);
  Status Inputs(Operator& op);
  Status Outputs(Operator& op);
  Status Output(OutputDesc& output);
  static void Take(std::string_view key, AttrValue& value, Operator& op);
  static void Take(std::string_view key, AttrValue& value, OutputDesc& output);

  json::Reader in_;
};

template <class F>
Status Parser::ForMembers(std::string_view what, const F& body) {
  if (in_.Peek() != json::Kind::kObject || !in_.EnterObject()) {
    return Failure(fmt::format("{} is no object", what));
  }
  std::string_view key;
  while (in_.NextMember(key)) PL_TRY(body(std::string(key)));
  return in_.failed() ? Status(Failure(what)) : Status();
}

template <class F>
Status Parser::ForElements(std::string_view what, const F& body) {
  if (in_.Peek() != json::Kind::kArray || !in_.EnterArray()) {
    return Failure(fmt::format("{} is no array", what));
  }
  while (in_.NextElement()) PL_TRY(body());
  return in_.failed() ? Status(Failure(what)) : Status();
}

Status Parser::Text(std::string_view what, std::string& out) {
  std::string_view text;
  if (in_.Peek() != json::Kind::kString || !in_.ReadString(text)) {
    return Failure(fmt::format("{} is no text", what));
  }
  out = text;
  return {};
}

Status Parser::Integer(std::string_view what, int64_t& out) {
  json::Number number;
  if (in_.Peek() != json::Kind::kNumber || !in_.ReadNumber(number) ||
      !std::holds_alternative<int64_t>(number)) {
    return Failure(fmt::format("{} is no integer", what));
  }
  out = std::get<int64_t>(number);
  return {};
}

Status Parser::List(AttrValue& out) {
  return ForMembers("\"list\"", [&](const std::string& key) -> Status {
    if (key == "s") {
      out.texts.emplace();
      return ForElements("\"s\"",
                         [&] { return Text("element of \"s\"", out.texts->emplace_back()); });
    }
    if (key == "i") {
      out.numbers.emplace();
      return ForElements("\"i\"",
                         [&] { return Integer("element of \"i\"", out.numbers->emplace_back()); });
    }
    return in_.SkipValue() ? Status() : Status(Failure("\"list\""));
  });
}

Status Parser::Value(AttrValue& out) {
  return ForMembers("\"value\"", [&](const std::string& key) -> Status {
    if (key == "s") return Text("\"s\"", out.text.emplace());
    if (key == "i") return Integer("\"i\"", out.number.emplace());
    if (key == "list") return List(out);
    if (key == "b") {
      return in_.Peek() == json::Kind::kBool && in_.ReadBool(out.truth.emplace())
                 ? Status()
                 : Status(Failure("\"b\" is no truth value"));
    }
    return in_.SkipValue() ? Status() : Status(Failure("\"value\""));
  });
}

template <class F>
Status Parser::Attributes(const F& body) {
  return ForElements("\"attr\"", [&]() -> Status {
    std::string name;
    AttrValue value;
    PL_TRY(ForMembers("element of \"attr\"", [&](const std::string& key) -> Status {
      if (key == "key") return Text("\"key\"", name);
      if (key == "value") return Value(value);
      return in_.SkipValue() ? Status() : Status(Failure("\"attr\""));
    }));
    body(name, value);
    return Status();
  });
}

void Parser::Take(std::string_view key, AttrValue& value, Operator& op) {
  if (key == "_datadump_original_op_names") {
    op.original_names = value.texts.value_or(std::vector<std::string>{""});
    if (op.original_names->empty()) op.original_names->emplace_back();
  } else if (key == "_L1_fusion_sub_graph_no") {
    op.l1_group = value.text.value_or("");
  } else if (key == "_datadump_is_multiop") {
    op.is_multi_part = value.truth.value_or(false);
  }
}

void Parser::Take(std::string_view key, AttrValue& value, OutputDesc& output) {
  if (key == "_datadump_origin_name") {
    output.origin_name = value.text;
  } else if (key == "_datadump_origin_output_index") {
    if (value.number && *value.number >= 0) {
      output.origin_index = static_cast<size_t>(*value.number);
    }
  } else if (key == "_datadump_origin_format") {
    output.origin_format = value.text.value_or("");
  } else if (key == "origin_format") {
    if (output.origin_format.empty()) output.origin_format = value.text.value_or("");
  } else if (key == "origin_shape") {
    output.origin_shape = value.numbers.value_or(std::vector<int64_t>{});
  }
}

Status Parser::Inputs(Operator& op) {
  return ForElements("\"input\"", [&]() -> Status {
    std::string text;
    PL_TRY(Text("element of \"input\"", text));
    if (text.empty()) return {};  // an input that is not connected
    const size_t colon = text.rfind(':');
    const std::string index = colon == std::string::npos ? "" : text.substr(colon + 1);
    if (index == "-1") return {};  // a control edge
    const auto number = ParseNatural(index);
    if (!number || text.find(':') != colon) {
      return Failure(fmt::format("input \"{}\" is wrong (expected name:index)", text));
    }
    op.inputs.push_back({text.substr(0, colon), static_cast<size_t>(*number)});
    return {};
  });
}

Status Parser::Output(OutputDesc& output) {
  return ForMembers("element of \"output_desc\"", [&](const std::string& key) -> Status {
    if (key == "dtype") return Text("\"dtype\"", output.dtype);
    if (key == "attr") {
      return Attributes(
          [&](std::string_view name, AttrValue& value) { Take(name, value, output); });
    }
    return in_.SkipValue() ? Status() : Status(Failure("\"output_desc\""));
  });
}

Status Parser::Outputs(Operator& op) {
  return ForElements("\"output_desc\"", [&] {
    OutputDesc& output = op.outputs.emplace_back();
    output.origin_index = op.outputs.size() - 1;
    return Output(output);
  });
}

Status Parser::OneOperator(Operator& op) {
  bool has_name = false, has_type = false;
  const Status status = ForMembers("element of \"op\"", [&](const std::string& key) -> Status {
    has_name = has_name || key == "name";
    has_type = has_type || key == "type";
    if (key == "name") return Text("\"name\"", op.name);
    if (key == "type") return Text("\"type\"", op.type);
    if (key == "id") return Integer("\"id\"", op.id);
    if (key == "input") return Inputs(op);
    if (key == "output_desc") return Outputs(op);
    if (key == "attr") {
      return Attributes([&](std::string_view name, AttrValue& value) { Take(name, value, op); });
    }
    return in_.SkipValue() ? Status() : Status(Failure("\"op\""));
  });
  if (!status) return status.error().In(fmt::format("operator \"{}\"", op.name));
  if (!has_name || !has_type) {
    return Failure(
        fmt::format("operator \"{}\": \"{}\" is missing", op.name, has_name ? "type" : "name"));
  }
  return {};
}

Status Parser::GraphMember(const std::string& key, Rule& rule, bool& has_operators) {
  if (key == "name") {
    std::string name;
    PL_TRY(Text("\"name\" of a graph", name));
    if (rule.graph_name.empty()) rule.graph_name = std::move(name);
    return {};
  }
  if (key != "op") return in_.SkipValue() ? Status() : Status(Failure("\"graph\""));
  has_operators = true;
  return ForElements("\"op\"", [&] { return OneOperator(rule.operators.emplace_back()); });
}

Status Parser::Graph(Rule& rule) {
  bool has_operators = false;
  PL_TRY(ForMembers("element of \"graph\"",
                    [&](const std::string& key) { return GraphMember(key, rule, has_operators); }));
  if (!has_operators) return Failure("a graph without \"op\"");
  return {};
}

Result<Rule> Parser::Run() {
  Rule rule;
  bool has_graph = false;
  PL_TRY(ForMembers("the file", [&](const std::string& key) -> Status {
    if (key != "graph") return in_.SkipValue() ? Status() : Status(Failure("the file"));
    has_graph = true;
    return ForElements("\"graph\"", [&] { return Graph(rule); });
  }));
  if (!in_.ReadEnd()) return Failure("text behind the end");
  if (!has_graph) return Failure("\"graph\" is missing");
  return rule;
}

}  // namespace

Result<Rule> Parse(std::string_view text) { return Parser(text).Run(); }

Result<Rule> Read(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  Result<Rule> rule = Parse(text);
  if (!rule) return rule.error().In(path);
  return rule;
}

}  // namespace plumbline::fusion
