// Keeps the end of a step apart from what other threads are recording.

#ifndef PLUMBLINE_CAPTURE_STEP_GATE_H_
#define PLUMBLINE_CAPTURE_STEP_GATE_H_

#include <atomic>

#include "capture/recorded_program.h"

namespace plumbline::capture {

// A thread that reads a large tensor has given up the program's lock, so another one may end the
// step meanwhile, and with it the store that the first is about to use. The one that ends the step
// closes the gate, which lets nobody in any more, and waits until everybody is out.
// All methods need the program's lock.
class StepGate {
 public:
  // A thread begins or ends work that uses the store of the open step.
  void Enter() { inside_.fetch_add(1, std::memory_order_relaxed); }
  void Leave() { inside_.fetch_sub(1, std::memory_order_release); }
  // While true, nothing new may begin.
  [[nodiscard]] bool is_closed() const { return closed_ > 0; }

  // Closes the gate for as long as it lives.
  class Closed {
   public:
    // Waits, without the lock, for the threads inside. `own`: 1 when the calling thread is one of
    // them, else 0.
    Closed(StepGate& gate, int own, const ProgramThreads& threads);
    ~Closed() { --gate_.closed_; }
    Closed(const Closed&) = delete;
    Closed& operator=(const Closed&) = delete;

   private:
    StepGate& gate_;
  };

 private:
  std::atomic<int> inside_ = 0;
  int closed_ = 0;
};

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_STEP_GATE_H_
