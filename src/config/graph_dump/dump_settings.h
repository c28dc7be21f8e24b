// The file that MINDSPORE_DUMP_CONFIG names: what MindSpore's own dump of static graphs is to
// write, and every rule that MindSpore has about it (docs/reference/dump-config.md).

#ifndef PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_SETTINGS_H_
#define PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::graph_dump {

// The iterations that a dump configuration selects: "all", or "0|5-8|100-120", counted from 0.

struct Iterations {
  bool all = false;
  // First and last of each item that can match, in the order of the text.
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  std::vector<std::string> warnings;  // about items that can never match, one sentence each

  [[nodiscard]] bool Contains(uint64_t iteration) const;
};

// kInvalidArgument for an empty text and for any character but digits, '-' and '|', with its
// position (from 0). Items that MindSpore takes and that never match are warnings.
Result<Iterations> ParseIterations(std::string_view text);

// The text that selects these numbers: "all" for none. Neighbours become ranges when
// `with_ranges`, else every number is an item, as upstream writes it. Requires: ascending, unique.
std::string IterationText(std::span<const int64_t> numbers, bool with_ranges);

// Where the training will run; what is supported depends on it.
enum class DeviceKind : uint8_t { kUnknown, kCpu, kGpu, kAscend };
std::optional<DeviceKind> DeviceKindNamed(std::string_view name);  // "cpu", "gpu", "ascend"

// Where statistics are computed, and in which precision there.
inline constexpr std::string_view kPlaces[] = {"host", "device"};
inline constexpr std::string_view kPrecisions[] = {"high", "low"};

// Section e2e_dump_settings: the host writes after every kernel.
struct SyncSettings {
  bool enable = true;
  bool trans_flag = true;  // data in the layout of the host
  bool save_kernel_args = false;
  std::optional<std::string> stat_calc_mode;              // "host", "device"
  std::optional<std::string> device_stat_precision_mode;  // "high", "low"
  int64_t sample_mode = 0;                                // 1: the first sample_num elements
  int64_t sample_num = 100;
};

struct DumpSettings {
  int64_t dump_mode = 0;  // 0 all kernels, 1 those in `kernels`, 2 what set_dump() marked
  std::string path;       // empty: below MS_DIAGNOSTIC_DATA_PATH
  std::string net_name = "Net";
  std::string iteration = "all";
  std::string saved_data = "tensor";  // "tensor", "statistic", "full"
  int64_t input_output = 0;           // 0 both, 1 inputs, 2 outputs
  std::vector<std::string> kernels;
  std::vector<int64_t> support_device;
  std::optional<std::vector<std::string>> statistic_category;
  std::optional<int64_t> op_debug_mode;    // 0 off, 1 to 3 overflow, 4 exceptions
  std::optional<std::string> file_format;  // "bin", "npy"; of dumps without `sync`
  std::optional<int64_t> overflow_number;  // 0: no limit
  std::optional<int64_t> initial_iteration;
  std::optional<SyncSettings> sync;
};

struct CheckedSettings {
  DumpSettings settings;
  Iterations iterations;
  // One line each, which names the entry. MindSpore refuses files with errors; warnings are about
  // entries without effect and about what differs between releases and devices.
  std::vector<std::string> errors, warnings;
};

// Checks the text of a configuration. Every broken rule is in the result; an error only when the
// text is no JSON object. A UTF-8 byte order mark is an error as for MindSpore.
Result<CheckedSettings> CheckDumpSettings(std::string_view text, DeviceKind device);

// The file's text: sections and keys in the order of MindSpore's own examples, four blanks per
// level. Optional keys that are not set are left out.
std::string DumpSettingsText(const DumpSettings& settings);

// Names that statistic_category may hold, in the order of the documents.
std::span<const std::string_view> StatisticItems();

}  // namespace plumbline::graph_dump

#endif  // PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_SETTINGS_H_
