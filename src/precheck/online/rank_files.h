// The result files of one rank of an online pre-check, which grow by whole steps.

#ifndef PLUMBLINE_PRECHECK_ONLINE_RANK_FILES_H_
#define PLUMBLINE_PRECHECK_ONLINE_RANK_FILES_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
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

// A call as the training got it and, where the device of this machine ran it too, what that made.
struct CheckedCall {
  CallOutcome outcome;
  std::optional<CallOutcome> of_device;
};

// `accuracy_checking_{result,details}_<time>_rank<r>.csv`, and with a device of this machine
// `api_precision_compare_{result,details}_<time>_rank<r>.csv`. A ledger in the spool says before the
// rows of a step are appended how long the files are, and behind them that they are whole: after a
// kill the next program cuts off what was begun and judges that step again, so that each call has
// its rows once. Move-only. Thread-compatible.
class RankFiles {
 public:
  using Counts = std::array<uint64_t, 5>;  // calls by CheckStatus

  struct Place {
    std::string directory, spool, timestamp;
    bool has_device = false;  // four files
  };
  // Goes on with the files that the ledger in the spool names, or makes new ones. `finished` gets by
  // session the last frame that is judged. kIo; kCorrupt: the ledger is of other files;
  // kInvalidArgument: it was begun without the device, or with it.
  static Result<RankFiles> Open(const Place& place, int32_t rank,
                                std::map<uint64_t, uint64_t>& finished);
  // Ranks of which `spool` has ledgers.
  static Result<std::vector<int32_t>> RanksIn(const std::string& spool);

  // All rows of a step. After kIo (a full disk) no file has any of them, and it can be tried again.
  plumbline::Status Append(const JudgedStep& step, const std::vector<CheckedCall>& calls,
                           int precision);
  // A row behind all that says what was not checked.
  plumbline::Status AppendRemark(std::string_view name, std::string_view message);
  // On the disk, and without a ledger: there is nothing to go on with.
  plumbline::Status Finish();

  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] uint64_t steps() const { return steps_; }
  [[nodiscard]] const std::string& result_path() const { return files_[kResult].file.path(); }
  // Against the device of this machine; empty without one.
  [[nodiscard]] std::string sided_path() const {
    return files_.size() > kSidedResult ? files_[kSidedResult].file.path() : std::string();
  }

 private:
  enum Kind : uint8_t { kDetails, kResult, kSidedDetails, kSidedResult };
  struct Grown {
    File file;
    uint64_t size = 0;
  };

  RankFiles() = default;
  plumbline::Status ReadLedger(std::string_view text, std::map<uint64_t, uint64_t>& finished,
                               std::string& heading);
  plumbline::Status OpenFile(const std::string& path, Kind kind);
  plumbline::Status Write(const JudgedStep& step, const std::vector<std::string>& texts,
                          const Counts& counts);

  std::vector<Grown> files_;  // by Kind: two or four
  File ledger_;
  uint64_t ledger_size_ = 0;
  Counts counts_{};
  uint64_t steps_ = 0;
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_ONLINE_RANK_FILES_H_
