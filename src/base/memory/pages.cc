#include "base/memory/pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace plumbline {

void* AllocateHugePages(size_t bytes) {
  void* const data = ::operator new(bytes, std::align_val_t(kHugePageBytes));
  // Only advice: without huge pages the memory is as good, and slower to come by.
  static_cast<void>(::madvise(data, bytes, MADV_HUGEPAGE));
  return data;
}

void FreeHugePages(void* data) noexcept {
  ::operator delete(data, std::align_val_t(kHugePageBytes));
}

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

namespace {

constexpr size_t kUnitBytes = size_t{64} << 10;
constexpr size_t kMaxKeptBytes = size_t{64} << 20;

size_t RoundUp(size_t bytes) { return (bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes; }

class MappedPages : public std::pmr::memory_resource {
 private:
  struct Block {
    void* data;
    size_t bytes;
  };

  void* do_allocate(size_t bytes, size_t /*alignment: a page is enough for all*/) override {
    bytes = RoundUp(bytes);
    {
      const std::lock_guard lock(mutex_);
      const auto it =
          std::ranges::find_if(kept_, [&](const Block& block) { return block.bytes == bytes; });
      if (it != kept_.end()) {
        void* data = it->data;
        *it = kept_.back();
        kept_.pop_back();
        kept_bytes_ -= bytes;
        return data;
      }
    }
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    return data;
  }

  void do_deallocate(void* data, size_t bytes, size_t /*alignment*/) override {
    bytes = RoundUp(bytes);
    {
      const std::lock_guard lock(mutex_);
      if (kept_bytes_ + bytes <= kMaxKeptBytes) {
        kept_.push_back({data, bytes});
        kept_bytes_ += bytes;
        return;
      }
    }
    ::munmap(data, bytes);
  }

  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::mutex mutex_;
  std::vector<Block> kept_;
  size_t kept_bytes_ = 0;
};

}  // namespace

std::pmr::memory_resource& PageMemory() {
  static auto* const pages = new MappedPages;  // never destroyed: static objects may use it
  return *pages;
}

}  // namespace plumbline
