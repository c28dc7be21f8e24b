#include "formats/json/vis_json.h"

#include <fmt/format.h>

#include <utility>

#include "base/text/json.h"

namespace plumbline::vis_json {
namespace {

void AppendText(std::string_view key, std::string_view text, std::string& out) {
  out += ", \"";
  out += key;
  out += "\": ";
  json::AppendString(text, out);
}

void AppendRaw(std::string_view key, std::string_view value, std::string& out) {
  out += ", \"";
  out += key;
  out += "\": ";
  out += value;
}

// What a comparison and the grades of overflows say.
void AppendData(const vis::Node& node, std::string& out) {
  out += ", \"data\": {";
  if (node.level) out += fmt::format("\"precision_index\": {}", vis::IndexOf(*node.level));
  if (!node.overflow_level.empty()) {
    out += fmt::format("{}\"overflow_level\": \"{}\"", node.level ? ", " : "", node.overflow_level);
  }
  out += '}';
}

}  // namespace

Result<Writer> Writer::Create(const std::string& path, bool is_pair) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  Writer writer(std::move(file), is_pair);
  writer.file_.text() += '{';
  return writer;
}

Status Writer::BeginGraph(const vis::GraphPlace& place,
                          const std::optional<std::string>& dump_data_dir,
                          const std::vector<std::string>& stacks) {
  std::string& out = file_.text();
  stacks_ = &stacks;
  is_first_ = true;
  if (is_pair_) out += fmt::format("{}\n\"{}\": {{", place.is_golden ? "," : "", place.source());
  out += "\"root\": \"DefaultModel\", \"dump_data_dir\": ";
  if (dump_data_dir) {
    json::AppendString(*dump_data_dir, out);
  } else {
    out += "null";
  }
  out += ", \"node\": {";
  return file_.Flush();
}

Status Writer::Add(const vis::Node& node) {
  std::string& out = file_.text();
  out += is_first_ ? "\n" : ",\n";
  is_first_ = false;
  json::AppendString(node.name, out);
  out += ": {\"id\": ";
  json::AppendString(node.name, out);
  AppendRaw("node_type", std::to_string(static_cast<int>(node.type)), out);
  AppendRaw("output_data", node.outputs, out);
  AppendRaw("input_data", node.inputs, out);
  AppendText("upnode", node.parent.empty() ? "None" : node.parent, out);
  AppendRaw("subnodes", vis::ListJson(node.children), out);
  AppendRaw("matched_node_link", vis::ListJson(node.link), out);
  AppendRaw("suggestions", "{}", out);
  AppendRaw("stack_info", (*stacks_)[node.stack], out);
  if (node.is_top) AppendRaw("micro_step_id", std::to_string(node.micro_step), out);
  AppendData(node, out);
  if (!node.merge.empty()) AppendRaw("parallel_merge_info", node.merge, out);
  if (!node.transfers.empty()) AppendRaw("matched_distributed", node.transfers, out);
  out += '}';
  return file_.Flush();
}

void Writer::EndGraph() { file_.text() += is_pair_ ? "}}" : "}"; }

Status Writer::Finish(const vis::Summary& summary) {
  std::string& out = file_.text();
  if (!summary.task.empty()) {
    AppendText("ToolTip", vis::ToolTipJson(summary.task), out);
    AppendRaw("Colors", vis::ColorsJson(summary.task), out);
  }
  AppendRaw("MicroSteps", std::to_string(summary.micro_steps), out);
  if (!summary.task.empty()) AppendText("task", summary.task, out);
  AppendRaw("OverflowCheck", summary.has_overflow_levels ? "true" : "false", out);
  out += '}';
  return file_.Close();
}

}  // namespace plumbline::vis_json
