// What a conversion has done so far, so that one that was killed can be continued.

#ifndef PLUMBLINE_PIPELINE_DEVICE_DUMP_CONVERT_JOURNAL_H_
#define PLUMBLINE_PIPELINE_DEVICE_DUMP_CONVERT_JOURNAL_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/file.h"
#include "pipeline/device_dump/msaccucmp_code.h"
#include "pipeline/device_dump/output_names.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_DEVICE_DUMP_CONVERT_JOURNAL_H_
