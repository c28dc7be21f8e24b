// `run_overflow_check`: every recorded forward call again, on the device and on the CPU, to tell an
// overflow that the numbers ask for from one that the device alone has.

#ifndef PLUMBLINE_PRECHECK_OVERFLOW_OVERFLOW_REPLAY_H_
#define PLUMBLINE_PRECHECK_OVERFLOW_OVERFLOW_REPLAY_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "plumbline/result.h"
#include "plumbline/tensor.h"
#include "precheck/call_plan.h"
#include "precheck/overflow/overflow_report.h"

namespace plumbline::precheck {

struct OverflowReplayOptions {
  std::string dump_json;
  std::string output_dir = ".";
  // "auto" is an NPU, else a CUDA device, else the CPU. On "cpu" the recorded types are compared
  // with raised ones (float32 with float64, narrower ones with float32); on every other device with
  // the same types on the CPU, or float32 where the CPU cannot compute in them.
  std::string device_type = "auto";
  int device = 0;
  bool compiles_operators = false;  // of an NPU, before they run
  uint64_t seed = kDefaultSeed;     // of inputs that are drawn from statistics
  std::chrono::milliseconds api_timeout = std::chrono::seconds(600);
  std::string python;  // the interpreter; empty: FindPython()
  int threads = 0;     // of this program; 0: one per core
  std::function<void(uint64_t done, uint64_t all)> on_progress = {};
  std::function<bool()> is_stopped = {};  // true ends the run; what was judged is written
};

// Runs everything and writes overflow_check_result_<timestamp>.csv. Errors of CallPlan::Open() and
// ExecutorPool; kInvalidArgument: not recorded with PyTorch; kIo: the file cannot be written.
Result<OverflowReplayReport> RunOverflowReplay(const OverflowReplayOptions& options);

// One call run once more on the CPU with its floating inputs in another type.
struct OtherTypeRun {
  DType dtype = DType::kFloat32;
  std::optional<bool> stays_finite;  // absent: see `problem`
  std::string problem;
};
// The entry `name` ("Torch.exp.0.forward", "...backward") of a recording in bfloat16 and in
// float32, with its saved inputs. kNotFound: there is no such call; kUnsupported: no tensors were
// saved, or it cannot be run again; errors of RunOverflowReplay(). Of `options` the output and the
// device have no effect.
Result<std::array<OtherTypeRun, 2>> RunInOtherTypes(const std::string& name,
                                                    const OverflowReplayOptions& options);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_OVERFLOW_OVERFLOW_REPLAY_H_
