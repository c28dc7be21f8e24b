#include "capture/step_gate.h"

#include <chrono>
#include <thread>

namespace plumbline::capture {

StepGate::Closed::Closed(StepGate& gate, int own, const ProgramThreads& threads) : gate_(gate) {
  ++gate_.closed_;
  // Leave() needs the lock, so it is given up even when nobody seems to be inside long.
  while (gate_.inside_.load(std::memory_order_acquire) > own) {
    threads.run_unlocked([] { std::this_thread::sleep_for(std::chrono::microseconds(20)); });
  }
}

}  // namespace plumbline::capture
