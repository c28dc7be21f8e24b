// Executors at work: processes that run calls in memory shared with this program, some in raised
// precision on the CPU, some on the devices under test. A call that crashes, hangs or talks
// nonsense costs itself; its executor is replaced.

#ifndef PLUMBLINE_PRECHECK_EXECUTOR_POOL_H_
#define PLUMBLINE_PRECHECK_EXECUTOR_POOL_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plumbline/result.h"
#include "precheck/executor_server.h"
#include "precheck/executor_wire.h"

namespace plumbline::precheck {

// Of PoolOptions::slots, whatever the machine.
inline constexpr size_t kFewestSlots = 6, kMostSlots = 96;

struct PoolOptions {
  ServerProgram program;
  std::string framework = "pytorch";
  std::string device_type = "auto";  // of ServerStart
  std::vector<int> devices = {0};    // numbers; workers go round them
  // Most executors of either side; they are made when there is work for them.
  int device_workers = 1, bench_workers = 1;
  int threads = 1;  // of each executor
  std::chrono::milliseconds call_limit = std::chrono::seconds(600);
  size_t slots = 8;  // calls in flight
};

// A call whose inputs lie in a slot.
struct SubmittedCall {
  std::string request;  // the members of the request from the name on, "\"name\":...}"
  size_t input_bytes = 0;
  bool runs_device = true;  // else the bench side alone runs it
};

// One side of a call is done.
struct SideAnswer {
  size_t slot = 0;
  Role role = Role::kBench;
  SideResult result;
};

// A slot is the memory of one call in flight: its inputs, and what either side makes of them. It
// belongs to one thread at a time, between calls of Submit() and the answers to the pool. The other
// members are for one thread.
//
// What executors send is checked before it gets here: tensors of an answer lie in the memory that
// Results() has. The executor may go on writing there; nothing of it is a pointer.
class ExecutorPool {
 public:
  // Starts the interpreter and does not wait for it. kNotFound, kIo.
  static Result<std::unique_ptr<ExecutorPool>> Start(const PoolOptions& options);
  ~ExecutorPool();
  // To be called before Submit(), and as often as one likes; errors of
  // ExecutorServer::AwaitReady().
  Result<ServerFacts> AwaitReady();

  [[nodiscard]] size_t slots() const;
  // The inputs of a slot, of at least `bytes` bytes. Thread-safe for different slots, as the next
  // three. kIo: there is no memory.
  Result<std::span<std::byte>> Inputs(size_t slot, size_t bytes);
  // What a side left in its memory. Requires: it has answered.
  [[nodiscard]] std::span<const std::byte> Results(size_t slot, Role role) const;
  // Gives memory back to the system where it is much.
  void Clear(size_t slot);

  // Has both sides run a call.
  void Submit(size_t slot, SubmittedCall call);
  // Waits until a side has answered, `wake` can be read, or the time is over. Each side of each
  // submitted call is answered once: with its result, or with a skip that says how its executor
  // ended. An interpreter that ends is started again once. kUnsupported: a device cannot be used.
  // kIo: no executor can be made any more.
  Result<std::vector<SideAnswer>> Wait(int wake, std::chrono::milliseconds at_most);

 private:
  class Impl;
  explicit ExecutorPool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_EXECUTOR_POOL_H_
