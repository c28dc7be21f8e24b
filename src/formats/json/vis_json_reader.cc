#include "formats/json/vis_json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/text/text_parts.h"

namespace plumbline::vis_json {
namespace {

using json::Kind;
using json::Reader;

// Where the texts of a node stand in the file.
struct Span {
  size_t begin = 0, end = 0;
};
struct TextSpans {
  Span stack, inputs, outputs, merged;
};

struct Graph {
  std::string tensor_directory;
  std::vector<vis::NodeRow> nodes;
  bool is_there = false;
};

// The number that follows `word` in the name of a file, if one does.
std::optional<int64_t> NumberAfter(std::string_view name, std::string_view word) {
  const size_t at = name.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = name.substr(at + word.size());
  return ParseInteger(rest.substr(0, rest.find_first_not_of("0123456789")));
}

class VisSource : public vis::Source {
 public:
  static Result<std::unique_ptr<vis::Source>> Open(const std::string& path) {
    auto source = std::make_unique<VisSource>();
    PL_TRY_ASSIGN(source->text_, ReadFile(path));
    PL_TRY(source->Read(path));
    return source;
  }

  Result<std::vector<vis::NodeRow>> ReadNodes(const vis::GraphPlace& graph) override {
    return sides_[graph.is_golden ? 1 : 0].nodes;
  }
  Result<vis::NodeTexts> ReadTexts(const vis::NodeRow& node) override {
    const TextSpans& spans = spans_[static_cast<size_t>(node.place)];
    return vis::NodeTexts{.stack = Slice(spans.stack),
                          .inputs = Slice(spans.inputs),
                          .outputs = Slice(spans.outputs),
                          .merged = Slice(spans.merged)};
  }
  Result<std::string> TensorDirectory(const vis::GraphPlace& graph) override {
    return sides_[graph.is_golden ? 1 : 0].tensor_directory;
  }

 private:
  [[nodiscard]] std::string Slice(const Span& span) const {
    return text_.substr(span.begin, span.end - span.begin);
  }

  Status Read(const std::string& path) {
    Reader in(text_);
    if (in.Peek() != Kind::kObject) return Foreign(path);
    head_.has_overflow_levels = true;  // old files do not say so
    std::string_view key;
    if (in.EnterObject()) {
      while (in.NextMember(key)) ReadTop(std::string(key), in);
    }
    in.ReadEnd();
    if (in.failed()) {
      const bool is_cut = in.failure() == Reader::Failure::kTruncated;
      const Error error = in.error().In(path);
      if (!is_cut) return error;
      return Error(error.code(), error.message() + ". The file is cut; write or copy it again.");
    }
    if (!sides_[0].is_there) return Foreign(path);
    const std::string name(BaseName(path));
    const int64_t step = NumberAfter(name, "step").value_or(0);
    const int64_t rank = NumberAfter(name, "rank").value_or(0);
    for (const bool is_golden : {false, true}) {
      if (sides_[is_golden ? 1 : 0].is_there) graphs_.push_back({is_golden, step, rank});
    }
    head_.is_pair = sides_[1].is_there;
    return {};
  }

  static Status Foreign(const std::string& path) {
    return Error(
        ErrorCode::kUnsupported,
        fmt::format("{}: no graph (expected a .vis file: a JSON object with NPU and Bench, "
                    "or root and node). Make one with plumb graph --file_type vis.",
                    path));
  }

  void ReadTop(std::string_view key, Reader& in) {
    if (key == "NPU" || key == "Bench") {
      Graph& side = sides_[key == "Bench" ? 1 : 0];
      if (in.Peek() != Kind::kObject) return (void)in.SkipValue();
      std::string_view member;
      if (in.EnterObject()) {
        while (in.NextMember(member)) ReadGraphMember(std::string(member), side, in);
      }
    } else if (key == "root" || key == "dump_data_dir" || key == "node") {
      ReadGraphMember(key, sides_[0], in);
    } else if (key == "Colors") {
      ReadColors(in);
    } else if (key == "MicroSteps") {
      head_.micro_steps = Integer(in).value_or(1);
    } else if (key == "task") {
      head_.task = Text(in);
    } else if (key == "OverflowCheck") {
      if (in.Peek() != Kind::kBool) return (void)in.SkipValue();
      in.ReadBool(head_.has_overflow_levels);
    } else if (key == "mp_meta") {
      ReadFacts(in);
    } else {
      in.SkipValue();
    }
  }

  void ReadGraphMember(std::string_view key, Graph& graph, Reader& in) {
    if (key == "dump_data_dir") {
      graph.tensor_directory = Text(in);
    } else if (key == "node" && in.Peek() == Kind::kObject) {
      graph.is_there = true;
      std::string_view name;
      if (!in.EnterObject()) return;
      while (in.NextMember(name)) ReadNode(std::string(name), graph, in);
    } else {
      in.SkipValue();
    }
  }

  void ReadNode(std::string name, Graph& graph, Reader& in) {
    if (in.Peek() != Kind::kObject) return (void)in.SkipValue();
    vis::NodeRow node{.name = std::string(vis::WithoutSide(name)), .parent = {}};
    node.place = static_cast<int64_t>(spans_.size());
    spans_.emplace_back();
    std::string_view key;
    if (in.EnterObject()) {
      while (in.NextMember(key)) ReadNodeMember(std::string(key), node, in);
    }
    graph.nodes.push_back(std::move(node));
  }

  void ReadNodeMember(std::string_view key, vis::NodeRow& node, Reader& in) {
    TextSpans& spans = spans_.back();
    if (key == "input_data") {
      spans.inputs = Skip(in);
    } else if (key == "output_data") {
      spans.outputs = Skip(in);
    } else if (key == "stack_info") {
      spans.stack = Skip(in);
    } else if (key == "parallel_merge_info") {
      spans.merged = Skip(in);
    } else if (key == "matched_distributed") {
      const Kind kind = in.Peek();
      const Span span = Skip(in);
      if (kind == Kind::kObject || kind == Kind::kArray) node.transfers = Slice(span);
    } else if (key == "upnode") {
      const std::string parent = Text(in);
      if (parent != "None") node.parent = vis::WithoutSide(parent);
    } else if (key == "subnodes") {
      node.children = Names(in);
    } else if (key == "matched_node_link") {
      const std::vector<std::string> link = Names(in);
      if (!link.empty()) node.partner = link.back();
    } else if (key == "node_type") {
      node.type = vis::NodeTypeOf(Integer(in).value_or(0));
    } else if (key == "micro_step_id") {
      node.micro_step = Integer(in).value_or(0);
    } else if (key == "data" && in.Peek() == Kind::kObject) {
      ReadData(node, in);
    } else {
      in.SkipValue();
    }
  }

  static void ReadData(vis::NodeRow& node, Reader& in) {
    std::string_view key;
    if (!in.EnterObject()) return;
    while (in.NextMember(key)) {
      if (key == "precision_index") {
        node.index = Real(in);
      } else if (key == "overflow_level") {
        node.overflow_level = Text(in);
      } else {
        in.SkipValue();
      }
    }
  }

  void ReadColors(Reader& in) {
    auto colors = json::Value::Parse(Slice(Skip(in)));
    if (colors) {
      head_.scale = vis::LevelScale::Of(*colors);
    } else if (!in.failed()) {
      head_.notes.push_back("Colors is no JSON object; levels are not known");
    }
  }

  void ReadFacts(Reader& in) {
    if (in.Peek() != Kind::kObject) return (void)in.SkipValue();
    std::string_view key;
    if (!in.EnterObject()) return;
    while (in.NextMember(key)) {
      std::string name(key);
      head_.facts.emplace_back(std::move(name), Text(in));
    }
  }

  // The text of the next value, which is stepped over.
  [[nodiscard]] Span Skip(Reader& in) const {
    in.Peek();  // behind blanks
    const size_t begin = in.offset();
    in.SkipValue();
    return {begin, in.offset()};
  }

  // Each takes a value of any kind; nothing where it is of another one.
  static std::string Text(Reader& in) {
    std::string_view text;
    if (in.Peek() == Kind::kString) {
      in.ReadString(text);
    } else {
      in.SkipValue();
    }
    return std::string(text);
  }
  static std::optional<double> Real(Reader& in) {
    if (in.Peek() == Kind::kString) return ParseReal(Text(in));
    json::Number number;
    if (in.Peek() != Kind::kNumber || !in.ReadNumber(number)) {
      in.SkipValue();
      return std::nullopt;
    }
    if (const auto* real = std::get_if<double>(&number)) return *real;
    const auto* const integer = std::get_if<int64_t>(&number);
    return integer == nullptr ? std::nullopt : std::optional(static_cast<double>(*integer));
  }
  static std::optional<int64_t> Integer(Reader& in) {
    constexpr double kMost = 1e15;
    const std::optional<double> real = Real(in);
    if (!real || !(std::abs(*real) < kMost)) return std::nullopt;
    return static_cast<int64_t>(*real);
  }
  static std::vector<std::string> Names(Reader& in) {
    std::vector<std::string> names;
    if (in.Peek() != Kind::kArray) {
      in.SkipValue();
    } else if (in.EnterArray()) {
      while (in.NextElement()) names.emplace_back(vis::WithoutSide(Text(in)));
    }
    return names;
  }

  std::string text_;
  Graph sides_[2];  // the target, the golden one
  std::vector<TextSpans> spans_;
};

}  // namespace

Result<std::unique_ptr<vis::Source>> Open(const std::string& path) { return VisSource::Open(path); }

}  // namespace plumbline::vis_json
