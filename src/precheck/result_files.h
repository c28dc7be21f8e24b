// The two files of a pre-check, one row per call (result) and one per output (details), while they
// are written: call by call, and on after a kill. A third one beside them says of what run they
// are.

#ifndef PLUMBLINE_PRECHECK_RESULT_FILES_H_
#define PLUMBLINE_PRECHECK_RESULT_FILES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file/file.h"
#include "base/text/csv.h"
#include "plumbline/result.h"
#include "precheck/outcome.h"
#include "precheck/result_rows.h"

namespace plumbline::precheck {

// What decides the results of a run beside its calls: rows of runs in which any of it differs do
// not belong into one file. An empty text is not known (yet).
struct RunFacts {
  std::string dump_json;  // where the recording was; not compared, as it may be moved
  std::string digest;     // of its bytes: DigestOfFile()
  std::string framework, framework_version;
  std::string device;       // "npu", without a number
  std::string device_name;  // "NVIDIA H100 80GB HBM3"; empty of a CPU
  uint64_t seed = 0;
  int worker_threads = 1;
  bool dedupe = false;
  int precision = 14;
  double max_abs_error = 0;  // of MindSpore; else 0
};

// XXH3-128 of a file as 32 hexadecimal digits, read in pieces.
Result<std::string> DigestOfFile(const std::string& path);

// How the facts are written, and read again. kCorrupt: it is no such text; kUnsupported: of a
// version that this program does not know.
std::string RunFactsJson(const RunFacts& facts);
Result<RunFacts> ParseRunFacts(std::string_view text);
// Why results of the run `earlier` cannot be continued by `now`, and what to do; empty: they can.
std::string DifferenceOf(const RunFacts& earlier, const RunFacts& now);

struct ResultFilesOptions {
  ResultForm form = ResultForm::kPyTorch;
  int precision = 14;          // digits behind the point of a double, 0 to 20; not of MindSpore
  bool retry_skipped = false;  // Resume(): calls with a skipped direction are to do again
  // Written beside new files; held against those of the files that are continued. Absent: neither.
  std::optional<RunFacts> facts = {};
};

// A file that grows by whole groups of rows. Thread-compatible.
struct RowJournal {
  std::string path;
  File file;
  uint64_t size = 0;     // what is committed
  bool is_torn = false;  // more than that may be in the file

  plumbline::Status Open();
  plumbline::Status Append(std::string_view rows);
  // Takes out what was appended after it had `bytes`.
  plumbline::Status CutTo(uint64_t bytes);
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
    uint64_t outputs = 0;      // that were judged
    std::optional<Skip> skip;  // of the forward, else of the backward, where that was skipped
  };
  using DoneCalls = std::unordered_map<std::string, Done>;
  using IsPlanned = std::function<bool(std::string_view call)>;
  using PlaceOf = std::function<std::optional<size_t>(std::string_view call)>;

  // New files `accuracy_checking_{result,details}_<timestamp>.csv` with their headers, and before
  // them `accuracy_checking_run_<timestamp>.json` with the facts, mode 0640; the directory is made.
  // kInvalidArgument: they exist. kIo.
  static Result<ResultFiles> Create(const std::string& directory, std::string_view timestamp,
                                    const ResultFilesOptions& options);
  // Reads the files of an earlier run, changing nothing. `is_planned`: whether the recording has
  // that call.
  //
  // kNotFound: either file is missing. kInvalidArgument: another name, a header that misses
  // columns, a call that the recording does not have, a file that another process writes, other
  // facts. kCorrupt, kIo.
  static Result<ResultFiles> Resume(const std::string& result_path, const IsPlanned& is_planned,
                                    const ResultFilesOptions& options);
  // To be called between Resume() and the first change; of new files it does nothing. `facts` are
  // those of the options with what has become known meanwhile: kInvalidArgument where it differs.
  // Taken out are: rows of the details whose call has no row in the result; calls whose details
  // are missing or do not say what the result does (where another tool began the files, calls
  // without details but for dropout, of which release 1.2.2 writes none); a torn last line. Each
  // file is replaced as a whole, so that a kill during this loses nothing either.
  plumbline::Status Begin(const std::optional<RunFacts>& facts = {});

  // The rows of one call. After kIo (a full disk) neither file has any of them, or the next
  // Resume() takes them out; it can be tried again.
  plumbline::Status Append(const CallOutcome& outcome);
  // Rewrites both in the order of `place_of`, calls without a place last; each file is replaced as
  // a whole. Append() still works.
  plumbline::Status Sort(const PlaceOf& place_of);
  // On the disk, and closed.
  plumbline::Status Close();
  // Of a run that came to nothing. Best effort.
  void RemoveAll() const;

  // Calls of the earlier run, as it judged them.
  [[nodiscard]] const DoneCalls& done() const { return done_; }
  [[nodiscard]] const std::string& result_path() const { return result_.path; }
  [[nodiscard]] const std::string& details_path() const { return details_.path; }
  // Of the names: of the first run.
  [[nodiscard]] const std::string& timestamp() const { return timestamp_; }
  // Of the earlier run; absent: nobody wrote them.
  [[nodiscard]] const std::optional<RunFacts>& earlier_facts() const { return earlier_facts_; }
  // Sentences to log once.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  explicit ResultFiles(const ResultFilesOptions& options) : options_(options) {}
  void NameFiles(const std::string& directory, std::string timestamp);
  plumbline::Status WriteNew();
  plumbline::Status OpenBoth();
  plumbline::Status ReadEarlier(const IsPlanned& is_planned);
  plumbline::Status CheckFacts();

  // The rows of one file that stay.
  using KeptRows = std::vector<csv::RowPlace>;

  ResultFilesOptions options_;
  std::string timestamp_, facts_path_;
  RowJournal result_, details_;
  DoneCalls done_;
  std::optional<KeptRows> kept_result_, kept_details_;  // from Resume() to Begin()
  std::optional<RunFacts> earlier_facts_;
  std::vector<std::string> warnings_;
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_RESULT_FILES_H_
