// The lines that pass between this program and the Python processes that run calls, in both
// directions (python/plumbline/precheck_run/server.py has the other end).

#ifndef PLUMBLINE_PRECHECK_EXECUTOR_WIRE_H_
#define PLUMBLINE_PRECHECK_EXECUTOR_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "plumbline/result.h"
#include "precheck/call_value.h"
#include "precheck/outcome.h"

namespace plumbline::precheck {

// The side of a call that an executor runs: in raised precision on the CPU, or on the device.
enum class Role : uint8_t { kBench, kDevice };
std::string_view RoleName(Role role);

// Tensor arguments of a forward, by their place among the arguments ("1", "0_2" in a list, "out").
struct ArgumentsAfter {
  CallMap changed;  // in place, as the call left them; null: it is what the call returned
  CallMap kept;     // as they came, of calls that may change them without being seen to
};

// What one direction of a call gave on one side, or why there is nothing.
using SideValue = tl::expected<CallValue, Skip>;
struct SideResult {
  SideValue forward;
  std::optional<SideValue> backward;  // absent: none was asked for
  std::string note = {};              // how the forward was run otherwise than recorded
  // Whether a NaN or an infinity is among what it returned; absent: it was not asked for.
  std::optional<bool> has_overflow = {};
  // Absent: nobody looked, such as where a reference function stands in for an operator.
  std::optional<ArgumentsAfter> arguments = {};
};

// What an executor says about one call.
struct ExecutorAnswer {
  uint64_t id = 0;
  SideResult result;
  bool is_last = false;  // it ends now, whatever waits
};
// kCorrupt, kUnsupported: no answer, or one of a form that no executor sends.
Result<ExecutorAnswer> ParseAnswer(std::string_view line);
// Whether every tensor of the answer lies in a memory of `bytes` bytes. kCorrupt: one does not.
plumbline::Status CheckPlaces(const SideResult& result, size_t bytes);

// What an executor says when it has started. An error of the executor's own is kUnsupported.
struct ExecutorHello {
  int64_t process = 0;
};
Result<ExecutorHello> ParseHello(std::string_view line);

// What the program that makes executors says: it is ready, or one of them has ended.
struct ServerFacts {
  std::string framework_version;     // "2.7.1"
  std::string device;                // "npu", without a number
  std::string device_name;           // "NVIDIA H100 80GB HBM3"; empty where there is none
  std::vector<std::string> missing;  // names of the inventory that this framework does not have
};
struct ExecutorEnd {
  uint64_t id = 0;
  std::string how;  // "signal 6 (Aborted)"
};
// An error of the program's own, such as an absent device, is kUnsupported.
Result<ServerFacts> ParseServerFacts(std::string_view line);
Result<ExecutorEnd> ParseExecutorEnd(std::string_view line);

// What is asked of that program.
struct ServerStart {
  std::string framework;  // "pytorch"
  std::string device;     // "auto", "npu", "cuda", "cpu" or what the framework calls another one
  size_t slots = 0;
};
std::string StartLine(const ServerStart& start);
struct ExecutorStart {
  uint64_t id = 0;
  Role role = Role::kBench;
  std::string device;  // "npu:0"
  int threads = 1;
};
std::string ForkLine(const ExecutorStart& start);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_EXECUTOR_WIRE_H_
