#include "base/page_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

namespace plumbline {
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
