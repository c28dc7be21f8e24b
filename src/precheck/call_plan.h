// The calls of a dump.json that can be run again, and each of them made ready to run.

#ifndef PLUMBLINE_PRECHECK_CALL_PLAN_H_
#define PLUMBLINE_PRECHECK_CALL_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plumbline/result.h"
#include "precheck/outcome.h"
#include "precheck/prepared_call.h"

namespace plumbline::dump_json {
struct VisitedCall;
}

namespace plumbline::precheck {

inline constexpr uint64_t kDefaultSeed = 1234;

// Which calls are run, and with what.
struct PlanOptions {
  // Bare names of APIs ("matmul", "linalg.inv"). A call in black_list is not run; else, where
  // white_list is not empty, one that is not in it is not run.
  std::vector<std::string> white_list = {}, black_list = {};
  bool dedupe = false;  // -f: of calls that differ in values alone the first one stands for all
  bool keep_random = false;   // also APIs that draw random numbers, whose results cannot agree
  bool forward_only = false;  // entries of backwards are not read again
  bool salvage = false;       // of a dump.json that is cut the calls before the cut
  uint64_t seed = kDefaultSeed;
  // Most bytes of the inputs of one call; more are a Skip. 0: the machine's memory.
  uint64_t memory_limit = 0;
};

// Where the value of an entry stands in dump.json. Empty: there is none.
struct EntryRange {
  uint64_t begin = 0, end = 0;
  [[nodiscard]] bool empty() const { return begin == end; }
};

// An error of reading a dump.json as commands say it that run its calls: with what to do, which for
// a cut file is to write it anew.
Error UnreadableDump(const Error& error, const std::string& dump_json);

// Entries of a dump.json that no recorder writes, gathered as they are met: values that are none of
// a call, and names that the file had before. The last entry of a name counts.
class OddEntries {
 public:
  // `is_again`: an entry of that name was met before.
  void Add(const dump_json::VisitedCall& visited, bool is_again);
  // Why an entry cannot be run; nothing: it can be read.
  [[nodiscard]] std::optional<Skip> WhyNot(const std::string& entry) const;
  // Appends what is said once of the file.
  void Tell(const std::string& dump_json, std::vector<std::string>& warnings) const;

 private:
  std::unordered_map<std::string, std::string> problems_;  // by entry
  size_t repeated_ = 0;
  std::string first_repeated_;
};

// Why a call is not to be run whatever was recorded of it: its API is none that can be called, is
// filtered, or is random. Nothing: it can be.
std::optional<Skip> WhyNotRun(std::string_view name, const PlanOptions& options);

struct PlannedCall {
  std::string name;                             // "Functional.conv2d.0"
  [[nodiscard]] std::string_view type() const;  // "Functional"; views into `name`
  [[nodiscard]] std::string_view api() const;   // "conv2d", "linalg.inv"
  EntryRange forward, backward;
  // Expected work: bytes of all tensors x a weight of the API. For the order in which calls are
  // handed out; no time.
  double cost = 0;
  uint64_t merged_calls = 0;  // later calls like this one that `dedupe` left out
  std::optional<Skip> skip;   // it is not to be run, and why
};

// Immutable after Open(); thread-safe. Movable.
class CallPlan {
 public:
  // `dump_json` is a dump.json of plumbline or of upstream. It is read once, front to back; memory
  // holds the names of calls and where their entries stand. An entry whose value is no call's costs
  // its call, one of a backward only that. kNotFound, kIo, kCorrupt (no JSON, no "data", an entry
  // whose name has no form that a recorder writes: the message names it), kInvalidArgument
  // (recorded without calls of APIs or without their inputs; a name in a list that is no API).
  static Result<CallPlan> Open(const std::string& dump_json, const PlanOptions& options);

  // Calls in the order of the file. One that `dedupe` merged into another is not among them.
  [[nodiscard]] size_t size() const;
  [[nodiscard]] const PlannedCall& call(size_t i) const;
  // Indices of the calls that are to be run, the most expensive first.
  [[nodiscard]] std::vector<size_t> ByCost() const;
  // "pytorch", "mindspore", "mindtorch"; inferred where the file does not say it.
  [[nodiscard]] const std::string& framework() const;
  [[nodiscard]] const std::string& path() const;
  // Whether inputs are read from recorded tensors (task tensor), not drawn.
  [[nodiscard]] bool uses_recorded_data() const;
  // Sentences to log once.
  [[nodiscard]] const std::vector<std::string>& warnings() const;

  // Reads the entries of a call again and makes it ready; or why it cannot be run. For a call with
  // a skip that skip.
  [[nodiscard]] OrSkip<PreparedCall> Prepare(size_t i) const;

 private:
  struct Impl;
  explicit CallPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_CALL_PLAN_H_
