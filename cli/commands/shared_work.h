// Commands whose work several processes may share: --shard, --engine ray, and the command again for
// `plumb merge`.

#ifndef PLUMBLINE_CLI_COMMANDS_SHARED_WORK_H_
#define PLUMBLINE_CLI_COMMANDS_SHARED_WORK_H_

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/shards.h"
#include "plumbline/result.h"

namespace plumbline::cli {

struct ShareArguments {
  std::string shard;            // "3/64"; empty: all
  std::string engine, address;  // "ray" and the address of its cluster; empty: this process

  [[nodiscard]] bool is_shared() const { return !shard.empty() || !engine.empty(); }
  // The one of the two that was given.
  [[nodiscard]] std::string_view option() const { return engine.empty() ? "--shard" : "--engine"; }
};

// Options that are no matter of the result, for WordsOf().
inline constexpr std::string_view kNotOfResult[] = {"shard", "threads", "engine", "address"};

// `when`: "several ranks", which they are about. `tasks`: "compare them as tasks of Ray".
void AddShareOptions(CLI::App& command, ShareArguments& share, const std::string& when,
                     const std::string& tasks);
// kInvalidArgument: --address without --engine, or both of the others.
Status CheckShare(const ShareArguments& share);

struct SharedWork {
  std::string command;                    // "overflow"
  std::vector<std::string> words;         // of the command line, but kNotOfResult
  std::string stem;                       // of the shards (ShardPath())
  int threads = 0;                        // of a cluster on this machine; 0: one per core
  std::vector<std::string> options = {};  // more of plumbline.cluster
};

// With ShareArguments::engine: the work on a cluster, by plumbline.cluster, which takes the place
// of this process. Returns only what is wrong.
Error RunOnCluster(const SharedWork& work, const ShareArguments& share);

// With ShareArguments::shard: leaves the part as a shard, and says so; `what`: "ranks". kIo,
// kUnsupported.
Status LeaveShard(const SharedWork& work, const ShareArguments& share, ShardPart part,
                  std::string_view what);

// Parses the words of a command again. kInvalidArgument: they are of another directory; kCorrupt:
// no such command. `path`: of the shard.
Status ParseShardWords(CLI::App& command, const std::vector<std::string>& words,
                       const std::string& directory, const std::string& path);

// `plumb merge` of the shards of each command: its exit status.
Result<int> MergeOverflowShards(const ShardRequest& request, const std::vector<std::string>& files);
Result<int> MergeWatchShards(const ShardRequest& request, const std::vector<std::string>& files);
Result<int> MergePrecheckShards(const ShardRequest& request, const std::vector<std::string>& files);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_SHARED_WORK_H_
