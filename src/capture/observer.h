// Call numbers: how often each API or module has been called in the current step.

#ifndef PLUMBLINE_CAPTURE_OBSERVER_H_
#define PLUMBLINE_CAPTURE_OBSERVER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/process/of_process.h"
#include "config/config.h"
#include "config/selection.h"
#include "kernels/kernel_table.h"
#include "online/sender.h"
#include "store/journal.h"
#include "store/run_writer.h"

namespace plumbline::capture {

// Numbers from 0 per registered name. Thread-safe.
class CallCounter {
 public:
  // Registers a name ("Functional.linear") and returns its id; the same id for the same name.
  uint32_t Register(std::string_view name);
  // The next number of `id`.
  uint32_t Next(uint32_t id);
  // The name of `id`; the reference stays valid.
  [[nodiscard]] const std::string& NameOf(uint32_t id) const;
  // All numbers start at 0 again.
  void Reset();

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, uint32_t> ids_;  // node-based: names do not move
  std::vector<const std::string*> names_;
  std::vector<uint32_t> counts_;
};

// The start / stop / step state machine of one process, and where its entries go.

// What a start() led to.
enum class StartOutcome : uint8_t {
  kCollecting,   // the window is open
  kNotSelected,  // this step or rank is filtered out, collection ended earlier, or the directory
                 // cannot be written: reported by a logged line, once per trouble
  kFinished,     // the last selected step is over, or enough was found: this call says so, once
};

// Decides whether the process is being observed and hands finished entries to the store.
// Level debug: Start opens the one file of the run whatever the step, Step only publishes it, and
// numbers go on; nothing is collected but what is added to writer().
// Window calls (Start, Stop, Step, Close) come from one thread at a time; the rest is thread-safe.
// No method throws; a failing disk is reported once and counted, never raised into training.
class Observer {
 public:
  // `framework`: "pytorch", "mindspore", "mindtorch". kInvalidArgument when the scope does not fit
  // the level.
  static Result<std::unique_ptr<Observer>> Create(Config config, std::string framework);
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  // Opens the window for the current step. `rank`: unknown without a process group.
  StartOutcome Start(std::optional<int> rank);
  // Closes the window and publishes the files of the step; with async_dump in the background.
  // Without a window: nothing. Files that cannot be written are reported by a logged line, once per
  // trouble, not by the status.
  void Stop();
  // Ends the step: publishes, then numbers start at 0 again. Counts filtered steps too.
  void Step();
  // The number of the next step. Requires: no step is open.
  void SetStep(int step) { step_ = step; }
  // Publishes what is open and waits until all steps are on disk. Called at interpreter exit.
  void Close();

  [[nodiscard]] const Config& config() const { return config_; }
  // True between Start and Stop of a selected step. One relaxed load.
  [[nodiscard]] bool is_collecting() const {
    return is_collecting_.load(std::memory_order_relaxed);
  }
  // Enough was found: nothing is recorded any more, also of calls under way. One relaxed load.
  [[nodiscard]] bool is_done() const { return is_done_.load(std::memory_order_relaxed); }
  // True from Start to Step: gradients of calls recorded in the window still have a place.
  [[nodiscard]] bool is_step_open() const { return writer_ != nullptr; }
  // Grows by one at each Step(); a gradient of an earlier epoch has no place any more.
  [[nodiscard]] uint64_t epoch() const { return epoch_; }
  [[nodiscard]] int step() const { return step_; }
  // Directory of the current step and rank; empty before the first Start.
  [[nodiscard]] const std::string& run_directory() const { return run_directory_; }

  // Takes one of the config's hit_limit hits of this process; false: all are taken, drop it.
  bool TakeHit();
  // Takes one of the hits that do not count: a hundred, so that consequences of one NaN fill no
  // disk, or any number where hits have no limit.
  bool TakeAside();
  [[nodiscard]] int64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  // After the record of a hit was added: its tensor files stand under their names and its record is
  // on disk when this returns. With the last hit collection ends (is_done) and the files of the
  // step are published. Requires: is_step_open(). Needs no interpreter lock.
  Status SecureHit();

  CallCounter& counters() { return counters_; }
  Selection& selection() { return selection_; }
  // The store of the open step. Requires: is_step_open().
  RunWriter& writer() { return *writer_; }

  // Values of a tensor that a device gives later: from any thread, also when its step is over; the
  // files of a step are written when its last value is there.
  // Requires: is_step_open().
  void AwaitValues(uint64_t number, RunWriter::LateTensor tensor);
  // The writers that await values, once each of these numbers is awaited: what a device is quick
  // to give may come while its entry is still being packed.
  std::vector<std::shared_ptr<RunWriter>> AwaitingOf(uint64_t first, uint64_t count);
  struct DeviceValues {
    kernels::Moments moments;
    Digest128 digest;  // computed in digest mode alone
  };
  void AddReduced(uint64_t first, std::span<const DeviceValues> values);
  void DropValues(uint64_t first, uint64_t count, std::string_view why);

  // Counts something that could not be recorded; reported once per `what`, whatever call numbers it
  // has.
  void CountLoss(std::string_view counter, std::string_view what);

 private:
  Observer(Config config, std::string framework, Selection selection);
  void FinishStep();
  // With async_dump: runs it on the background thread, in place of an earlier one of this directory
  // that has not begun.
  void WriteLater(std::shared_ptr<RunWriter> writer, std::function<void(RunWriter&)> write);
  // Says once per trouble that the files of a step could not be written.
  void ReportUnwritten(const Status& status, const RunWriter& writer, bool is_end);
  // Finish() of the writer of a step, and what comes after it.
  void FinishWriter(RunWriter& writer);
  void CountUnopenedStep(const Error& error);
  void ReportLostSteps();
  // Of the online pre-check, with the first step. False: nothing can be sent; it was logged.
  bool OpenSender(std::optional<int> rank);

  const Config config_;
  const std::string framework_;
  Selection selection_;
  CallCounter counters_;
  const std::string run_id_;
  LastLossRecord last_record_;  // outlives threads_
  StoreThreads threads_;        // outlives writer_ and sender_
  std::shared_ptr<online::Sender> sender_;  // of the online pre-check
  bool sender_failed_ = false;
  std::shared_ptr<RunWriter> writer_;
  // Requires late_mutex_.
  [[nodiscard]] bool AreAwaited(uint64_t first, uint64_t count) const;

  std::mutex late_mutex_;
  OfProcess<std::condition_variable> late_changed_;
  std::vector<std::shared_ptr<RunWriter>> awaiting_;  // guarded by late_mutex_; await values
  std::mutex loss_mutex_;
  std::set<std::string> reported_;     // sentences already logged, without their numbers
  std::vector<Loss> homeless_losses_;  // while no step was open: counted with the next one
  uint64_t unopened_steps_ = 0;        // without a directory
  uint64_t unwritten_steps_ = 0;       // without final files that hold all
  bool steps_are_counted_ = false;     // the first of these, in the directory before them
  std::string last_problem_;           // of one of these
  std::atomic<bool> is_collecting_ = false;
  std::atomic<bool> is_done_ = false;
  std::atomic<int64_t> hits_ = 0;
  std::atomic<int64_t> hits_aside_ = 0;
  bool finished_ = false;
  int step_ = 0;
  uint64_t epoch_ = 1;
  std::string run_directory_;
};

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_OBSERVER_H_
