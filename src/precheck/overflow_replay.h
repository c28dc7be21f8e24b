// `run_overflow_check`: every recorded forward call again, on the device and on the CPU, to tell an
// overflow that the numbers ask for from one that the device alone has.

#ifndef PLUMBLINE_PRECHECK_OVERFLOW_REPLAY_H_
#define PLUMBLINE_PRECHECK_OVERFLOW_REPLAY_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/tensor.h"
#include "precheck/call_flow.h"
#include "precheck/call_plan.h"

namespace plumbline::precheck {

// What an overflow is. kNormal: both sides have one; kAbnormal: one side alone; kNotReproduced:
// neither (upstream calls that normal, too); kSkip: not run, or nothing to look at; kError: a side
// failed.
enum class OverflowResult : uint8_t { kNormal, kAbnormal, kNotReproduced, kSkip, kError };
inline constexpr size_t kOverflowResults = 5;
// "normal", "abnormal", "not_reproduced", "skip", "error".
std::string_view OverflowWord(OverflowResult result);

// One call: a row of the result file.
struct OverflowRow {
  std::string name;                        // "Torch.exp.0"
  std::optional<bool> input, cpu, device;  // whether NaN or Inf is there; absent: not known
  OverflowResult result = OverflowResult::kSkip;
  std::string message;
};

// Judges a call that was run. An output of a tensor type overflows where an element is NaN or
// infinite, a float where it is, a list where a member does; truth values and integers never do.
// What the CPU computed in a wider type than the device counts as rounded to the device's, so that
// a range that is too small still shows. None from both sides, or a bare truth value, is a kSkip.
// Requires: ran.device is there.
OverflowRow ClassifyOverflow(const RanCall& ran);

struct OverflowReplayOptions {
  std::string dump_json;
  std::string output_dir = ".";
  // "auto" is an NPU, else a CUDA device, else the CPU. On "cpu" the recorded types are compared
  // with raised ones (float32 with float64, narrower ones with float32); on every other device with
  // the same types on the CPU, or float32 where the CPU cannot compute in them.
  std::string device_type = "auto";
  int device = 0;
  bool compiles_operators = false;  // of an NPU, before they run
  uint64_t seed = kDefaultSeed;  // of inputs that are drawn from statistics
  std::chrono::milliseconds api_timeout = std::chrono::seconds(600);
  std::string python;  // the interpreter; empty: FindPython()
  int threads = 0;     // of this program; 0: one per core
  std::function<void(uint64_t done, uint64_t all)> on_progress = {};
  std::function<bool()> is_stopped = {};  // true ends the run; what was judged is written
};

struct OverflowReplayReport {
  std::string dump_json, device, framework_version, result_path;
  bool has_recorded_data = false;  // else inputs were drawn from statistics
  std::vector<OverflowRow> rows;   // in the order of the recording
  std::vector<std::string> warnings;
  bool was_interrupted = false;
  double seconds = 0;

  [[nodiscard]] uint64_t count(OverflowResult result) const;
};

// Runs everything and writes overflow_check_result_<timestamp>.csv. Errors of CallPlan::Open() and
// ExecutorPool; kInvalidArgument: not recorded with PyTorch; kIo: the file cannot be written.
Result<OverflowReplayReport> RunOverflowReplay(const OverflowReplayOptions& options);

// The answer and what it rests on, for people and for programs.
std::string AnswerText(const OverflowReplayReport& report);
std::string AnswerJson(const OverflowReplayReport& report);
// The file: API Name, Input Overflow, CPU Overflow, Device Overflow, Result, Message.
std::string OverflowCsv(const std::vector<OverflowRow>& rows);

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

#endif  // PLUMBLINE_PRECHECK_OVERFLOW_REPLAY_H_
