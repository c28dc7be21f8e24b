#include "config/graph_dump/dump_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/file/file.h"
#include "config/graph_dump/dump_request.h"

namespace plumbline::graph_dump {
namespace {

constexpr std::pair<std::string_view, ExecutionMode> kModes[] = {
    {"graph_kbyk", ExecutionMode::kKernelByKernel},
    {"graph_ge", ExecutionMode::kGraphEngine},
    {"pynative", ExecutionMode::kPyNative},
};

std::string_view NameOf(ExecutionMode mode) {
  return std::ranges::find(kModes, mode, &std::pair<std::string_view, ExecutionMode>::second)
      ->first;
}

Status CheckTask(const DumpRequest& request, const PlanContext& context) {
  const auto refuse = [&](std::string_view field, std::string_view value,
                          std::string_view expected) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: is \"{}\" in mode {} (expected {})", field, value,
                             NameOf(context.mode), expected));
  };
  if (request.level != "L2") return refuse("level", request.level, "L2, the kernels of graphs");
  const bool is_engine = context.mode == ExecutionMode::kGraphEngine;
  if (request.task == "overflow_check" && !is_engine) {
    return refuse("task", request.task, "statistics, tensor or exception_dump");
  }
  if (request.task == "exception_dump" && is_engine) {
    return refuse("task", request.task, "statistics, tensor or overflow_check");
  }
  const char* by_kernel = is_engine ? std::getenv("GRAPH_OP_RUN") : nullptr;
  if (by_kernel != nullptr && std::string_view(by_kernel) == "1") {
    return Error(ErrorCode::kInvalidArgument,
                 "GRAPH_OP_RUN: is 1 at jit level O2 (expected it unset: the graph must run as a "
                 "whole)");
  }
  return {};
}

// Whether the entries name an API, whose kernels the device itself dumps while it runs.
bool NamesAnApi(const std::vector<std::string>& list) {
  const auto is_regex = [](const std::string& name) { return name.starts_with("name-regex"); };
  const auto has_dot = [](const std::string& name) { return name.find('.') != std::string::npos; };
  return std::ranges::any_of(list, has_dot) && std::ranges::none_of(list, is_regex);
}

// The kernels below one API, which no graph has: what upstream demands, and a warning, because none
// of the devices here can.
Status PlanApi(const DumpRequest& request, DumpPlan& plan) {
  const auto refuse = [](const std::string& field, const std::string& value, std::string_view why) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: is {}. When level is set to L2, {}", field, value, why));
  };
  if (request.task != "tensor") {
    return refuse("task", fmt::format("\"{}\" and its list names an API", request.task),
                  "the task must be set to tensor");
  }
  if (!request.scope.empty()) {
    return refuse("tensor.scope", "not empty", "the scope cannot be configured");
  }
  if (request.list.size() != 1) {
    return refuse("tensor.list", fmt::format("of {} entries", request.list.size()),
                  "the list must be configured as a list with one api name");
  }
  plan.is_on = false;
  plan.warnings.push_back(
      fmt::format("kernel dump cannot be used: \"{}\" in tensor.list names an API, whose kernels "
                  "only CANN's own dump has, through upstream's library msprobe.lib._msprobe_c, "
                  "which is not installed. Name kernels of graphs, or use level L1",
                  request.list.front()));
  return {};
}

std::vector<std::string> CategoriesOf(const DumpRequest& request, const PlanContext& context) {
  std::vector<std::string> items;
  for (const std::string& mode : request.summary) {
    if (mode == "statistics") {
      items.insert(items.end(), {"max", "min", "avg", "l2norm"});
    } else if (mode == "md5") {
      items.emplace_back(context.hash_is_named_md5 ? "md5" : "hash:md5");
    } else {
      items.push_back(mode == "mean" ? "avg" : mode);
    }
  }
  return items;
}

// What every configuration has.
DumpSettings BaseOf(const DumpRequest& request, const PlanContext& context) {
  DumpSettings settings;
  settings.path = request.dump_path;
  settings.input_output = request.data_mode == "input" ? 1 : request.data_mode == "output" ? 2 : 0;
  settings.dump_mode = request.list.empty() ? 0 : 1;
  settings.iteration = IterationText(request.steps, /*with_ranges=*/false);
  settings.kernels = request.list;
  // With a known rank plumbline filters by it: numbers of ranks are none of devices.
  settings.support_device = {0, 1, 2, 3, 4, 5, 6, 7};
  if (!context.rank && !request.ranks.empty()) settings.support_device = request.ranks;
  return settings;
}

SyncSettings SyncOf(const DumpRequest& request) {
  SyncSettings sync;
  sync.enable = !request.async_dump;
  if (request.device && request.precision) {
    sync.stat_calc_mode = request.device;
    sync.device_stat_precision_mode = request.precision;
  }
  return sync;
}

void PlanByKernel(const DumpRequest& request, const PlanContext& context, DumpPlan& plan) {
  plan.file_name = "kernel_kbyk_dump.json";
  plan.settings.sync = SyncOf(request);
  const bool is_tensor = request.task == "tensor";
  const bool wants_statistics = !is_tensor || request.saved_data == "full";
  if (context.device == DeviceKind::kCpu) {
    if (wants_statistics) plan.finish_items = CategoriesOf(request, context);
    plan.keeps_tensors = is_tensor;
    plan.settings.sync->stat_calc_mode.reset();
    plan.settings.sync->device_stat_precision_mode.reset();
    return;
  }
  if (!wants_statistics) return;
  plan.settings.saved_data = is_tensor ? "full" : "statistic";
  plan.settings.statistic_category = CategoriesOf(request, context);
}

void PlanByGraph(const DumpRequest& request, DumpPlan& plan) {
  plan.file_name = "kernel_graph_dump.json";
  const bool is_tensor = request.task == "tensor";
  plan.settings.saved_data = !is_tensor                     ? "statistic"
                             : request.saved_data == "full" ? "full"
                                                            : "tensor";
  plan.settings.op_debug_mode = 0;
  plan.settings.file_format = is_tensor ? request.file_format : "npy";
  plan.sets_acl = plan.settings.dump_mode == 0;
}

// Searches look at all kernels of all iterations.
void PlanSearch(const DumpRequest& request, DumpPlan& plan) {
  DumpSettings& settings = plan.settings;
  if (!request.steps.empty()) {
    plan.warnings.push_back(
        fmt::format("step: has no effect with task {}: all iterations count", request.task));
  }
  if (!request.list.empty()) {
    plan.warnings.push_back(fmt::format("{}.list: has no effect: all kernels count", request.task));
  }
  settings.dump_mode = 0;
  settings.iteration = "all";
  settings.kernels.clear();
  settings.input_output = 0;
  settings.file_format = "npy";
}

void PlanOverflow(const DumpRequest& request, DumpPlan& plan) {
  plan.file_name = "kernel_graph_overflow_check.json";
  PlanSearch(request, plan);
  plan.settings.saved_data = "full";
  plan.settings.op_debug_mode = request.check_mode == "aicore"   ? 1
                                : request.check_mode == "atomic" ? 2
                                                                 : 3;
  if (request.hit_limit && plan.settings.op_debug_mode == 3) {
    plan.settings.overflow_number = request.hit_limit;
  }
}

void PlanException(const DumpRequest& request, DumpPlan& plan) {
  plan.file_name = "kernel_graph_exception_check.json";
  PlanSearch(request, plan);
  plan.settings.op_debug_mode = 4;
  plan.settings.sync = SyncOf(request);
}

Status CheckPlan(const PlanContext& context, DumpPlan& plan) {
  PL_TRY_ASSIGN(CheckedSettings checked,
                CheckDumpSettings(DumpSettingsText(plan.settings), context.device));
  if (!checked.errors.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: {}", plan.file_name, checked.errors.front()));
  }
  for (const std::string& warning : checked.warnings) {
    plan.warnings.push_back(fmt::format("{}: {}", plan.file_name, warning));
  }
  return {};
}

}  // namespace

std::optional<ExecutionMode> ExecutionModeNamed(std::string_view name) {
  for (const auto& [known, mode] : kModes) {
    if (known == name) return mode;
  }
  return std::nullopt;
}

DumpEnvironment EnvironmentOf(const DumpPlan& plan, const std::string& config_file) {
  constexpr const char* kAcl = "MS_ACL_DUMP_CFG_PATH";
  DumpEnvironment out{{{"MINDSPORE_DUMP_CONFIG", config_file}}, {}};
  if (plan.sets_acl) {
    out.set.emplace_back(kAcl, config_file);
  } else {
    out.unset.emplace_back(kAcl);
  }
  return out;
}

Result<std::string> WriteDumpPlan(const DumpPlan& plan) {
  PL_TRY(MakeDirectories(plan.dump_path));
  std::string path = JoinPath(plan.dump_path, plan.file_name);
  PL_TRY(WriteFileAtomically(path, DumpSettingsText(plan.settings), /*durable=*/false));
  return path;
}

std::string TreeOfRank(const DumpPlan& plan, std::optional<int64_t> rank) {
  return JoinPath(plan.dump_path, fmt::format("rank_{}", rank.value_or(0)));
}

Result<DumpPlan> PlanDump(const std::optional<std::string>& config_path,
                          const ConfigOverrides& overrides, const PlanContext& context) {
  PL_TRY_ASSIGN(const DumpRequest request, ReadDumpRequest(config_path, overrides));
  PL_TRY(CheckTask(request, context));
  DumpPlan plan;
  plan.dump_path = request.dump_path;
  plan.warnings = request.warnings;
  if (context.mode == ExecutionMode::kPyNative && NamesAnApi(request.list)) {
    PL_TRY(PlanApi(request, plan));
    return plan;
  }
  if (!request.scope.empty()) {
    plan.warnings.push_back(
        fmt::format("{}.scope: has no effect on graphs; list selects their kernels", request.task));
  }
  plan.settings = BaseOf(request, context);
  const bool is_own = !context.rank || request.ranks.empty() ||
                      std::ranges::count(request.ranks, *context.rank) > 0;
  plan.is_on = is_own;
  if (request.task == "overflow_check") {
    PlanOverflow(request, plan);
  } else if (request.task == "exception_dump") {
    PlanException(request, plan);
  } else if (context.mode == ExecutionMode::kGraphEngine) {
    PlanByGraph(request, plan);
  } else {
    PlanByKernel(request, context, plan);
  }
  PL_TRY(CheckPlan(context, plan));
  const std::string earlier = JoinPath(TreeOfRank(plan, context.rank), plan.settings.net_name);
  if (KindOf(earlier) == PathKind::kDirectory) {
    plan.warnings.push_back(fmt::format(
        "{}: is there already: iterations of that run and of this one will mix. Name another "
        "dump_path",
        earlier));
  }
  return plan;
}

bool AsksForApi(const std::optional<std::string>& config_path, const ConfigOverrides& overrides) {
  const Result<DumpRequest> request = ReadDumpRequest(config_path, overrides);
  return request && request->level == "L2" && NamesAnApi(request->list);
}

}  // namespace plumbline::graph_dump
