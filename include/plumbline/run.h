// Open a dump directory of any known kind, list and read its calls.

#ifndef PLUMBLINE_RUN_H_
#define PLUMBLINE_RUN_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/record.h"
#include "plumbline/shared_value.h"

namespace plumbline {

class Run;
namespace dump_json {
struct CallTree;
}
namespace load {
const dump_json::CallTree& CallTreeOf(const Run& run);  // load/run_reader.h
}

// First fields of dump.json. Missing fields are inferred (docs/formats/dump_json.md, "dialects").
struct RunHeader {
  std::string task;           // "statistics", "tensor", ...
  std::string level;          // "L0", "L1", "mix", ...
  std::string framework;      // "pytorch", "mindspore", "mindtorch"
  std::string dump_data_dir;  // as written by the recorder; empty if null
  bool by_plumbline = false;  // plumbline's mark (.run) lies beside dump.json
  // Checksums of bfloat16 are of its own bytes (releases after 1.2.2), not of a float32 copy.
  bool digests_own_bytes = false;
  // A dump of MindSpore's static graphs: calls are kernels, named {scope}.{type}.{number}.forward.
  bool of_graphs = false;
  bool is_merged = false;  // calls are those of several parallel ranks, folded into one
  // Of a log of torch's DebugMode or torchtitan (docs/formats/debug_mode_log.md): what it is, in
  // words, and what its digests are ("norm", "hash_tensor"), which are no checksums. Empty: none.
  std::string log_form = {}, digest_kind = {};

  // Entries are values given to PrecisionDebugger.save() and their gradients, not calls.
  [[nodiscard]] bool holds_saves() const { return level == "debug"; }
};

// What could not be read, and where. Zero everywhere for a complete run.
struct RunLoss {
  bool truncated = false;         // dump.json ended early; `byte_offset` says where
  uint64_t byte_offset = 0;       // end of the last complete record
  uint64_t duplicate_names = 0;   // entries that occurred again; the last one is used
  uint64_t recorder_drops = 0;    // calls, values and files that dump_error_info.log counts as lost
  uint64_t compiled_regions = 0;  // of recorder_drops: calls inside regions of torch.compile
  bool ended_early = false;       // of recorder_drops: one, as the process was killed
  bool unfinished = false;  // the journal of a killed or running process is newer than dump.json
  std::vector<std::string> side_files;  // errors of files beside it that could not be read
  // What the recorder cannot see and says so: no damage. One sentence each.
  std::vector<std::string> unseen = {};
};

struct OpenOptions {
  bool salvage = false;  // read a truncated dump.json up to its last complete entry
  // stack.json is read when StackOf() or loss() first asks for it, by the thread that asks.
  bool defer_stacks = false;
  // Sees every entry of dump.json as it is read, in file order, and says whether calls() shall hold
  // it; may take its contents. A name that occurs again is seen again. Empty: all are held.
  std::function<bool(Call& call, const RunHeader& header)> keep = {};
};

// One rank of one step: what is in dump.json, stack.json, construct.json and dump_tensor_data.
// Immutable after Open; thread-safe for reading. References stay valid while the run lives.
class Run {
 public:
  // `path` is a dump.json or debug.json, a rank directory, or a step or dump directory that holds
  // exactly one rank; a debug.json counts where there is no dump.json; or a static-graph dump of
  // one rank and step (docs/reference/graph-dumps.md); or a log of torch's DebugMode or torchtitan
  // (docs/formats/debug_mode_log.md). kNotFound, kInvalidArgument (several ranks: the message lists
  // them), kCorrupt (truncated or not JSON: the message has the byte offset, of a log the line),
  // kIo.
  static Result<Run> Open(const std::string& path, const OpenOptions& options = {});

  [[nodiscard]] const RunHeader& header() const;
  [[nodiscard]] const RunLoss& loss() const;
  // loss() as far as it is known: without what a stack.json that was not read yet may add.
  [[nodiscard]] const RunLoss& loss_so_far() const;
  [[nodiscard]] const std::string& dump_json_path() const;
  // In file order; see OpenOptions::keep.
  [[nodiscard]] const std::vector<Call>& calls() const;
  // Call stack of a forward entry, innermost frame first; empty if unknown.
  [[nodiscard]] const Shared<std::vector<std::string>>& StackOf(std::string_view call_name) const;
  // Name of the enclosing module entry, or empty (no parent, unknown entry, or no construct.json).
  [[nodiscard]] std::string_view ParentOf(std::string_view call_name) const;
  // Full path of a tensor file named by TensorRecord::data_name.
  [[nodiscard]] std::string TensorPath(std::string_view data_name) const;
  // The directories that a static-graph dump was read from; empty for other runs.
  [[nodiscard]] const std::vector<std::string>& graph_directories() const;

  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;
  ~Run();

 private:
  friend const dump_json::CallTree& load::CallTreeOf(const Run& run);
  struct Impl;
  explicit Run(std::unique_ptr<Impl> impl);
  static Result<Run> OpenGraph(const std::string& path, const OpenOptions& options);
  static Result<Run> OpenLog(const std::string& path, const OpenOptions& options);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_RUN_H_
