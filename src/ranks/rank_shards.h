// Results of a part of the ranks: what one of several processes leaves for `plumb merge`, and what
// that makes of them.

#ifndef PLUMBLINE_RANKS_RANK_SHARDS_H_
#define PLUMBLINE_RANKS_RANK_SHARDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/shards.h"
#include "ranks/rank_summary.h"

namespace plumbline::ranks {

// What was asked for, as all processes were; opaque here.
struct RankShardRequest {
  std::vector<std::string> words;  // of the command line, without what changes no result
  std::string directory;           // where relative paths begin
  bool of_graphs = false;
};

struct ShardHeader {
  ShardPlace place;
  RankShardRequest request;
  std::string options;  // OptionsDigest()
  std::string stamp;    // CompareOptions::stamp of the ranks' files
};

// "<directory>/compare_ranks_3_of_64.shard".
std::string RankShardPath(const std::string& directory, const ShardPlace& place);

// The stamp that the processes of one comparison into `directory` share, agreed on by the first of
// them; header.stamp and header.place.index are not looked at. A process that runs a second time
// gets the same. kIo.
Result<std::string> SharedStamp(const std::string& directory, const ShardHeader& header);
// The next process begins another run.
void ForgetSharedStamp(const std::string& directory, const ShardHeader& header);

// Writes what is known of the ranks `part` of the report; readers see all of it or nothing.
// kIo; kUnsupported: a name in it is no UTF-8.
Status WriteRankShard(const std::string& path, const ShardHeader& header, const RanksReport& report,
                      std::span<const size_t> part);

struct ShardSet {
  ShardHeader header;  // of the first; the stamp is the newest
  RanksReport report;  // without an answer
  std::string path;    // of the first
};

// Reads the shards of one comparison in any order; of one that is there twice the newer counts.
// kNotFound: a file, or the shards that are missing,
// which are named; kInvalidArgument: shards of several comparisons, or recordings that have changed
// since; kCorrupt: no shard file, or a damaged one; kUnsupported: of another version; kIo.
Result<ShardSet> ReadShards(const std::vector<std::string>& files);

}  // namespace plumbline::ranks

#endif  // PLUMBLINE_RANKS_RANK_SHARDS_H_
