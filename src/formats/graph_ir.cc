#include "formats/graph_ir.h"

#include <algorithm>
#include <optional>

#include "base/text_parts.h"

namespace plumbline::graph_ir {
namespace {

constexpr std::string_view kSubgraph = "subgraph @";
constexpr std::string_view kEnd = "}";
constexpr std::string_view kReturn = "Return(";
constexpr std::string_view kAttributes = "cnode_primal_attrs:";
constexpr std::string_view kForwardId = "forward_unique_id: \"";
constexpr std::string_view kUniqueIds[] = {"{unique_id: \"", " unique_id: \""};
constexpr std::string_view kOlderName = ": full_name_with_scope:";

std::string_view WithoutBlanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  while (text.ends_with(' ') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// What stands before the first of `marks`.
std::string_view Before(std::string_view text, std::string_view marks) {
  return text.substr(0, text.find_first_of(marks));
}

// "%5(CNode_12) = PrimFunc_Add(...": the names in it; nothing for other lines.
std::optional<Node> NodeIn(std::string_view line) {
  const std::string_view number = Before(line, "(");
  if (!line.starts_with('%') || !IsDigits(number.substr(1)) || number.size() == line.size()) {
    return std::nullopt;
  }
  // The name may hold brackets, but no blank.
  const std::string_view rest = line.substr(number.size() + 1);
  const size_t blank = std::min(rest.find_first_of(" ="), rest.size());
  const std::string_view name = rest.substr(0, blank);
  std::string_view value = WithoutBlanks(rest.substr(blank));
  if (!name.ends_with(')') || !value.starts_with('=')) return std::nullopt;
  value = WithoutBlanks(value.substr(1));
  const std::string_view op = Before(value, "(");
  if (op.empty() || op.size() == value.size()) return std::nullopt;
  return Node{number, name.substr(0, name.size() - 1), op, {}, {}, {}, {}, {}};
}

// The number behind `key`.
std::string_view IdBehind(std::string_view key, std::string_view text) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view number = Before(text.substr(at + key.size()), "\"");
  return IsDigits(number) ? number : std::string_view();
}

void TakeIds(std::string_view line, Node& node) {
  const size_t at = line.find(kAttributes);
  if (at == std::string_view::npos) return;
  const std::string_view attributes = line.substr(at + kAttributes.size());
  node.forward_unique_id = IdBehind(kForwardId, attributes);
  for (const std::string_view key : kUniqueIds) {
    if (node.unique_id.empty()) node.unique_id = IdBehind(key, attributes);
  }
}

// What a line says of the node's place among the scopes.
enum class Naming { kNone, kScope, kFullName };
Naming NamingOf(std::string_view line) {
  if (line.starts_with(kOlderName)) return Naming::kFullName;
  if (!line.starts_with('#')) return Naming::kNone;
  const std::string key = LowerCase(Before(WithoutBlanks(line.substr(1)), ":("));
  if (key.starts_with("full") && key.ends_with("scope")) return Naming::kFullName;
  return key == "scope" ? Naming::kScope : Naming::kNone;
}

// "Default/MatMul-op0" of "# Fullname with scope: (Default/MatMul-op0)".
std::string_view NameIn(std::string_view line) {
  const size_t colon = line.find(':', 1);
  const size_t first = line.find('(', colon), last = line.rfind(')');
  if (first == std::string_view::npos || last == std::string_view::npos || last < first) return {};
  return line.substr(first + 1, last - first - 1);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Graph> Run() {
    for (size_t at = 0; at < text_.size();) {
      const size_t end = std::min(text_.find('\n', at), text_.size());
      if (end == text_.size() && in_subgraph_) break;  // a cut line, which may hold half a name
      Line(text_.substr(at, end - at));
      at = end + 1;
    }
    graph_.is_cut = in_subgraph_;
    if (graph_.nodes.empty()) {
      return Error(ErrorCode::kCorrupt,
                   "holds no node (expected the text of a graph: lines \"%0(name) = Op(...)\" in "
                   "a subgraph)");
    }
    return std::move(graph_);
  }

 private:
  // What the lines of the open node are about.
  enum class Part { kNoNode, kHead, kNamed, kSource };

  void Line(std::string_view line) {
    const std::string_view content = WithoutBlanks(line);
    if (content.starts_with('%')) {
      if (auto node = NodeIn(content)) return Begin(*std::move(node), content);
    }
    if (content.starts_with(kSubgraph)) {
      subgraph_ = Before(content.substr(kSubgraph.size()), "( {");
      in_subgraph_ = true;
      part_ = Part::kNoNode;
    } else if (line.starts_with(kEnd) || content.starts_with(kReturn)) {
      if (line.starts_with(kEnd)) in_subgraph_ = false;
      part_ = Part::kNoNode;
    } else if (part_ == Part::kHead) {
      Head(content);
    } else if (part_ != Part::kNoNode) {
      Source(line, content);
    }
  }

  void Begin(Node node, std::string_view content) {
    node.subgraph = subgraph_;
    TakeIds(content, node);
    graph_.nodes.push_back(node);
    part_ = Part::kHead;
  }

  void Head(std::string_view content) {
    Node& node = graph_.nodes.back();
    const Naming naming = NamingOf(content);
    if (naming == Naming::kNone) return TakeIds(content, node);  // values may span lines
    if (naming == Naming::kFullName) node.full_name = NameIn(content);
    part_ = Part::kNamed;
  }

  void Source(std::string_view line, std::string_view content) {
    Node& node = graph_.nodes.back();
    if (!content.starts_with('#')) {
      part_ = Part::kNoNode;
      return;
    }
    if (part_ == Part::kNamed) {
      part_ = Part::kSource;
      node.source = line;
    } else {
      const auto size = static_cast<size_t>(line.data() + line.size() - node.source.data());
      node.source = {node.source.data(), size};
    }
  }

  std::string_view text_;
  Graph graph_;
  std::string_view subgraph_;
  bool in_subgraph_ = false;
  Part part_ = Part::kNoNode;
};

}  // namespace

Result<Graph> Parse(std::string_view text) { return Parser(text).Run(); }

std::vector<std::string_view> SourceLines(std::string_view source) {
  std::vector<std::string_view> lines;
  for (const std::string_view line : SplitAt(source, '\n')) {
    std::string_view content = WithoutBlanks(line);
    content.remove_prefix(std::min(content.find_first_not_of("# "), content.size()));
    while (content.ends_with('/')) content.remove_suffix(1);
    if (!content.empty()) lines.push_back(content);
  }
  return lines;
}

}  // namespace plumbline::graph_ir
