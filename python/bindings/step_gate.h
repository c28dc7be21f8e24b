// Keeps the end of a step apart from what other threads are recording.

#ifndef PLUMBLINE_PYTHON_BINDINGS_STEP_GATE_H_
#define PLUMBLINE_PYTHON_BINDINGS_STEP_GATE_H_

#include <atomic>

namespace plumbline::python {

// A thread that reads a large tensor has given up the interpreter lock, so another one may end the
// step meanwhile, and with it the store that the first is about to use. The one that ends the step
// closes the gate, which lets nobody in any more, and waits until everybody is out.
// All methods need the interpreter lock.
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
    // Waits, without the interpreter lock, for the threads inside. `own`: 1 when the calling thread
    // is one of them, else 0.
    Closed(StepGate& gate, int own);
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

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_STEP_GATE_H_
