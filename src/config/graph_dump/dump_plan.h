// What config.json asks of static graphs (level L2), as the dump configuration that MindSpore needs
// and what is to be done around it.

#ifndef PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_PLAN_H_
#define PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
#include "config/graph_dump/dump_settings.h"

namespace plumbline::graph_dump {

enum class ExecutionMode : uint8_t {
  kKernelByKernel,  // GRAPH_MODE at jit level O0 or O1
  kGraphEngine,     // GRAPH_MODE at jit level O2
  kPyNative,        // only parts compiled by jit are graphs
};
// "graph_kbyk", "graph_ge", "pynative", as upstream names them.
std::optional<ExecutionMode> ExecutionModeNamed(std::string_view name);

struct PlanContext {
  ExecutionMode mode = ExecutionMode::kKernelByKernel;
  DeviceKind device = DeviceKind::kUnknown;
  // Of this process. Unknown: `rank` of config.json filters devices.
  std::optional<int64_t> rank = std::nullopt;
  bool hash_is_named_md5 = false;  // MindSpore up to 2.7.0 calls the item "hash:md5" "md5"
};

struct DumpPlan {
  bool is_on = true;      // false: this rank is filtered out, or the last warning says why
  std::string file_name;  // in dump_path: "kernel_kbyk_dump.json"
  std::string dump_path;  // absolute
  DumpSettings settings;
  // The file is also for the interface of the device itself (MS_ACL_DUMP_CFG_PATH).
  bool sets_acl = false;
  // Statistics that plumbline computes from the tensors, because the device's dump has none; empty:
  // none. The items are those of statistic_category.
  std::vector<std::string> finish_items;
  bool keeps_tensors = true;  // when it does
  std::vector<std::string> warnings;
};

// Whether level L2 is asked for and `list` names an API ("Mint.exp.0.forward"): the device is to dump
// the kernels below it, where it can. False for a file that cannot be read.
bool AsksForApi(const std::optional<std::string>& config_path, const ConfigOverrides& overrides);

// What the environment of the training must hold before MindSpore starts, and must not hold.
struct DumpEnvironment {
  std::vector<std::pair<std::string, std::string>> set;
  std::vector<std::string> unset;
};
DumpEnvironment EnvironmentOf(const DumpPlan& plan, const std::string& config_file);

// Writes the configuration of a plan into its dump_path, which is made if missing. Returns the path
// of the file.
Result<std::string> WriteDumpPlan(const DumpPlan& plan);

// Where MindSpore writes what one rank dumps; an unknown rank counts as 0.
std::string TreeOfRank(const DumpPlan& plan, std::optional<int64_t> rank);

// From config.json (nullopt: the defaults), with the constructor's arguments over it.
// kInvalidArgument names field, value and what was expected; kUnsupported for what needs an Ascend
// device. The settings of a plan pass CheckDumpSettings() for its device, or that is the error.
Result<DumpPlan> PlanDump(const std::optional<std::string>& config_path,
                          const ConfigOverrides& overrides, const PlanContext& context);

}  // namespace plumbline::graph_dump

#endif  // PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_PLAN_H_
