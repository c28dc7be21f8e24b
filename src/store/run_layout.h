// Every directory and file name plumbline can create below a dump path (docs/formats/dump_json.md).
//
//   {dump_path}/step{N}/rank{R}/dump.json, stack.json, construct.json, dump_error_info.log,
//                               .run, .dump.journal, .dump_losses.tmp,
//                               dump_tensor_data/{entry}.{part}.{path}.pt
//                               (.npy unless the framework is PyTorch)
//   {dump_path}/rank{R}/debug.json and the last four of them (level debug: one for the whole run)

#ifndef PLUMBLINE_STORE_RUN_LAYOUT_H_
#define PLUMBLINE_STORE_RUN_LAYOUT_H_

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "plumbline/result.h"
#include "store/tensor_writer.h"

namespace plumbline::run_layout {

std::string StepName(int64_t step);  // "step{N}"
// "rank{R}", or "rank" when the rank is unknown.
std::string RankName(std::optional<int> rank);
// Without a step: the directory of a whole run.
std::string RankDirectory(std::string_view dump_path, std::optional<int64_t> step,
                          std::optional<int> rank);
// Where a process writes when another one holds `rank_directory`: "{rank_directory}_{pid}".
std::string ContestedDirectory(std::string_view rank_directory, pid_t pid);
// Name an unfinished journal of an earlier run is moved to: ".dump.journal.{yyyymmddHHMMSS}", local
// time. `attempt` > 0 appends ".{attempt}".
std::string StaleJournalName(std::time_t when, int attempt);
// True for names made by StaleJournalName.
bool IsStaleJournal(std::string_view name);

// Space for dump_error_info.log, until there is something to say there. A temporary name.
inline constexpr std::string_view kLossReserve = ".dump_losses.tmp";

// True for names of files that are being written (base/file/file.h: AtomicFile).
bool IsTemporary(std::string_view name);

// Name of the file for a tensor, from "{entry}.{part}.{path}": bytes outside [a-zA-Z0-9_.-] become
// '_', names over 200 bytes are cut to 180 plus a hash of the full text, the extension is appended.
std::string TensorFileName(std::string_view tensor_name, std::string_view extension = ".pt");

// Of the tensor files of a recording, by RunHeader::framework: ".pt" of "pytorch", else ".npy".
std::string_view TensorExtension(std::string_view framework);

// The tensor file names of one directory. Two tensors whose names fall together get ".dup{k}".
// Single-threaded.
class TensorNames {
 public:
  // `extension`: static text.
  explicit TensorNames(std::string_view extension = ".pt") : extension_(extension) {}

  // A name not handed out before.
  std::string Reserve(std::string_view tensor_name);
  // The name for a tensor that replaces an earlier one of the same name (gradient accumulation).
  std::string Replace(std::string_view tensor_name);

 private:
  std::string_view extension_;
  std::unordered_map<std::string, uint32_t> uses_;
};

}  // namespace plumbline::run_layout

namespace plumbline {

// Taking possession of a rank directory: one process at a time, nothing of earlier runs lost.

// Where a rank directory is: {dump_path}/{below[0]}/{below[1]}...
struct RankPlace {
  std::string dump_path;           // only its last component must not be a symbolic link
  std::vector<std::string> below;  // directories plumbline makes: never symbolic links
};

// Makes what is missing and opens the last directory. kIo when something else stands in the way.
Result<Directory> OpenRankPlace(const RankPlace& place);

struct Claim {
  RankPlace place;
  Directory directory;
  File journal;  // empty and locked
};
// Opens the directory and locks a new journal in it. A journal with calls of an earlier run is
// moved aside with a warning. When another process holds the directory, one of that name and
// "_{pid}" is taken instead, with a warning. `sync`: jobs of this process that may still hold it.
Result<Claim> ClaimRankPlace(RankPlace place, Worker& sync);

}  // namespace plumbline

#endif  // PLUMBLINE_STORE_RUN_LAYOUT_H_
