// Calls on their way: made ready on threads of this program, run on both sides by executors, judged
// on threads again, recorded one after the other.

#ifndef PLUMBLINE_PRECHECK_CALL_FLOW_H_
#define PLUMBLINE_PRECHECK_CALL_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plumbline/result.h"
#include "precheck/executor_pool.h"
#include "precheck/executor_wire.h"
#include "precheck/outcome.h"
#include "precheck/prepared_call.h"

namespace plumbline::precheck {

// A call that executors can run.
struct CallToRun {
  PreparedCall call;
  bool runs_device = true;            // else what is judged is not made by an executor
  std::shared_ptr<const void> extra;  // for who judges it
};

// A call that executors have run, and the memory that its trees lie in.
struct RanCall {
  size_t index = 0;
  const CallToRun* to_run = nullptr;
  std::span<const std::byte> inputs;
  const SideResult* bench = nullptr;
  std::span<const std::byte> bench_memory;
  const SideResult* device = nullptr;  // null: see runs_device
  std::span<const std::byte> device_memory;
};

// The calls of one recording by one framework. All members are thread-safe.
class CheckedCalls {
 public:
  CheckedCalls() = default;
  CheckedCalls(const CheckedCalls&) = delete;
  CheckedCalls& operator=(const CheckedCalls&) = delete;
  virtual ~CheckedCalls() = default;

  // The call ready to run, or why it cannot be.
  [[nodiscard]] virtual OrSkip<CallToRun> Prepare(size_t index) const = 0;
  // The outcome of a call that cannot be run.
  [[nodiscard]] virtual CallOutcome Skipped(size_t index, Skip skip) const = 0;
  // The outcome of one that was.
  [[nodiscard]] virtual CallOutcome Judge(const RanCall& ran) const = 0;
};

struct FlowOptions {
  size_t threads = 0;  // that make ready and judge; 0: one per core
  // Most bytes of inputs in flight; a call with more runs by itself. 0: by the machine's memory.
  uint64_t most_input_bytes = 0;
  std::function<bool()> is_stopped = {};  // asked now and then; then what is in flight is let go
  // Told once that the framework and the device are there, before any outcome; an error ends the
  // run.
  std::function<plumbline::Status(const ServerFacts& facts)> on_ready = {};
};

struct FlowEnd {
  bool was_stopped = false;
  ServerFacts facts;
};

// Runs the calls of `order`, about in this order, and hands each outcome to `record`, on the
// calling thread, as it comes. An error of `record` ends the run, as do those of the pool.
using RecordOutcome = std::function<plumbline::Status(size_t index, CallOutcome outcome)>;
Result<FlowEnd> RunCalls(const CheckedCalls& calls, const std::vector<size_t>& order,
                         ExecutorPool& pool, const FlowOptions& options,
                         const RecordOutcome& record);

// The members of a request from the name on (ExecutorPool::Submit()).
std::string RequestText(const PreparedCall& call);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_CALL_FLOW_H_
