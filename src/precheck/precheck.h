// The pre-check: every recorded call run again, on the device under test and in raised precision on
// the CPU, and judged by itself.
//
// From one recording it says which APIs a device computes wrong, without another run of the model.

#ifndef PLUMBLINE_PRECHECK_PRECHECK_H_
#define PLUMBLINE_PRECHECK_PRECHECK_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/process/shards.h"
#include "plumbline/result.h"
#include "precheck/call_plan.h"
#include "precheck/mindspore_judge.h"
#include "precheck/precheck_report.h"

namespace plumbline::precheck {

struct PrecheckOptions {
  std::string dump_json;
  std::string framework;  // "pytorch", "mindspore"; empty: whichever the recording names
  std::string output_dir = ".";
  PlanOptions plan;

  // The device: "auto" is an NPU, else a CUDA device, else the CPU; of a run that goes on that of
  // the earlier run.
  std::string device_type = "auto";
  std::vector<int> devices = {0};
  int workers = 0;         // executors over all devices; 0: one per device
  int bench_workers = 0;   // executors on the CPU; 0: one per core
  int worker_threads = 1;  // of each executor; other numbers round sums differently
  std::chrono::milliseconds api_timeout = std::chrono::seconds(600);
  std::string python;  // the interpreter; empty: FindPython()
  int threads = 0;     // of this program; 0: one per core

  std::string resume_path;  // a result file to go on with, of the same run; empty: new files
  bool retry_skipped = false;
  bool sorted = false;  // rows in the order of the recording at the end
  int precision = 14;   // digits of doubles in the files, 0 to 20; not of MindSpore's
  double max_abs_error = MindSporeLimits().max_abs_error;  // of MindSpore: outputs above are errors
  bool save_error_data = false;
  std::string error_data_path = ".";
  std::string config_path;  // of which settings came, for the command that goes on; empty: none

  std::function<void(uint64_t done, uint64_t all)> on_progress;
  std::function<bool()> is_stopped;  // asked several times a second; true ends the run, resumable
};

// Runs everything. Rows are in the files call by call, so that a killed run goes on with
// `resume_path`. Errors of CallPlan::Open(), ResultFiles and ExecutorPool. A report that
// `was_interrupted` is of a part.
Result<PrecheckReport> RunPrecheck(const PrecheckOptions& options);

// The same by several processes. Neither goes on with an earlier run.

// The calls of one part, about as much work as every other: outcomes as JSON, by their place in the
// recording. What is kept of calls that do not pass waits for MergePrecheck(). No result files.
// Errors of RunPrecheck(), and kIo: it was stopped, which leaves nothing.
Result<ShardPart> RunPrecheckPart(const PrecheckOptions& options, const ShardPlace& place);
// The files and the report of one run with `sorted`, of all parts. kInvalidArgument: the recording
// or what the options say is another one by now, or parts ran on different devices; kCorrupt.
Result<PrecheckReport> MergePrecheck(const PrecheckOptions& options, const ShardedItems& parts);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_PRECHECK_H_
