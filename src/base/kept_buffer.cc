#include "base/kept_buffer.h"

#include <utility>

#include "base/huge_pages.h"

namespace plumbline {

struct KeptBuffer::Kept {
  Memory memory;
  size_t capacity = 0;
};

KeptBuffer::Kept& KeptBuffer::KeptOfThread() {
  static thread_local Kept kept;
  return kept;
}

void KeptBuffer::Free::operator()(std::byte* memory) const { FreeHugePages(memory); }

KeptBuffer::KeptBuffer(size_t bytes) : size_(bytes) {
  Kept& kept = KeptOfThread();
  if (kept.memory != nullptr && kept.capacity >= bytes) {
    memory_ = std::move(kept.memory);
    capacity_ = std::exchange(kept.capacity, 0);
    return;
  }
  kept.memory.reset();  // too small: never two at a time
  kept.capacity = 0;
  capacity_ = (bytes / kHugePageBytes + 1) * kHugePageBytes;
  memory_.reset(static_cast<std::byte*>(AllocateHugePages(capacity_)));
}

KeptBuffer::KeptBuffer(KeptBuffer&& other) noexcept
    : memory_(std::move(other.memory_)),
      size_(std::exchange(other.size_, 0)),
      capacity_(std::exchange(other.capacity_, 0)) {}

KeptBuffer& KeptBuffer::operator=(KeptBuffer&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

KeptBuffer::~KeptBuffer() {
  Kept& kept = KeptOfThread();
  if (memory_ == nullptr || kept.capacity >= capacity_) return;
  kept.memory = std::move(memory_);
  kept.capacity = capacity_;
}

}  // namespace plumbline
