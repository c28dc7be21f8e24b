// The rules of dump_settings.h that look at several entries, and the walk over all of them.

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text_parts.h"
#include "config/graph_dump/dump_keys.h"
#include "config/graph_dump/kernel_entries.h"
#include "config/options.h"

namespace plumbline::graph_dump {
namespace {

using settings::Json;

constexpr std::string_view kSavedDataKey = "common_dump_settings.saved_data";
constexpr std::string_view kDumpMode = "common_dump_settings.dump_mode";
constexpr std::string_view kDebugMode = "common_dump_settings.op_debug_mode";

// Items that a device computes; the others need the host.
bool IsDeviceItem(std::string_view item) {
  return item == "max" || item == "min" || item == "avg" || item == "l2norm";
}

class Rules {
 public:
  Rules(CheckedSettings& out, DeviceKind device) : out_(out), device_(device) {}

  void ReadSection(std::string_view section, const Json& object, std::span<const DumpKey> keys) {
    std::vector<std::string_view> known;
    for (const DumpKey& key : keys) {
      known.push_back(key.name);
      const std::string field = fmt::format("{}.{}", section, key.name);
      const Json* const value = object.Find(key.name);
      if (value == nullptr) {
        CheckMissing(field, key.need);
      } else if (const Status status = key.apply(field, *value, out_.settings); !status) {
        out_.errors.push_back(status.error().message());
      }
    }
    for (const std::string_view name : object.Keys()) {
      if (std::ranges::count(known, name) > 0) continue;
      out_.warnings.push_back(settings::UnknownKeyWarning(section, name, known));
    }
  }

  void CheckTogether() {
    CheckPath();
    CheckKernels();
    CheckDebugMode();
    CheckStatistics();
    CheckSync();
    CheckDevice();
  }

 private:
  [[nodiscard]] bool is_host_only() const {
    return device_ == DeviceKind::kCpu || device_ == DeviceKind::kGpu;
  }
  // The host writes: by the section, or because the device has no other way.
  [[nodiscard]] bool is_sync() const { return set().sync.has_value() || is_host_only(); }
  [[nodiscard]] const DumpSettings& set() const { return out_.settings; }
  [[nodiscard]] int64_t debug_mode() const { return set().op_debug_mode.value_or(0); }
  [[nodiscard]] bool wants_statistics() const { return set().saved_data != "tensor"; }

  void Fail(std::string_view field, std::string_view problem) {
    out_.errors.push_back(fmt::format("{}: {}", field, problem));
  }
  void Warn(std::string_view field, std::string_view problem) {
    out_.warnings.push_back(fmt::format("{}: {}", field, problem));
  }

  void CheckMissing(const std::string& field, Need need) {
    if (need == Need::kRequired) {
      Fail(field, "is missing (expected in every dump configuration)");
    } else if (need == Need::kOfAsync && !set().sync) {
      Fail(field, "is missing (expected where there is no section e2e_dump_settings)");
    } else if (need == Need::kOfOlder) {
      Warn(field, "is missing, and MindSpore before 2.5 refuses that (expected true)");
    }
  }

  void CheckPath() {
    if (!set().path.empty()) return;
    Warn("common_dump_settings.path",
         "is missing: the environment must set MS_DIAGNOSTIC_DATA_PATH, below which debug_dump is "
         "written");
  }

  void CheckKernels() {
    const Result<KernelEntries> entries = KernelEntries::Parse(set().kernels);
    constexpr std::string_view kSection = "common_dump_settings";
    if (set().dump_mode != 1) {
      if (!set().kernels.empty()) {
        Warn(
            "common_dump_settings.kernels",
            fmt::format("has no effect with dump_mode {} (expected dump_mode 1)", set().dump_mode));
      }
      return;
    }
    if (!entries) {
      out_.errors.push_back(entries.error().In(kSection).message());
      return;
    }
    for (const std::string& warning : entries->warnings()) Warn(kSection, warning);
    if (entries->entries().empty()) {
      Warn("common_dump_settings.kernels", "is empty, which selects every kernel");
    }
    for (const KernelEntries::Entry& entry : entries->entries()) {
      if (entry.kind == EntryKind::kType && !is_sync()) {
        Warn(kSection, fmt::format("kernels[{}]: \"{}\" is a type, which dumps without section "
                                   "e2e_dump_settings do not know (expected a full name or "
                                   "name-regex(...))",
                                   entry.index, entry.text));
      }
      if (entry.text.find(' ') != std::string::npos) {
        Warn(kSection, fmt::format("kernels[{}]: \"{}\" holds a blank, which MindSpore takes out",
                                   entry.index, entry.text));
      }
    }
  }

  void CheckDebugMode() {
    if (set().overflow_number && debug_mode() != 3) {
      Fail("common_dump_settings.overflow_number",
           fmt::format("is set with op_debug_mode {} (expected with op_debug_mode 3 alone)",
                       debug_mode()));
    }
    if (debug_mode() == 0) return;
    if (set().dump_mode != 0) {
      Warn(kDumpMode, fmt::format("is taken as 0, because op_debug_mode is {}", debug_mode()));
    }
    if (debug_mode() == 1 || debug_mode() == 2) {
      Warn(kDebugMode,
           fmt::format("is {}: newer releases take it as 3, all overflow checks", debug_mode()));
    }
    if (is_host_only()) {
      Warn(kDebugMode, fmt::format("is {}, which only Ascend knows: on CPU and GPU overflow modes "
                                   "write every kernel, and 4 writes nothing of use",
                                   debug_mode()));
    } else if (debug_mode() == 4 && set().sync) {
      Warn(kDebugMode,
           "is 4: iteration is taken as all, saved_data as tensor, and only inputs of the kernel "
           "that fails are written");
    } else if (set().input_output != 0) {
      Warn("common_dump_settings.input_output", "is taken as 0, because op_debug_mode is not 0");
    }
  }

  void CheckStatistics() {
    if (set().statistic_category && !wants_statistics()) {
      Warn("common_dump_settings.statistic_category",
           "has no effect with saved_data \"tensor\" (expected \"statistic\" or \"full\")");
    }
    if (wants_statistics() && device_ == DeviceKind::kCpu) {
      Fail(kSavedDataKey,
           fmt::format("is \"{}\", which MindSpore refuses on CPU (expected \"tensor\"). plumb "
                       "dump-config finish makes statistic.csv from the tensors",
                       set().saved_data));
    }
    if (wants_statistics() && !is_sync() && set().file_format.value_or("bin") != "npy") {
      Fail(kSavedDataKey, fmt::format("is \"{}\" with file_format \"bin\" (expected file_format "
                                      "\"npy\" with it)",
                                      set().saved_data));
    }
    const bool on_device = set().sync && set().sync->stat_calc_mode == "device";
    if (!on_device || !set().statistic_category) return;
    for (const std::string& item : *set().statistic_category) {
      if (IsDeviceItem(item)) continue;
      Warn("common_dump_settings.statistic_category",
           fmt::format("\"{}\" is left out, because stat_calc_mode is \"device\" (expected max, "
                       "min, avg or l2norm)",
                       item));
    }
  }

  void CheckSync() {
    if (!set().sync) return;
    const SyncSettings& sync = *set().sync;
    if (sync.stat_calc_mode == "device" && (set().saved_data != "statistic" || is_host_only())) {
      Warn("e2e_dump_settings.stat_calc_mode",
           "is taken as \"host\" (expected \"device\" with saved_data \"statistic\" on Ascend)");
    }
    if (sync.sample_mode == 1 && device_ != DeviceKind::kAscend) {
      Warn("e2e_dump_settings.sample_mode",
           "is 1, which only Ascend at jit level O0 knows: other devices write whole tensors");
    }
    if (set().file_format) {
      Warn("common_dump_settings.file_format", "has no effect with section e2e_dump_settings");
    }
    if (sync.save_kernel_args && !sync.enable) {
      Warn("e2e_dump_settings.save_kernel_args", "has no effect where enable is false");
    }
  }

  void CheckDevice() {
    if (set().dump_mode == 2 && is_host_only()) {
      Fail(kDumpMode, "is 2, for set_dump(), which only Ascend knows (expected 0 or 1)");
    } else if (set().dump_mode == 2 && !set().sync) {
      Warn(kDumpMode, "is 2, which needs section e2e_dump_settings at jit level O0 or O1");
    }
    if (set().support_device.empty() && device_ != DeviceKind::kCpu) {
      Warn("common_dump_settings.support_device", "is empty: no device dumps anything");
    }
  }

  CheckedSettings& out_;
  const DeviceKind device_;
};

// The object under a section's name; reports one of another type.
const Json* SectionOf(const Json& json, std::string_view name, CheckedSettings& out) {
  const Json* const section = json.Find(name);
  if (section == nullptr || section->is_object()) return section;
  out.errors.push_back(settings::Invalid(name, *section, "an object { ... }").message());
  return nullptr;
}

}  // namespace

std::optional<DeviceKind> DeviceKindNamed(std::string_view name) {
  if (name == "cpu") return DeviceKind::kCpu;
  if (name == "gpu") return DeviceKind::kGpu;
  if (name == "ascend") return DeviceKind::kAscend;
  return std::nullopt;
}

Result<CheckedSettings> CheckDumpSettings(std::string_view text, DeviceKind device) {
  if (text.starts_with(kByteOrderMark)) {
    return Error(ErrorCode::kInvalidArgument,
                 "begins with a byte order mark (expected plain UTF-8 JSON). Save it without");
  }
  PL_TRY_ASSIGN(const Json json, settings::ParseJson(text));
  if (!json.is_object()) return settings::Invalid("top level", json, "an object { ... }");
  CheckedSettings out;
  Rules rules(out, device);
  constexpr std::string_view kSections[] = {kCommonSection, kSyncSection};
  for (const std::string_view name : json.Keys()) {
    if (std::ranges::count(kSections, name) > 0) continue;
    out.warnings.push_back(settings::UnknownKeyWarning("", name, kSections));
  }
  const Json* common = SectionOf(json, kCommonSection, out);
  const Json* sync = SectionOf(json, kSyncSection, out);
  if (json.Find(kSyncSection) != nullptr) out.settings.sync.emplace();
  if (common != nullptr) {
    rules.ReadSection(kCommonSection, *common, CommonKeys());
  } else if (json.Find(kCommonSection) == nullptr) {
    out.errors.push_back(fmt::format("{}: is missing (expected an object)", kCommonSection));
  }
  if (sync != nullptr) rules.ReadSection(kSyncSection, *sync, SyncKeys());
  if (!out.errors.empty()) return out;
  rules.CheckTogether();
  PL_TRY_ASSIGN(out.iterations, ParseIterations(out.settings.iteration));
  if (!out.iterations.all && out.iterations.ranges.empty()) {
    out.errors.push_back(
        fmt::format("{}.iteration: \"{}\" selects no iteration: nothing would be "
                    "dumped (expected \"all\", or numbers such as \"0|5-8\")",
                    kCommonSection, out.settings.iteration));
  }
  for (const std::string& warning : out.iterations.warnings) {
    out.warnings.push_back(fmt::format("{}.iteration: {}", kCommonSection, warning));
  }
  return out;
}

}  // namespace plumbline::graph_dump
