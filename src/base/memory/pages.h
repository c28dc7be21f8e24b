// Memory that the operating system gives in whole pages: for large arrays, and for the recorder.

#ifndef PLUMBLINE_BASE_MEMORY_PAGES_H_
#define PLUMBLINE_BASE_MEMORY_PAGES_H_

#include <cstddef>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <span>

namespace plumbline {

// Memory for large arrays that are filled, read a few times and dropped.
//
// Every fresh page is a fault of its own. In pages of 4 KiB these faults take as long as filling an
// array with what it is for; in pages of 2 MiB they vanish.

constexpr size_t kHugePageBytes = size_t{2} << 20;

// At least `bytes` at a multiple of kHugePageBytes, which the operating system is asked to back by
// huge pages; it may decline. Throws std::bad_alloc when there is no memory. Thread-safe.
void* AllocateHugePages(size_t bytes);
void FreeHugePages(void* data) noexcept;

// Allocator of standard containers: huge pages for arrays of that size and more, else the heap.
template <class T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <class U>
  explicit HugePageAllocator(const HugePageAllocator<U>& /*stateless*/) noexcept {}

  T* allocate(size_t count) {
    if (!IsLarge(count)) return std::allocator<T>().allocate(count);
    if (count > std::numeric_limits<size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(AllocateHugePages(count * sizeof(T)));
  }
  void deallocate(T* data, size_t count) noexcept {
    if (!IsLarge(count)) return std::allocator<T>().deallocate(data, count);
    FreeHugePages(data);
  }
  friend bool operator==(const HugePageAllocator&, const HugePageAllocator&) { return true; }

 private:
  static bool IsLarge(size_t count) { return count >= kHugePageBytes / sizeof(T); }
};

// Uninitialised bytes, for one large result after the other. The thread that destroys it keeps the
// largest one it had until it ends, so that the next buffer costs no page faults. Huge pages where
// the system gives them. Move-only.
class KeptBuffer {
 public:
  KeptBuffer() = default;
  // Throws std::bad_alloc when there is no memory, as std::vector does.
  explicit KeptBuffer(size_t bytes);
  KeptBuffer(KeptBuffer&& other) noexcept;
  KeptBuffer& operator=(KeptBuffer&& other) noexcept;
  ~KeptBuffer();

  [[nodiscard]] std::span<std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  struct Kept;
  static Kept& KeptOfThread();

  Memory memory_;
  size_t size_ = 0, capacity_ = 0;
};

// Memory outside the process's allocator, for what the recorder keeps while a step runs.
//
// Small blocks that live until the end of the step, taken from the heap in between a framework's
// tensors, hinder it in reusing and returning the large blocks around them.

// Whole mappings of the operating system, a multiple of 64 KiB each; freed ones are kept for reuse,
// up to 64 MiB. Meant as upstream of a pool or a monotonic buffer. Thread-safe; lives until the
// process ends. Throws std::bad_alloc when there is no memory.
std::pmr::memory_resource& PageMemory();

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_MEMORY_PAGES_H_
