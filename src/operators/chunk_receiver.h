// Chunks that a device sends, written as files.

#ifndef PLUMBLINE_OPERATORS_CHUNK_RECEIVER_H_
#define PLUMBLINE_OPERATORS_CHUNK_RECEIVER_H_

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

#include "base/file/file.h"
#include "base/memory/digest.h"
#include "plumbline/result.h"

namespace plumbline::operators {

// Statistics that a device computes: its table of one operator as rows of statistic.csv.

// Whether a received file is such a table, by its first bytes.
bool IsDeviceTable(const std::string& piece);

// Appends the rows of `piece`, which the runtime would have called `target`, to statistic.csv
// beside it, whose header is written first; waits while another thread or process appends. Columns
// of a device count whatever their case and blanks. Returns the number of rows. kCorrupt: a name
// that is none of a dump, a row without its cells; kInvalidArgument: a table with other columns is
// there.
Result<uint64_t> AddDeviceTable(const std::string& piece, const std::string& target);

// One dump file that a device has sent, as the files that users look at.

struct ReceivedFile {
  uint64_t outputs = 0;               // files that are there now, rows of tables
  std::vector<std::string> problems;  // one sentence each
};

// Converts the complete file `piece`, which the runtime would have called `target`, into files
// beside `target`: records of overflows to JSON, a device's table of statistics to rows of
// statistic.csv, everything else to arrays. Tensors of four dimensions become NCHW, others ND,
// where the layout can be converted; otherwise they stay in the layout and shape of the device,
// which their name tells. Types that NumPy does not have are written as their bytes, without
// ".npy". A file that is there stays: where the new one is not the same, that is a problem, and the
// piece becomes `{target}.delivery-{n}`. So does one that has too many bytes or too few and that
// `is_appended`, put together of pieces without places: any of its tensors may be another one.
// Thread-safe for different targets.
ReceivedFile ConvertReceived(const std::string& piece, const std::string& target, bool is_appended);

// Whether a file `name` whose end nobody announced is a dump that has all its parts.
bool IsWhole(const std::string& piece, std::string_view name);

// Dump files of a device that arrive in pieces, as the ACL runtime hands them to a callback.

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
  std::set<Digest128> tables_;       // digests of the devices' tables that were added
  size_t deliveries_ = 0;            // calls of Receive() that are at work
  bool is_closing_ = false, is_closed_ = false;
  uint64_t next_piece_ = 0;
  uint64_t uses_ = 0;
  ReceiverReport report_;
};

// Where the file at `path` belongs: "rank_0/t/step_1/name" for nine and more components below
// `dump_path`, of which the first three and the last stay. kInvalidArgument: not below it.
Result<std::string> ReceivedPath(const std::string& dump_path, std::string_view path);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_CHUNK_RECEIVER_H_
