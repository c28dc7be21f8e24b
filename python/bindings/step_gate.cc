#include "step_gate.h"

#include <Python.h>

#include <chrono>
#include <thread>

namespace plumbline::python {

StepGate::Closed::Closed(StepGate& gate, int own) : gate_(gate) {
  ++gate_.closed_;
  // Leave() needs the interpreter lock, so it is given up even when nobody seems to be inside long.
  while (gate_.inside_.load(std::memory_order_acquire) > own) {
    Py_BEGIN_ALLOW_THREADS;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    Py_END_ALLOW_THREADS;
  }
}

}  // namespace plumbline::python
