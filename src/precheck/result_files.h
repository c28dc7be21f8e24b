// The two files of a pre-check, one row per call (result) and one per output (details), while they
// are written: call by call, and on after a kill.

#ifndef PLUMBLINE_PRECHECK_RESULT_FILES_H_
#define PLUMBLINE_PRECHECK_RESULT_FILES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/file/file.h"
#include "plumbline/result.h"
#include "precheck/outcome.h"
#include "precheck/result_rows.h"

namespace plumbline::precheck {

struct ResultFilesOptions {
  ResultForm form = ResultForm::kPyTorch;
  int precision = 14;          // digits behind the point of a double, 0 to 20; not of MindSpore
  bool retry_skipped = false;  // Resume(): calls with a skipped direction are to do again
};

// Local time as the names of result files have it, "20250226101112"; a later second where
// `directory` has result files of that one.
std::string ResultTimestamp(const std::string& directory);

// Writer of both files. The rows of a call are in the details before its row is in the result,
// which commits them; each is one write. A kill leaves at most a call that Resume() takes out
// again. It outlasts the process; the machine from Close() on. Move-only. Thread-compatible.
class ResultFiles {
 public:
  struct Done {
    CheckStatus forward = CheckStatus::kNone;
    CheckStatus backward = CheckStatus::kNone;
  };
  using DoneCalls = std::unordered_map<std::string, Done>;
  using IsPlanned = std::function<bool(std::string_view call)>;
  using PlaceOf = std::function<std::optional<size_t>(std::string_view call)>;

  // New files `accuracy_checking_{result,details}_<timestamp>.csv` with their headers, mode 0640;
  // the directory is made. kInvalidArgument: they exist. kIo.
  static Result<ResultFiles> Create(const std::string& directory, std::string_view timestamp,
                                    const ResultFilesOptions& options);
  // Continues the files of an earlier run. `is_planned`: whether the recording has that call. Rows
  // of the details whose call has no row in the result, rows of the result without details (but for
  // dropout, of which release 1.2.2 writes none) and a torn last line are taken out; each file is
  // replaced as a whole, so that a kill during this loses nothing either.
  //
  // kNotFound: either file is missing. kInvalidArgument: another name, a header that misses
  // columns, a call that the recording does not have, a file that another process writes. kCorrupt,
  // kIo.
  static Result<ResultFiles> Resume(const std::string& result_path, const IsPlanned& is_planned,
                                    const ResultFilesOptions& options);

  // The rows of one call. After kIo (a full disk) neither file has any of them, or the next
  // Resume() takes them out; it can be tried again.
  plumbline::Status Append(const CallOutcome& outcome);
  // Rewrites both in the order of `place_of`, calls without a place last; each file is replaced as
  // a whole. Append() still works.
  plumbline::Status Sort(const PlaceOf& place_of);
  // On the disk, and closed.
  plumbline::Status Close();

  // Calls of the earlier run, as it judged them.
  [[nodiscard]] const DoneCalls& done() const { return done_; }
  [[nodiscard]] const std::string& result_path() const { return result_.path; }
  [[nodiscard]] const std::string& details_path() const { return details_.path; }
  // Of the names: of the first run.
  [[nodiscard]] const std::string& timestamp() const { return timestamp_; }

 private:
  // A file that grows by whole groups of rows.
  struct Journal {
    std::string path;
    File file;
    uint64_t size = 0;     // what is committed
    bool is_torn = false;  // more than that may be in the file

    plumbline::Status Open();
    plumbline::Status Append(std::string_view rows);
    // Takes out what was appended after it had `bytes`.
    plumbline::Status CutTo(uint64_t bytes);
  };

  explicit ResultFiles(const ResultFilesOptions& options) : options_(options) {}
  void NameFiles(const std::string& directory, std::string timestamp);
  plumbline::Status OpenBoth();
  plumbline::Status Repair(const IsPlanned& is_planned);

  ResultFilesOptions options_;
  std::string timestamp_;
  Journal result_, details_;
  DoneCalls done_;
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_RESULT_FILES_H_
