// A work that several processes share: which part each has, and the file that it leaves for `plumb
// merge`, which puts all parts together.
//
// The file: a line with a header, a line per item, a line with their number and a digest.

#ifndef PLUMBLINE_BASE_PROCESS_SHARDS_H_
#define PLUMBLINE_BASE_PROCESS_SHARDS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "plumbline/result.h"

namespace plumbline {

// Which of `count` processes, from 0.
struct ShardPlace {
  uint64_t index = 0, count = 1;

  [[nodiscard]] bool Has(uint64_t item) const { return item % count == index; }
};
// "3/64". kInvalidArgument says what is wrong with it.
Result<ShardPlace> ParseShardPlace(std::string_view text);
// "<stem>_3_of_64.shard".
std::string ShardPath(std::string_view stem, const ShardPlace& place);

// Files in place of directories that hold shards. kNotFound: one holds none; kIo.
Result<std::vector<std::string>> ShardFiles(const std::vector<std::string>& paths);

// Any shard: a header and lines.

// Writes the text, whose lines end in a line feed, and a line that says what it must be. `items`:
// lines behind the header. Readers see all of it or nothing. kIo.
Status WriteSealedLines(const std::string& path, std::string text, size_t items);
// The text without its last line, which must fit it. kCorrupt.
Result<std::string_view> CheckSealedLines(const std::string& path, std::string_view text);
// "<path>: <what>. Run that shard again".
Error DamagedShard(const std::string& path, std::string_view what);
// "<path>: is a shard of plumb <command>, others are of another command. ...".
Error ShardOfAnother(const std::string& path, std::string_view command);
// kNotFound names those of `count` that are missing. `command`: "plumb compare".
Status CheckAllThere(const std::set<uint64_t>& indexes, uint64_t count, const std::string& path,
                     std::string_view command);
// 32 hexadecimal digits.
std::string DigestOfText(std::string_view text);
// Size and time of a file or directory, by which a change is seen; empty where it cannot be.
std::string StampOfFile(const std::string& path);

// Shards of commands that hand on what they read, item by item, and judge it as one process.

// The items of a part, or of all parts together.
struct ShardPart {
  std::string state;  // of the inputs, as the command sees it: the same in all parts
  uint64_t all = 0;   // items of all parts
  std::string note;   // what the part says of itself
  std::map<uint64_t, std::string> items;  // JSON of each
};

struct Shard {
  std::string command;  // "overflow"
  ShardPlace place;
  // What was asked for, as all processes were.
  std::vector<std::string> words;  // of the command line, without what changes no result
  std::string directory;           // where relative paths begin
  ShardPart part;
};
// kIo; kUnsupported: a text in it is no UTF-8.
Status WriteShard(const std::string& path, const Shard& shard);

struct ShardRequest {
  std::string command;  // empty: a shard of `plumb compare`, without its directory
  std::vector<std::string> words;
  std::string directory;
};
// What the shards of this file are of. kCorrupt: it is none; kNotFound, kIo.
Result<ShardRequest> RequestOfShard(const std::string& path);

struct ShardedItems {
  std::string state;
  std::vector<std::string> notes;  // of the parts
  std::vector<json::Value> items;
};
// All items in their order, whatever the order of the files; of a shard that is there twice either
// counts. kNotFound: shards are missing, which are named; kInvalidArgument: shards of several
// commands or of inputs that changed in between; kCorrupt, kUnsupported, kIo.
Result<ShardedItems> ReadShardedItems(const std::vector<std::string>& files);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_PROCESS_SHARDS_H_
