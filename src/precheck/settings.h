// The section `run_ut` (newer: `acc_check`) of config.json: which APIs are checked again.

#ifndef PLUMBLINE_PRECHECK_SETTINGS_H_
#define PLUMBLINE_PRECHECK_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::precheck {

struct PrecheckSettings {
  // Bare names of APIs; see PlanOptions.
  std::vector<std::string> white_list, black_list;
  std::string error_data_path = "./";  // where tensors of calls that do not pass are saved
  std::optional<uint64_t> seed;        // of drawn inputs
  int precision = 14;                  // digits behind the point in csv files, 0 to 20
  // The check while a model trains: this machine takes its calls (precheck/online/).
  bool is_online = false;
  std::string nfs_path, host;  // a shared directory, or the address to listen at
  int port = -1;
  std::vector<int64_t> rank_list;  // empty: any
  std::string tls_path = "./";     // empty: plain TCP
  std::vector<std::string> warnings;   // sentences to log once: unknown keys, keys without effect
};

// Names a file of defaults for all runs, where it is set.
inline constexpr const char* kDefaultsVariable = "MSPROBE_ACC_CHECK_CONFIG";

// From the text of config.json; `path` is used in messages. Where both sections stand, `acc_check`
// wins; without either all is as in `defaults`. kInvalidArgument names field, value and what was
// expected: a wrong type, a name that is no API, an error_data_path that is no directory, a bad
// `task` or `level`. 
Result<PrecheckSettings> ParsePrecheckSettings(std::string_view text, const std::string& path,
                                               PrecheckSettings defaults = {});

// Where settings are read from; an empty path is none.
struct SettingsFiles {
  std::string config_json;  // with the path rules of configuration files (config/config.h)
  // A YAML mapping with the keys of the section, as upstream installs one; single keys of
  // config.json replace its.
  std::string defaults_yaml;
};
// Errors of ParsePrecheckSettings(), and kNotFound.
Result<PrecheckSettings> LoadPrecheckSettings(const SettingsFiles& files);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_SETTINGS_H_
