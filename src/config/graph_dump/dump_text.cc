// A dump configuration as text: the writing half of dump_settings.h.

#include "base/text/json.h"
#include "config/graph_dump/dump_keys.h"

namespace plumbline::graph_dump {
namespace {

using json::Value;

template <class T>
void Put(Value& out, const char* key, const std::optional<T>& value) {
  if (value) out.Put(key, Value(*value));
}

Value CommonOf(const DumpSettings& settings) {
  Value out = Value::Object();
  out.Put("dump_mode", Value(settings.dump_mode));
  if (!settings.path.empty()) out.Put("path", Value(settings.path));
  out.Put("net_name", Value(settings.net_name));
  out.Put("iteration", Value(settings.iteration));
  out.Put("saved_data", Value(settings.saved_data));
  out.Put("input_output", Value(settings.input_output));
  out.Put("kernels", Value(settings.kernels));
  out.Put("support_device", Value(settings.support_device));
  Put(out, "statistic_category", settings.statistic_category);
  Put(out, "op_debug_mode", settings.op_debug_mode);
  Put(out, "file_format", settings.file_format);
  Put(out, "overflow_number", settings.overflow_number);
  Put(out, "initial_iteration", settings.initial_iteration);
  return out;
}

Value SyncOf(const SyncSettings& sync) {
  Value out = Value::Object();
  out.Put("enable", Value(sync.enable));
  out.Put("trans_flag", Value(sync.trans_flag));
  if (sync.save_kernel_args) out.Put("save_kernel_args", Value(true));
  Put(out, "stat_calc_mode", sync.stat_calc_mode);
  Put(out, "device_stat_precision_mode", sync.device_stat_precision_mode);
  if (sync.sample_mode != 0) {
    out.Put("sample_mode", Value(sync.sample_mode));
    out.Put("sample_num", Value(sync.sample_num));
  }
  return out;
}

}  // namespace

std::string DumpSettingsText(const DumpSettings& settings) {
  Value out = Value::Object();
  out.Put(kCommonSection, CommonOf(settings));
  if (settings.sync) out.Put(kSyncSection, SyncOf(*settings.sync));
  constexpr int kIndent = 4;
  return out.Text(kIndent) + "\n";
}

}  // namespace plumbline::graph_dump
