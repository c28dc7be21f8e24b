#include "formats/json/vis_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file/file.h"
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

constexpr std::string_view kTransfers = ", \"matched_distributed\": ";

// Appends one line, a node if it begins with a name and an object, with its links replaced.
Status AppendLinked(std::string_view line, const Transfers& links, std::string& out) {
  // Within texts there are no such quotes.
  if (!line.starts_with('"') || line.find("\": {\"id\": ") == std::string_view::npos) {
    out += line;
    return {};
  }
  json::Reader in(line);
  std::string_view name;
  in.ReadString(name);
  const auto found = links.find(name);
  const size_t old = line.find(kTransfers);
  if (found == links.end() && old == std::string_view::npos) {
    out += line;
    return {};
  }
  const size_t begin = in.offset() + 2;  // behind the colon
  json::Reader node(line.substr(begin));
  if (in.failed() || !node.SkipValue()) {
    return Error(ErrorCode::kCorrupt, "not as plumb graph writes it. Make the file again.");
  }
  const size_t end = begin + node.offset() - 1;  // before the bracket
  out += line.substr(0, std::min(old, end));
  if (found != links.end()) (out += kTransfers) += found->second;
  out += line.substr(end);
  return {};
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

Status Writer::Finish(const vis::Summary& summary, const vis::Facts& facts) {
  std::string& out = file_.text();
  if (!summary.task.empty()) {
    AppendText("ToolTip", vis::ToolTipJson(summary.task), out);
    AppendRaw("Colors", vis::ColorsJson(summary.task), out);
  }
  AppendRaw("MicroSteps", std::to_string(summary.micro_steps), out);
  if (!summary.task.empty()) AppendText("task", summary.task, out);
  AppendRaw("OverflowCheck", summary.has_overflow_levels ? "true" : "false", out);
  std::string members;
  for (const auto& [key, text] : facts) {
    members += members.empty() ? "{" : ", ";
    json::AppendString(key, members);
    members += ": ";
    json::AppendString(text, members);
  }
  if (!members.empty()) AppendRaw("mp_meta", members + "}", out);
  out += '}';
  return file_.Close();
}

Status WriteLinks(const std::string& from, const std::string& to, const Transfers& of_target,
                  const Transfers& of_golden) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(from));
  std::string linked;
  linked.reserve(text.size());
  const Transfers* links = &of_target;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t size = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, size);
    rest.remove_prefix(size);
    if (line.starts_with("\"Bench\": {")) links = &of_golden;
    const Status appended = AppendLinked(line, *links, linked);
    if (!appended) return appended.error().In(from);
  }
  if (from == to && linked == text) return {};
  return WriteFileAtomically(to, linked, /*durable=*/false);
}

}  // namespace plumbline::vis_json
