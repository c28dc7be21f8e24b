// Every key of a dump configuration: whether it must be there, and how it is read.

#ifndef PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_KEYS_H_
#define PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_KEYS_H_

#include <span>
#include <string_view>

#include "config/graph_dump/dump_settings.h"
#include "config/options.h"

namespace plumbline::graph_dump {

inline constexpr std::string_view kCommonSection = "common_dump_settings";
inline constexpr std::string_view kSyncSection = "e2e_dump_settings";

enum class Need : uint8_t {
  kRequired,
  kOptional,
  kOfAsync,  // required without section e2e_dump_settings
  kOfOlder,  // required by MindSpore before 2.5
};

struct DumpKey {
  std::string_view name;
  Need need;
  // Checks type and range of a value and stores it. `field` is the key with its section.
  Status (*apply)(std::string_view field, const settings::Json& value, DumpSettings& settings);
};

// In the order in which they are checked and written.
std::span<const DumpKey> CommonKeys();
std::span<const DumpKey> SyncKeys();

}  // namespace plumbline::graph_dump

#endif  // PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_KEYS_H_
