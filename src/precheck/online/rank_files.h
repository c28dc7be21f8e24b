// The two result files of one rank of an online pre-check, which grow by whole steps.

#ifndef PLUMBLINE_PRECHECK_ONLINE_RANK_FILES_H_
#define PLUMBLINE_PRECHECK_ONLINE_RANK_FILES_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.h"
#include "plumbline/result.h"
#include "precheck/outcome.h"

namespace plumbline::precheck {

// A step that is judged: of which session, its number, and the last frame of it.
struct JudgedStep {
  uint64_t session = 0;
  int64_t step = 0;
  uint64_t last_sequence = 0;
};

// `accuracy_checking_{result,details}_<time>_rank<r>.csv`. A ledger in the spool says before the
// rows of a step are appended how long both files are, and behind them that they are whole: after a
// kill the next program cuts off what was begun and judges that step again, so that each call has
// its rows once. Move-only. Thread-compatible.
class RankFiles {
 public:
  using Counts = std::array<uint64_t, 5>;  // calls by CheckStatus

  // Goes on with the files that the ledger in `spool` names, or makes new ones. `finished` gets by
  // session the last frame that is judged. kIo; kCorrupt: the ledger is of other files.
  static Result<RankFiles> Open(const std::string& directory, const std::string& spool, int32_t rank,
                                std::string_view timestamp, std::map<uint64_t, uint64_t>& finished);
  // Ranks of which `spool` has ledgers.
  static Result<std::vector<int32_t>> RanksIn(const std::string& spool);

  // All rows of a step. After kIo (a full disk) neither file has any of them, and it can be tried
  // again.
  plumbline::Status Append(const JudgedStep& step, const std::vector<CallOutcome>& outcomes,
                           int precision);
  // A row behind all that says what was not checked.
  plumbline::Status AppendRemark(std::string_view name, std::string_view message);
  // On the disk, and without a ledger: there is nothing to go on with.
  plumbline::Status Finish();

  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] uint64_t steps() const { return steps_; }
  [[nodiscard]] const std::string& result_path() const { return result_.path(); }
  [[nodiscard]] const std::string& details_path() const { return details_.path(); }

 private:
  RankFiles() = default;
  plumbline::Status ReadLedger(const std::string& text, std::map<uint64_t, uint64_t>& finished,
                               std::string& timestamp);
  plumbline::Status OpenFile(const std::string& path, bool is_result, uint64_t size, File& file);

  File result_, details_, ledger_;
  uint64_t result_size_ = 0, details_size_ = 0, ledger_size_ = 0;
  Counts counts_{};
  uint64_t steps_ = 0;
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_ONLINE_RANK_FILES_H_
