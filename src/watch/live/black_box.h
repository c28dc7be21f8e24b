// The files of a black box: samples of the last steps of a training, kept when something goes
// wrong.

#ifndef PLUMBLINE_WATCH_LIVE_BLACK_BOX_H_
#define PLUMBLINE_WATCH_LIVE_BLACK_BOX_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "watch/live/diagnosis.h"
#include "watch/live/step_files.h"

namespace plumbline::watch {

// The statistics in its csv files.
std::vector<Op> BlackBoxOps();

// How a training ended, in black_box.json beside the csv files; a killed one says nothing.
inline constexpr std::string_view kBlackBoxFile = "black_box.json";

// What the rules found so far, in order: they know more steps than the csv files hold.
inline constexpr std::string_view kFindingsFile = "findings.json";
std::string FindingsJson(const std::vector<Finding>& findings);
// kCorrupt.
Result<std::vector<Finding>> ReadFindings(std::string_view text);

// Writes csv files in blocks of `steps` steps and removes all but the newest two, so that a killed
// training leaves the last `steps` at least. Runs the rules of Diagnosis; some steps after the
// first finding that is no mere suspicion it stops to write and to remove: what is there stays.
// `directory` empty: nothing is written, the rules look all the same.
class BlackBoxSink : public StepSink {
 public:
  BlackBoxSink(std::string directory, int64_t steps);

  Status Write(const StepRows& rows) override;
  Status Close() override;

  // The finding that explains the others so far; thread-safe.
  [[nodiscard]] std::optional<Finding> First() const;
  // Whether the steps after a finding are written, and nothing more will be; thread-safe.
  [[nodiscard]] bool is_frozen() const;

 private:
  Status RemoveOld(int64_t block);
  Status Take(std::vector<Finding> found, int64_t step);

  std::string directory_;
  int64_t steps_;
  std::unique_ptr<StepSink> files_;
  Diagnosis diagnosis_;
  int64_t block_ = -1;
  std::optional<int64_t> first_fault_;  // step of the first finding that is no suspicion
  mutable std::mutex mutex_;            // of what follows
  std::vector<Finding> findings_;       // in order
  bool is_frozen_ = false;
};

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_BLACK_BOX_H_
