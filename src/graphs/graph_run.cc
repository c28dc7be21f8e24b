#include "graphs/graph_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/text/text_parts.h"
#include "config/graph_dump/dump_metadata.h"

namespace plumbline::graphs {
namespace {

using graph_dump::DumpEnvironment;

constexpr std::string_view kAscend = "Ascend";

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Releases up to 2.7.0 call the item "hash:md5" "md5".
bool HashIsNamedMd5(std::string_view version) {
  const std::vector<int64_t> last = {2, 7, 0};
  std::vector<int64_t> numbers;
  for (const std::string_view part : SplitAt(version, '.')) {
    const size_t digits = std::min(part.find_first_not_of("0123456789"), part.size());
    numbers.push_back(ParseNatural(part.substr(0, digits)).value_or(0));
  }
  numbers.resize(last.size());
  return numbers <= last;
}

// An expression for kernels that lie in the scope, wherever that is.
std::string EntryOf(std::string_view scope) {
  std::string text = "name-regex((.*/)?";
  for (const char c : scope) {
    if (std::string_view("\\^$.*+?()[]{}|").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text + ".*)";
}

}  // namespace

Result<GraphRun> GraphRun::Plan(const std::optional<std::string>& config_path,
                                const ConfigOverrides& overrides, const GraphPlace& place) {
  const auto mode = graph_dump::ExecutionModeNamed(place.mode);
  const auto device = graph_dump::DeviceKindNamed(LowerCase(place.device));
  if (!mode || !device) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("mode or device: is \"{}\", \"{}\" (expected graph_kbyk, graph_ge or "
                             "pynative; CPU, GPU or Ascend)",
                             place.mode, place.device));
  }
  const std::optional<int64_t> rank = ParseNatural(Environment("RANK_ID"));
  PL_TRY_ASSIGN(graph_dump::DumpPlan plan,
                graph_dump::PlanDump(config_path, overrides,
                                     {*mode, *device, rank, HashIsNamedMd5(place.version)}));
  return GraphRun(std::move(plan), place, rank);
}

GraphRun::GraphRun(graph_dump::DumpPlan plan, GraphPlace place, std::optional<int64_t> rank)
    : plan_(std::move(plan)), place_(std::move(place)), rank_(rank), pid_(::getpid()) {
  problems_ = plan_.warnings;
}

GraphRun::~GraphRun() {
  // The thread of a pass is not in a forked process, where it would be waited for without end.
  if (!is_own()) static_cast<void>(finisher_.release());
}

bool GraphRun::is_own() const { return ::getpid() == pid_; }

void GraphRun::SelectScopes(const std::vector<std::string>& scopes) {
  if (is_started_ || scopes.empty()) return;
  if (plan_.settings.op_debug_mode.value_or(0) != 0) {
    problems_.emplace_back("set_dump(): has no effect with this task: all kernels count");
    return;
  }
  plan_.settings.dump_mode = 1;
  for (const std::string& scope : scopes) plan_.settings.kernels.push_back(EntryOf(scope));
}

bool GraphRun::SetFirstIteration(int64_t number) {
  if (is_started_) return false;
  plan_.settings.initial_iteration = number;
  return true;
}

Result<std::string> GraphRun::WriteConfiguration() {
  PL_TRY_ASSIGN(std::string path, graph_dump::WriteDumpPlan(plan_));
  // Elsewhere MindSpore writes it, and every process that of rank 0.
  if (place_.device != kAscend && rank_.value_or(0) == 0) return path;
  std::string table = Environment("MINDSPORE_HCCL_CONFIG_PATH");
  if (table.empty()) table = Environment("RANK_TABLE_FILE");
  const Status status = graph_dump::WriteDumpMetadata(
      tree(), {DumpSettingsText(plan_.settings), place_.device, place_.version, table});
  if (!status) problems_.push_back(status.error().message());  // the dump is none the worse
  return path;
}

DumpEnvironment GraphRun::Start() {
  if (is_started_ || !plan_.is_on || !is_own()) return {};
  is_started_ = true;
  const Result<std::string> path = WriteConfiguration();
  if (!path) {
    problems_.push_back(path.error().message() + ". Graphs are not dumped");
    return {};
  }
  if (!plan_.finish_items.empty()) {
    FinishOptions options;
    options.items = plan_.finish_items;
    options.drops_tensors = !plan_.keeps_tensors;
    finisher_ = std::make_unique<BackgroundFinisher>(tree(), std::move(options));
  }
  return EnvironmentOf(plan_, *path);
}

void GraphRun::Step() {
  if (finisher_ && is_own()) finisher_->Begin();
}

void GraphRun::Close() {
  if (!finisher_ || !is_own()) return;
  Result<FinishReport> report = finisher_->Finish();
  finisher_.reset();
  if (!report) {
    problems_.push_back("statistics of graphs are not complete: " + report.error().message());
    return;
  }
  for (std::string& problem : report->problems) problems_.push_back(std::move(problem));
}

}  // namespace plumbline::graphs
