// `plumb export`: a recording copied into plain files, each with contents of its own.

#ifndef PLUMBLINE_INSPECT_EXPORT_DUMP_H_
#define PLUMBLINE_INSPECT_EXPORT_DUMP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

enum class TensorFormat : uint8_t { kAsIs, kPt, kNpy };

struct ExportOptions {
  bool strict_json = false;  // NaN and Infinity as texts in dump.json and debug.json
  TensorFormat format = TensorFormat::kAsIs;
  int threads = 0;  // 0: one per core
  // Called after each tensor file, from any thread, one call at a time not guaranteed.
  std::function<void(uint64_t done, uint64_t all)> progress;
};

struct ExportReport {
  uint64_t dumps = 0;         // dump.json and debug.json written
  uint64_t tensor_files = 0;  // copied or converted
  uint64_t other_files = 0;
  uint64_t bytes = 0;              // of all files written
  uint64_t converted = 0;          // tensor files in another format than before
  uint64_t widened = 0;            // of these: bfloat16 and float8, now float32
  uint64_t recovered_calls = 0;    // from journals, into the copy
  std::vector<std::string> notes;  // what is different from the source otherwise
};

// Copies `source` (a dump, step or rank directory) to `target`, which must be absent or empty and
// outside of `source`. The source is not touched: journals are recovered in the copy. dump_data_dir
// names the copy, data_name the converted file. Hard links become files of their own. Not copied,
// with a note: journals of earlier runs, temporary files.
// kNotFound (no recording), kInvalidArgument (target not empty, a symbolic link in the source),
// kCorrupt (dump.json is damaged; a tensor file that must be converted is), kIo. After an error the
// target is incomplete.
Result<ExportReport> ExportDump(const std::string& source, const std::string& target,
                                const ExportOptions& options);

}  // namespace plumbline

#endif  // PLUMBLINE_INSPECT_EXPORT_DUMP_H_
