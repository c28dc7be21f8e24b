// Call numbers: how often each API or module has been called in the current step.

#ifndef PLUMBLINE_CAPTURE_CALL_COUNTER_H_
#define PLUMBLINE_CAPTURE_CALL_COUNTER_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_CALL_COUNTER_H_
