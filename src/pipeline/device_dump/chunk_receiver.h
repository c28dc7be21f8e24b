// Dump files of a device that arrive in pieces, as the ACL runtime hands them to a callback.

#ifndef PLUMBLINE_PIPELINE_DEVICE_DUMP_CHUNK_RECEIVER_H_
#define PLUMBLINE_PIPELINE_DEVICE_DUMP_CHUNK_RECEIVER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "plumbline/result.h"

namespace plumbline::pipeline {

struct Chunk {
  std::string_view file;  // path of the dump file that the runtime would have written
  std::span<const std::byte> bytes;
  int64_t offset = -1;  // in the file; -1: behind what is there
  bool is_last = false;
};

struct ReceiverReport {
  uint64_t files = 0;    // that were complete
  uint64_t outputs = 0;  // files written, rows of statistic.csv
  uint64_t failed = 0;   // files of which something is missing or could not be written
  uint64_t unended = 0;  // files whose last chunk never came and that are not whole; discarded
  std::vector<std::string> problems;  // one sentence each; at most 20
};

// Puts the chunks of any number of files together on the disk, in memory that does not grow with
// them (but for a digest of each table of statistics), and writes each complete file as arrays
// (docs/formats/acl_dump.md, "Chunks"): below the dump path,
// `rank_n/time/step_n/{name}.{input|output}.{slot}.{FORMAT}.{DTYPE}.npy`. Work is done in the
// calling thread, which holds the device back instead of losing data. Outputs appear when they are
// complete; a killed process leaves besides them a directory `.receiving-{n}` with pieces, which
// the next receiver of the dump path removes. Thread-safe.
class ChunkReceiver {
 public:
  // `dump_path` is made if it is missing. kIo.
  static Result<std::unique_ptr<ChunkReceiver>> Open(const std::string& dump_path);
  ~ChunkReceiver();

  // kInvalidArgument: a file outside of the dump path, no bytes in a chunk that is not the last, a
  // chunk behind Close(); kIo, and kCorrupt for bytes that came before as others, after which the
  // file counts as failed. What is wrong with a complete file is in the report.
  Status Receive(const Chunk& chunk);
  // Waits for the chunks that other threads deliver, ends files whose last chunk is missing and
  // removes the pieces.
  ReceiverReport Close();

 private:
  struct Assembly;

  ChunkReceiver(std::string dump_path, std::string pieces, File lock);
  Status RemoveAbandoned() const;
  Result<std::shared_ptr<Assembly>> Begin(const std::string& file);
  Status Put(const Chunk& chunk, Assembly& assembly);
  bool Ends(const Chunk& chunk, Assembly& assembly);
  void LimitOpenFiles();
  void Finish(const std::string& file, Assembly& assembly);
  bool IsRepeatedTable(const std::string& file, const std::string& piece);
  void Fail(std::string problem);

  std::string dump_path_;
  std::string pieces_;  // directory of this receiver
  File lock_;           // held in it while this lives
  std::mutex mutex_;    // of what follows
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Assembly>> assemblies_;
  std::set<std::string> finishing_;  // files that are being converted
  std::set<std::string> tables_;     // digests of the devices' tables that were added
  size_t deliveries_ = 0;            // calls of Receive() that are at work
  bool is_closing_ = false, is_closed_ = false;
  uint64_t next_piece_ = 0;
  uint64_t uses_ = 0;
  ReceiverReport report_;
};

// Where the file at `path` belongs: "rank_0/t/step_1/name" for nine and more components below
// `dump_path`, of which the first three and the last stay. kInvalidArgument: not below it.
Result<std::string> ReceivedPath(const std::string& dump_path, std::string_view path);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_DEVICE_DUMP_CHUNK_RECEIVER_H_
