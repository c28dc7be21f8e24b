// The machine that checks a training while it runs: takes its calls, runs each again on the CPU in
// raised precision, judges what the training got, and writes result files for each rank. Where it
// has a device, that runs each call too, and the errors of both are compared.

#ifndef PLUMBLINE_PRECHECK_ONLINE_ONLINE_CHECK_H_
#define PLUMBLINE_PRECHECK_ONLINE_ONLINE_CHECK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "online/receiver.h"
#include "plumbline/result.h"
#include "precheck/online/rank_files.h"
#include "precheck/precheck.h"

namespace plumbline::precheck {

struct OnlineOptions {
  online::ReceiverOptions receiver;  // but for the spool, which is in the output directory
  // Of these: output_dir, plan, bench_workers, worker_threads, api_timeout, python, precision,
  // is_stopped; with `runs_device` device_type, devices.
  PrecheckOptions check;
  bool runs_device = false;  // each call also runs on a device here, to be judged against
  std::function<void(int port)> on_listening;              // 0: a shared directory
  std::function<void(const std::string& line)> on_step;    // what became of one step
};

// What became of the calls of one rank.
struct RankReport {
  int32_t rank = 0;
  RankFiles::Counts counts{};  // calls by CheckStatus
  uint64_t steps = 0;
  uint64_t dropped = 0;  // records that the training did not send
  uint64_t lost = 0;     // that came and could not be kept
  bool has_stopped = true;
  std::string result_path;
  std::string sided_path;  // against the device of this machine; empty without one
};

struct OnlineReport {
  std::vector<RankReport> ranks;
  std::vector<int64_t> absent;  // expected ranks that never came
  std::optional<OutputRow> worst;
  std::string problem;  // the last step could not be written: why
  bool was_idle = false;
  bool was_interrupted = false;  // the same command goes on
  // Everything that the trainings recorded has a row.
  [[nodiscard]] bool is_complete() const;
};

// Ends when every rank has said stop and is judged, when nothing has come for too long, or when
// stopped. What came is kept in `<output_dir>/online_spool` until its rows are written: the same
// command goes on after a kill. Errors of Receiver::Start(), ExecutorPool, RankFiles::Open().
Result<OnlineReport> RunOnlineCheck(const OnlineOptions& options);

// The first line is the answer; then a line per rank.
std::string OnlineAnswer(const OnlineReport& report);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_ONLINE_ONLINE_CHECK_H_
