// .dump_metadata of a rank: what readers of a dump ask about it, and MindSpore leaves out on
// Ascend.

#ifndef PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_METADATA_H_
#define PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_METADATA_H_

#include <string>

#include "plumbline/result.h"

namespace plumbline::graph_dump {

struct DumpMetadata {
  std::string settings;    // text of the dump configuration
  std::string device;      // "CPU", "GPU", "Ascend"
  std::string version;     // of MindSpore: "2.10.0"
  std::string rank_table;  // its path; empty: there is none
};

// Writes data_dump.json, config.json and, of a rank table, hccl.json into .dump_metadata below
// `tree`, the directory of a rank. Files that are there stay.
Status WriteDumpMetadata(const std::string& tree, const DumpMetadata& metadata);

}  // namespace plumbline::graph_dump

#endif  // PLUMBLINE_CONFIG_GRAPH_DUMP_DUMP_METADATA_H_
