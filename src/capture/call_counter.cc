#include "capture/call_counter.h"

#include <algorithm>

namespace plumbline::capture {

uint32_t CallCounter::Register(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto [it, inserted] =
      ids_.try_emplace(std::string(name), static_cast<uint32_t>(names_.size()));
  if (inserted) {
    names_.push_back(&it->first);
    counts_.push_back(0);
  }
  return it->second;
}

uint32_t CallCounter::Next(uint32_t id) {
  const std::lock_guard lock(mutex_);
  return counts_[id]++;
}

const std::string& CallCounter::NameOf(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  return *names_[id];
}

void CallCounter::Reset() {
  const std::lock_guard lock(mutex_);
  std::fill(counts_.begin(), counts_.end(), 0);
}

}  // namespace plumbline::capture
