// The packs of `config_check`: one ZIP archive with the configuration of one training.

#ifndef PLUMBLINE_RUN_CONFIG_CONFIG_PACK_H_
#define PLUMBLINE_RUN_CONFIG_CONFIG_PACK_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::run_config {

// Of one tensor: max, min, mean, norm; nothing where the pack has none.
using PackStatistics = std::array<std::optional<double>, 4>;

// Places in one step of one rank.
struct StepRank {
  int64_t step = 0, rank = 0;
  friend auto operator<=>(const StepRank&, const StepRank&) = default;
};

// One place of the program that asked for random numbers.
struct RandomCall {
  int64_t count = 0;
  std::vector<std::string> stack;  // "File a.py, line 3, in f, code", outermost first
};

// The contents of a pack; an item that it does not hold is empty (`items` says which it holds).
struct ConfigPack {
  std::vector<std::string> items;  // "env", "pip", "dataset", ...
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> packages;  // versions by name
  // Values as texts by name, by file ("hyperparameters_static.json").
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> hyperparameters;
  std::map<StepRank, std::map<std::string, PackStatistics>> dataset;  // by dotted path
  std::map<StepRank, std::map<std::string, PackStatistics>> weights;
  // Checksums under the same names, of packs of plumbline: "float32[2, 3]:0116119e".
  std::map<StepRank, std::map<std::string, std::string>> dataset_digests, weight_digests;
  std::map<int64_t, std::map<std::string, std::vector<RandomCall>>> random;  // by rank, function

  [[nodiscard]] bool holds(std::string_view item) const;
};

// Nothing is unpacked to disk. kNotFound, kIo; kCorrupt (no archive, a damaged member, a member
// that is not what its name says: the message names it); kInvalidArgument when no member is of
// config_check.
Result<ConfigPack> ReadConfigPack(const std::string& path);

struct CollectOptions {
  std::vector<std::string> files;  // .sh and .yaml
  std::string python_prefix;       // whose packages count; empty: of `python3` on the path
  bool all_environment = false;    // not only what a comparison looks at
};

// Writes a pack of what can be seen from outside: environment, packages, launch arguments.
// kInvalidArgument when `path` does not end in .zip or a file is of another kind; kIo.
Status WriteConfigPack(const std::string& path, const CollectOptions& options);

// Environment variables that a comparison looks at, by the kind of the side.
struct EnvironmentRule {
  std::string_view npu_name, gpu_name;  // empty: the kind has none
  std::string_view default_value;
};
std::vector<EnvironmentRule> EnvironmentRules();

}  // namespace plumbline::run_config

#endif  // PLUMBLINE_RUN_CONFIG_CONFIG_PACK_H_
