// The two files of a pre-check: one row per call (result) and one per output (details). Written call
// by call, continued after a kill, read back.

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

namespace plumbline::precheck {

// Whose columns: 23 of the details for PyTorch, 9 for MindSpore.
enum class ResultForm : uint8_t { kPyTorch, kMindSpore };

struct ResultFilesOptions {
  ResultForm form = ResultForm::kPyTorch;
  int precision = 14;          // digits behind the point of a double, 0 to 20; not of MindSpore
  bool retry_skipped = false;  // Resume(): calls with a skipped direction are to do again
};

// Local time as names of result files have it: "20250226101112".
std::string ResultTimestamp();

// Writer of both files. The rows of a call are in the details before its row is in the result, which
// commits them; each is one write. A kill leaves at most a call that Resume() takes out again. It
// outlasts the process; the machine from Close() on. Move-only. Thread-compatible.
class ResultFiles {
 public:
  struct Done {
    Status forward = Status::kNone;
    Status backward = Status::kNone;
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
  // kNotFound: either file is missing. kInvalidArgument: another name, a header that misses columns,
  // a call that the recording does not have, a file that another process writes. kCorrupt, kIo.
  static Result<ResultFiles> Resume(const std::string& result_path, const IsPlanned& is_planned,
                                    const ResultFilesOptions& options);

  // The rows of one call. After kIo (a full disk) neither file has any of them, or the next
  // Resume() takes them out; it can be tried again.
  plumbline::Status Append(const CallOutcome& outcome);
  // Rewrites both in the order of `place_of`, calls without a place last; each file is replaced as a
  // whole. Append() still works.
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
    uint64_t size = 0;  // what is committed
    bool is_torn = false;  // more may be in the file than that
    plumbline::Status Open();
    plumbline::Status Append(std::string_view rows);
    plumbline::Status CutBack();
  };

  explicit ResultFiles(const ResultFilesOptions& options) : options_(options) {}
  plumbline::Status OpenBoth();

  ResultFilesOptions options_;
  std::string timestamp_;
  Journal result_, details_;
  DoneCalls done_;
};

// One row of a details file as it was read: what could not be is named in `problem`.
struct DetailsRow {
  OutputRow output;
  std::string problem;
};
// Rows of a details file of either release, or of MindSpore, one after the other; numbers and status
// words in any of their spellings. A last line that a kill has torn is left out.
//
// kInvalidArgument: the header misses columns of `needed` (their names). kNotFound, kCorrupt, kIo.
using VisitDetailsRow = std::function<plumbline::Status(DetailsRow& row)>;
plumbline::Status VisitDetails(const std::string& path, std::span<const std::string_view> needed,
                               const VisitDetailsRow& visit);

// The parts of "Functional.conv2d.0.forward.output.0", whose call has three or four parts.
struct OutputName {
  std::string_view call;  // "Functional.conv2d.0"
  std::string_view api;   // "conv2d", "linalg.inv"
  bool is_forward = true;
};
std::optional<OutputName> ParseOutputName(std::string_view name);

// Appends a number as both programs write it: a double with `precision` digits behind the point,
// narrower ones by their shortest digits as NumPy prints a float32, an integer bare; one blank for
// none.
void AppendNumber(const Cell& cell, int precision, std::string& out);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_RESULT_FILES_H_
