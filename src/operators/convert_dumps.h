// Dump files of devices converted: the whole tree, and the journal by which a killed conversion
// goes on.

#ifndef PLUMBLINE_OPERATORS_CONVERT_DUMPS_H_
#define PLUMBLINE_OPERATORS_CONVERT_DUMPS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "load/dump_files.h"
#include "operators/convert_options.h"
#include "operators/msaccucmp_code.h"
#include "operators/output_names.h"
#include "plumbline/result.h"

namespace plumbline::operators {

// What a conversion has done so far, so that one that was killed can be continued.

// One converted file.
struct ConvertedFile {
  std::string path;
  uint64_t size_bytes = 0;
  int64_t modified_at = 0;          // of the dump, as ModifiedAt()
  std::vector<PlacedFile> outputs;  // as they were written
};

// A hidden file in the output directory, there while a conversion runs. Lines of CSV: what was
// asked for, then a line per file when all of its outputs stand under their names. Thread-safe.
class ConvertJournal {
 public:
  // `wanted` is a text of everything that decides what the outputs hold. What an earlier run with
  // the same text has left is read; another one's is dropped. kWriteError.
  static DumpResult<ConvertJournal> Open(const std::string& directory, const std::string& wanted);
  ConvertJournal(ConvertJournal&& other) noexcept
      : path_(std::move(other.path_)),
        file_(std::move(other.file_)),
        done_(std::move(other.done_)) {}

  // Whether the dump at `path` is as it was when it was converted, and its outputs are there whole.
  [[nodiscard]] bool IsDone(const std::string& path) const;
  DumpStatus Add(const ConvertedFile& file);
  // Removes it: nothing is left to continue. kWriteError.
  DumpStatus Finish();

 private:
  ConvertJournal(std::string path, File file, std::map<std::string, ConvertedFile> done)
      : path_(std::move(path)), file_(std::move(file)), done_(std::move(done)) {}

  std::string path_;
  std::mutex mutex_;
  File file_;
  std::map<std::string, ConvertedFile> done_;  // by path
};

// The asynchronous dump of a static graph with its tensors in the layout of the host.

// Writes every tensor of every device file below `root` beside it:
// {name of the file}.{io}.{slot}.NCHW.npy, or with its own layout in place of NCHW where there is
// no such conversion. Tensors of an earlier time are replaced, nothing is removed. One file that
// fails stops no other; returns a line for each, "path,output:1\treason", which are also in
// convert_failed_files_summary.txt. When the process is killed, the next call does the rest.
// kNotFound: there is neither a device file nor a tensor of the host. kIo: nothing was converted.
Result<std::vector<std::string>> ConvertTreeToHost(const std::string& root);

// Device dumps as files of other programs: a file, a list or a tree (docs/reference/convert.md).

struct ConvertReport {
  size_t files = 0;                  // that were to be converted
  size_t done_before = 0;            // of these, by a run that was killed
  size_t failed = 0;                 // of these, with at least one failure
  std::vector<std::string> outputs;  // paths of files written now, in the order of the dumps
  uint64_t output_bytes = 0;
  size_t left_out = 0;                    // files of the directory that are no dumps by their names
  std::vector<std::string> lines;         // "path: output 1: what happened (error 21)", in order
  std::vector<std::string> failed_files;  // lines of the list: "path,output:1\treason"
  std::vector<std::string> notes;
  std::optional<DumpCode> code;  // of the first failure
  std::string failure_list;      // path of the list of failed files; empty: none was needed
};

// Converts all dumps; one that fails stops no other, and of several whose outputs would have the
// same names the first is converted. Every output appears when it is complete. When
// the process is killed, a hidden journal in the output directory lets the next run with the same
// options do the rest. The failures of this run are in a list there.
// kInvalidParameter (also an empty directory), kInvalidPath, kWriteError: nothing was converted.
DumpResult<ConvertReport> ConvertDumps(const ConvertRequest& request);
// The same of what was found below request.dump_path, a directory.
DumpResult<ConvertReport> ConvertFound(const ConvertRequest& request, load::DumpFiles found);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_CONVERT_DUMPS_H_
