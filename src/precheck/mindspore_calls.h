// The calls of a MindSpore recording that can be run again in MindSpore and in PyTorch, and each of
// them made ready to run.

#ifndef PLUMBLINE_PRECHECK_MINDSPORE_CALLS_H_
#define PLUMBLINE_PRECHECK_MINDSPORE_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/result.h"
#include "precheck/call_flow.h"
#include "precheck/call_plan.h"
#include "precheck/mindspore_judge.h"
#include "precheck/outcome.h"
#include "precheck/prepared_call.h"

namespace plumbline::precheck {

// What a dump.json says that recorded it, in lower case ("pt" and "ms" spelled out); empty: it says
// nothing. Only what stands before the entries is read. kNotFound, kIo.
Result<std::string> FrameworkOf(const std::string& dump_json);

// Whether entries of this name are run again: at least four parts; of "mindspore" the types Mint
// and MintFunctional, Tensor with one of 59 methods and Functional.flash_attention_score, of
// "mindtorch" Torch, Functional and Tensor. Others concern the pre-check as little as modules do.
bool IsCheckedInMindSpore(std::string_view entry_name, std::string_view framework);

// What a direction returned when it was recorded: the tested side of a recording with tensors.
struct RecordedReturn {
  CallValue value;      // a list of the outputs
  PreparedCall memory;  // only `fills` and `input_bytes`, for FillInputs()
  GradientOrder order = GradientOrder::kListed;
};

struct MindSporeCall {
  // Both sides get it: the values are the same, and PyTorch computes in the recorded types.
  // Floating tensors require a gradient where there is a backward to run.
  PreparedCall call;
  // Of a recording with tensors; otherwise the tested side is run.
  std::optional<RecordedReturn> forward, backward;
  // Why the recorded outputs of a direction cannot be used.
  std::optional<Skip> forward_skip;
};

// Immutable after Open(); thread-safe. Movable.
class MindSporePlan {
 public:
  // Reads a dump.json once; memory holds names and where entries stand. kNotFound, kIo, kCorrupt
  // (no JSON, no "data"), kInvalidArgument (task other than "statistics" and "tensor").
  static Result<MindSporePlan> Open(const std::string& dump_json, uint64_t seed);

  // In the order in which the calls occur first.
  [[nodiscard]] size_t size() const;
  [[nodiscard]] const PlannedCall& call(size_t i) const;
  // Indices of the calls that are to be run, the most expensive first.
  [[nodiscard]] std::vector<size_t> ByCost() const;
  [[nodiscard]] const std::string& path() const;
  // "mindspore", also where the file does not say it, or "mindtorch".
  [[nodiscard]] const std::string& framework() const;
  // Task "tensor": what was recorded is held against the benchmark, and no device is used.
  [[nodiscard]] bool uses_recorded_data() const;
  [[nodiscard]] const std::vector<std::string>& warnings() const;

  // Makes a call ready, or says why its forward cannot be run; then its backward cannot either. For
  // a call with a skip that skip.
  [[nodiscard]] OrSkip<MindSporeCall> Prepare(size_t i) const;

 private:
  struct Impl;
  explicit MindSporePlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// The calls run by MindSpore (or taken from the recording) and by PyTorch on the CPU, and judged.

// `plan` must outlive it. A recording with tensors runs no device: what it holds is judged.
class MindSporeCheck : public CheckedCalls {
 public:
  MindSporeCheck(const MindSporePlan& plan, const MindSporeLimits& limits)
      : plan_(plan), limits_(limits) {}

  [[nodiscard]] OrSkip<CallToRun> Prepare(size_t index) const override;
  // The directions that were recorded are skipped; another one stays without a status.
  [[nodiscard]] CallOutcome Skipped(size_t index, Skip skip) const override;
  [[nodiscard]] CallOutcome Judge(const RanCall& ran) const override;

 private:
  const MindSporePlan& plan_;
  const MindSporeLimits limits_;
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_MINDSPORE_CALLS_H_
