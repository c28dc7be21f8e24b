// A dump configuration as text: the writing half of dump_settings.h.

#include <nlohmann/json.hpp>

#include "config/graph_dump/dump_keys.h"

namespace plumbline::graph_dump {
namespace {

using Ordered = nlohmann::ordered_json;

template <class T>
void Put(Ordered& out, const char* key, const std::optional<T>& value) {
  if (value) out[key] = *value;
}

Ordered CommonOf(const DumpSettings& settings) {
  Ordered out = {{"dump_mode", settings.dump_mode}};
  if (!settings.path.empty()) out["path"] = settings.path;
  out["net_name"] = settings.net_name;
  out["iteration"] = settings.iteration;
  out["saved_data"] = settings.saved_data;
  out["input_output"] = settings.input_output;
  out["kernels"] = settings.kernels;
  out["support_device"] = settings.support_device;
  Put(out, "statistic_category", settings.statistic_category);
  Put(out, "op_debug_mode", settings.op_debug_mode);
  Put(out, "file_format", settings.file_format);
  Put(out, "overflow_number", settings.overflow_number);
  Put(out, "initial_iteration", settings.initial_iteration);
  return out;
}

Ordered SyncOf(const SyncSettings& sync) {
  Ordered out = {{"enable", sync.enable}, {"trans_flag", sync.trans_flag}};
  if (sync.save_kernel_args) out["save_kernel_args"] = true;
  Put(out, "stat_calc_mode", sync.stat_calc_mode);
  Put(out, "device_stat_precision_mode", sync.device_stat_precision_mode);
  if (sync.sample_mode != 0) {
    out["sample_mode"] = sync.sample_mode;
    out["sample_num"] = sync.sample_num;
  }
  return out;
}

}  // namespace

std::string DumpSettingsText(const DumpSettings& settings) {
  Ordered out;
  out[std::string(kCommonSection)] = CommonOf(settings);
  if (settings.sync) out[std::string(kSyncSection)] = SyncOf(*settings.sync);
  constexpr int kIndent = 4;
  return out.dump(kIndent, ' ', /*ensure_ascii=*/true, Ordered::error_handler_t::replace) + "\n";
}

}  // namespace plumbline::graph_dump
